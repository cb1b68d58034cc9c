package serviceproxy

import (
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"github.com/cnibench/cnibench/bpf"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/dataplane"
)

// EBPF is Cilium's way to carry services out where it is in kube-proxy's
// place.
func EBPF() network.ServiceProxy {
	return network.ServiceProxy{
		Name:    "ebpf",
		Summary: "eBPF at the socket, as Cilium: what a program connects to a service goes to a backend from the start",
		Model:   "Cilium v1.18.5 bpf/bpf_sock.c (__sock4_xlate_fwd, __sock4_xlate_rev), by own programs (bpf/service.c)",
		LeavesOut: "cilium-agent, session affinity, traffic from outside (bpf/lib/nodeport.h), external IPs, ports of hosts, health checks, " +
			"the check of ports that a service has bound (cil_sock4_post_bind), clean-up at the socket's end (cil_sock_release), IPv6",
		Needs: []netns.Feature{netns.BPFSocketAddress(), netns.Cgroup2()},
		AtSockets: func(cgroup *os.File, _ network.Node, nodes []network.Node, services []network.Service) (network.ServiceUpdater, error) {
			return ebpfServices(cgroup, nodes, services, netip.Prefix{})
		},
	}
}

// ebpfServices attaches the programs to a node's cgroup, with maps of its own.
// They go with the cgroup. NodePorts are those at the addresses of nodes, and for
// packets from outside those with backends in local.
func ebpfServices(cgroup *os.File, nodes []network.Node, services []network.Service, local netip.Prefix) (*ebpfTables, error) {
	spec, err := bpf.LoadService()
	if err != nil {
		return nil, err
	}
	at := []struct {
		program string
		attach  ebpf.AttachType
	}{
		{bpf.ServiceProgCnbConnect4, ebpf.AttachCGroupInet4Connect},
		{bpf.ServiceProgCnbSendmsg4, ebpf.AttachCGroupUDP4Sendmsg},
		{bpf.ServiceProgCnbRecvmsg4, ebpf.AttachCGroupUDP4Recvmsg},
		{bpf.ServiceProgCnbGetpeername4, ebpf.AttachCgroupInet4GetPeername},
	}
	var names []string
	for _, a := range at {
		names = append(names, a.program)
	}
	entries := 0
	for _, s := range services {
		entries += 3 * (1 + len(s.Endpoints)) // with a NodePort in both scopes
	}
	entries += ebpfSpare
	for _, m := range []string{bpf.ServiceMapCnbServices, bpf.ServiceMapCnbBackends} {
		spec.Maps[m].MaxEntries = max(spec.Maps[m].MaxEntries, uint32(entries))
	}
	coll, err := dataplane.LoadEBPF(spec, nil, nil, names...)
	if err != nil {
		return nil, err
	}
	held := &ebpfTables{Closer: dataplane.HoldEBPF(coll), maps: coll.Maps, backends: map[netip.AddrPort]uint32{}, local: local}
	if err := held.fill(nodes, services); err != nil {
		coll.Close()
		return nil, err
	}
	for _, a := range at {
		err := link.RawAttachProgram(link.RawAttachProgramOptions{
			Target: int(cgroup.Fd()), Program: coll.Programs[a.program], Attach: a.attach, Flags: dataplane.AllowMulti,
		})
		if err != nil {
			coll.Close()
			return nil, fmt.Errorf("eBPF program %s: %w", a.program, err)
		}
	}
	return held, nil
}

// ebpfSpare is room for backends that services get later.
const ebpfSpare = 16

// ebpfTables are the maps of one node, which live as long as they are not closed.
type ebpfTables struct {
	io.Closer
	maps     map[string]*ebpf.Map
	backends map[netip.AddrPort]uint32 // the number of each
	// local is where the backends are that packets from outside to a NodePort are led to; not
	// valid where programs at sockets alone carry services out.
	local netip.Prefix
}

// fill writes each service's ports, its backends beside them, and which addresses are
// nodes'.
func (h *ebpfTables) fill(nodes []network.Node, services []network.Service) error {
	for _, n := range nodes {
		if err := h.maps[bpf.ServiceMapCnbNodes].Put(dataplane.EBPFAddress(n.Address.Addr()), uint32(n.Index)); err != nil {
			return fmt.Errorf("node %s: %w", n.Name, err)
		}
	}
	for _, s := range services {
		if err := h.UpdateService(s); err != nil {
			return err
		}
	}
	return nil
}

// UpdateService writes a service's backends, and then the slots that name them, as Cilium
// does. Backends that no service has any more stay.
func (h *ebpfTables) UpdateService(s network.Service) error {
	for _, e := range s.Endpoints {
		if h.backends[e] != 0 {
			continue
		}
		n := uint32(len(h.backends) + 1)
		backend := bpf.ServiceServiceBackend{Address: dataplane.EBPFAddress(e.Addr()), Port: networkOrder(e.Port())}
		if err := h.maps[bpf.ServiceMapCnbBackends].Put(n, backend); err != nil {
			return fmt.Errorf("backend %s: %w", e, err)
		}
		h.backends[e] = n
	}
	if err := h.put(s, bpf.ServiceServiceKey{Address: dataplane.EBPFAddress(s.Address.Addr()), Port: networkOrder(s.Address.Port())}, s.Endpoints); err != nil || s.NodePort == 0 {
		return err
	}
	key := bpf.ServiceServiceKey{Port: networkOrder(s.NodePort)}
	if err := h.put(s, key, s.Endpoints); err != nil || !h.local.IsValid() {
		return err
	}
	key.Scope = scopeExternal
	notLocal := func(e netip.AddrPort) bool { return !h.local.Contains(e.Addr()) }
	return h.put(s, key, slices.DeleteFunc(slices.Clone(s.Endpoints), notLocal))
}

// scopeExternal is SCOPE_EXTERNAL of bpf/services.h.
const scopeExternal = 1

// put writes the slots of one key of a service.
func (h *ebpfTables) put(s network.Service, key bpf.ServiceServiceKey, endpoints []netip.AddrPort) error {
	key.Protocol = uint8(s.ProtocolNumber())
	slots := []bpf.ServiceServiceSlot{{Count: uint32(len(endpoints))}}
	for _, e := range endpoints {
		slots = append(slots, bpf.ServiceServiceSlot{Backend: h.backends[e]})
	}
	for i, slot := range slots {
		key.Slot = uint32(i)
		if err := h.maps[bpf.ServiceMapCnbServices].Put(key, slot); err != nil {
			return fmt.Errorf("service %s: %w", s, err)
		}
	}
	return nil
}

// Counters reads what the programs at a node's cgroup have done: sockets
// and datagrams that they led "forward" to a backend and "reverse" to a
// service, and those to "none".
func Counters(cgroup string) (map[string]uint64, error) {
	dir, err := os.Open(cgroup)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return dataplane.CgroupCounters(dir, ebpf.AttachCGroupInet4Connect, bpf.ServiceMapCnbServiceCnt, "forward", "reverse", "none")
}

// networkOrder is a port as it is in a packet, for a little-endian machine.
func networkOrder(port uint16) uint16 { return port<<8 | port>>8 }
