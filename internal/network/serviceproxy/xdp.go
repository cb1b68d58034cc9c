package serviceproxy

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"

	"github.com/cnibench/cnibench/bpf"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/dataplane"
	"github.com/cnibench/cnibench/internal/result"
)

// XDP is Cilium's acceleration of NodePorts for clients outside the cluster. What a client
// inside it asks of its own node is translated at its socket, as EBPF does.
func XDP() network.ServiceProxy {
	return network.ServiceProxy{
		Name:    "xdp",
		Summary: "NodePorts by XDP in the driver, as Cilium for clients outside the cluster; all else by eBPF at the socket, as ebpf",
		Model: "Cilium v1.18.5 bpf/bpf_xdp.c (tail_lb_ipv4), bpf/lib/nodeport.h (nodeport_lb4, nodeport_rev_dnat_fwd_ipv4) with " +
			"loadBalancer.acceleration=native, by own programs (bpf/nodeport.c), and bpf/bpf_sock.c",
		LeavesOut: "cilium-agent, backends on other nodes (as externalTrafficPolicy: Local; no XDP_TX, SNAT, DSR), lookups for packets to other addresses than the node's, " +
			"translation at the socket of NodePorts of other nodes, session affinity, external IPs, health checks, source ranges, " +
			"the end of connections by time, IPv6",
		Needs:     append(EBPF().Needs, netns.NativeXDP(), netns.TCX()),
		Refuses:   xdpRefuses,
		AtSockets: xdpServices,
		Passed:    xdpPassed,
	}
}

// xdpRefuses says why packets between a node's device and the pods of a network do not pass
// the node, or why their answers do not.
func xdpRefuses(n network.Network, _ result.Cell) string {
	if n.NoXDP != "" {
		return n.NoXDP
	}
	if n.NoHostPaths != "" {
		return "a NodePort's packets reach a pod by its node, and " + n.NoHostPaths
	}
	return ""
}

// xdpServices attaches the programs at a node's sockets, which know of no other node's address,
// and those at its device, which read the same maps.
func xdpServices(cgroup *os.File, self network.Node, _ []network.Node, services []network.Service) (network.ServiceUpdater, error) {
	held, err := ebpfServices(cgroup, []network.Node{self}, services, self.PodCIDR)
	if err != nil {
		return nil, err
	}
	more, err := attachNodePorts(self, held.maps)
	if err != nil {
		return nil, errors.Join(err, held.Close())
	}
	held.Closer = both{held.Closer, more}
	return held, nil
}

// both closes two.
type both [2]io.Closer

func (b both) Close() error { return errors.Join(b[0].Close(), b[1].Close()) }

// etherHeader is the length of an Ethernet header, in bytes.
const etherHeader = 14

// attachNodePorts attaches the XDP program at a node's device, and the program for answers
// there and at its tunnels: an answer is changed before a tunnel hides it.
func attachNodePorts(self network.Node, services map[string]*ebpf.Map) (io.Closer, error) {
	maps := map[string]*ebpf.Map{
		bpf.NodeportMapCnbServices: services[bpf.ServiceMapCnbServices], bpf.NodeportMapCnbBackends: services[bpf.ServiceMapCnbBackends],
	}
	frames, err := loadNodePorts(self, maps, etherHeader, bpf.NodeportProgCnbNodeport, bpf.NodeportProgCnbNodeportBack)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{bpf.NodeportMapCnbNpConns, bpf.NodeportMapCnbFrags, bpf.NodeportMapCnbNpCount} {
		maps[name] = frames.Maps[name]
	}
	packets, err := loadNodePorts(self, maps, 0, bpf.NodeportProgCnbNodeportBack)
	if err != nil {
		frames.Close()
		return nil, err
	}
	held := both{dataplane.HoldEBPF(frames), dataplane.HoldEBPF(packets)}
	if err := joinPackets(self); err != nil {
		return nil, errors.Join(err, held.Close())
	}
	err = netns.Do(self.NS, func() error {
		links, err := netns.Dump(netlink.LinkList)
		if err != nil {
			return err
		}
		for _, l := range links {
			if err := attachNodePort(self, l, frames, packets); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", self.Name, err), held.Close())
	}
	return held, nil
}

// joinPackets has a node's device join the packets of a stream after XDP, as a NIC does: a veth
// does so where it is asked to.
func joinPackets(self network.Node) error {
	port := netns.Port{NS: self.NS, Device: self.Device}
	err := port.SetOffload("gro", true)
	if err == nil {
		var on bool
		if on, err = port.Offload("gro"); err == nil && !on {
			err = errors.New("it stays off")
		}
	}
	if err != nil {
		return fmt.Errorf("%s: gro of %s: %w", self.Name, self.Device, err)
	}
	return nil
}

// attachNodePort attaches to one device what belongs there: frames are for devices with
// Ethernet headers, packets for those without.
func attachNodePort(self network.Node, l netlink.Link, frames, packets *ebpf.Collection) error {
	back := frames.Programs[bpf.NodeportProgCnbNodeportBack]
	switch a := l.Attrs(); {
	case a.Name == self.Device:
		if err := dataplane.AttachXDP(l, frames.Programs[bpf.NodeportProgCnbNodeport]); err != nil {
			return err
		}
	case l.Type() == "vxlan" || l.Type() == "geneve":
	case a.EncapType == "ether" || a.EncapType == "loopback":
		return nil
	default:
		back = packets.Programs[bpf.NodeportProgCnbNodeportBack]
	}
	return dataplane.AttachEBPFFirst(l, dataplane.Egress(), back)
}

// loadNodePorts loads programs for devices whose packets begin with a header of a length, with
// maps that others have.
func loadNodePorts(self network.Node, maps map[string]*ebpf.Map, header uint32, programs ...string) (*ebpf.Collection, error) {
	spec, err := bpf.LoadNodeport()
	if err != nil {
		return nil, err
	}
	for name, m := range maps {
		spec.Maps[name].MaxEntries = m.MaxEntries() // as many as there are services for
	}
	constants := map[string]any{"node_address": dataplane.EBPFAddress(self.Address.Addr()), "l3_offset": header}
	return dataplane.LoadEBPF(spec, constants, maps, programs...)
}

// nodePortCounters are those of enum nodeport_counter in bpf/nodeport.h.
func nodePortCounters() []string { return []string{"forward", "reverse", "new", "none", "unfinished"} }

// NodePortCounters reads what the programs of a node's NodePorts have done with packets: those
// that they led "forward" to a backend, of these the ones with an "unfinished" checksum,
// answers that got the service's address in "reverse", "new" connections, and packets to the
// node for which there is "none". A node whose driver does not run the program has none.
func NodePortCounters(self network.Node) (map[string]uint64, error) {
	return dataplane.XDPCounters(self.NS, self.Device, bpf.NodeportMapCnbNpCount, nodePortCounters()...)
}

// xdpPassed is how many packets to services, and answers, the programs of a node changed.
func xdpPassed(self network.Node) (requests, answers uint64, err error) {
	counts, err := NodePortCounters(self)
	return counts["forward"], counts["reverse"], err
}
