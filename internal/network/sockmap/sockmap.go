// Package sockmap is an acceleration on top of any network: TCP between pods of one node
// goes from socket to socket.
package sockmap

import (
	"fmt"
	"io"
	"os"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"github.com/cnibench/cnibench/bpf"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/dataplane"
	"github.com/cnibench/cnibench/internal/result"
)

// On is a network on which TCP between pods of one node bypasses it:
// what one socket sends is put into the other's receive queue. All else takes
// the network's own way.
func On(n network.Network) network.Network {
	n.Name += "+sockmap"
	n.Summary += "; TCP between pods of one node bypasses it (sockops and sk_msg)"
	model := "Intel's istio-tcpip-bypass and Cilium's former sockops (own programs, bpf/sockmap.c), on top of the network"
	leavesOut := "IPv6; loopback addresses (a sidecar's), which several pods of a node have; connections to services that rules " +
		"on the node carry out, whose ends do not know each other (service_proxies: [ebpf] does not stand in the way)"
	if n.Model != "" {
		model, leavesOut = n.Model+"; "+model, n.LeavesOut+"; "+leavesOut
	}
	n.Model, n.LeavesOut = model, leavesOut
	if n.Kind == result.KindReal { // the network is, the bypass is not
		n.Kind = result.KindModel
	}
	n.Needs = append(append([]netns.Feature{}, n.Needs...), netns.BPFSockmap(), netns.Cgroup2())
	for _, f := range n.InKernel {
		n.Needs = append(n.Needs, inKernel(f))
	}
	if n.Distance != nil { // inside a node, TCP no longer takes the way that was counted
		n.Distance = &result.Distance{BetweenNodesRatio: n.Distance.BetweenNodesRatio}
	}
	n.Cgroup = attach
	n.IPv6 = false
	return n
}

// inKernel is a feature without which a network's packets pass user space. The
// last packet of a TCP handshake is then still on its way when the client sends: the
// server's socket cannot be known yet, and the client's side would stay on the
// network, of long connections now and then, of short ones always.
func inKernel(f netns.Feature) netns.Feature {
	probe := f.Probe
	f.Name += " for sockmap"
	f.Probe = func() error {
		if err := probe(); err != nil {
			return fmt.Errorf("%w: through a switch in user space a client sends before the server has its connection, so TCP cannot bypass it", err)
		}
		return nil
	}
	return f
}

// attach makes a node's map of sockets and the programs that use it, for
// the programs in a cgroup. The kernel detaches cnb_message from the map when
// nobody holds the map any more, so it must be held for as long as the node is
// used; cnb_established goes with the cgroup.
func attach(cgroup *os.File) (io.Closer, error) {
	spec, err := bpf.LoadSockmap()
	if err != nil {
		return nil, err
	}
	coll, err := dataplane.LoadEBPF(spec, nil, nil, bpf.SockmapProgCnbEstablished, bpf.SockmapProgCnbMessage)
	if err != nil {
		return nil, err
	}
	for _, at := range []link.RawAttachProgramOptions{
		{Target: coll.Maps[bpf.SockmapMapCnbSockets].FD(), Program: coll.Programs[bpf.SockmapProgCnbMessage], Attach: ebpf.AttachSkMsgVerdict},
		{Target: int(cgroup.Fd()), Program: coll.Programs[bpf.SockmapProgCnbEstablished], Attach: ebpf.AttachCGroupSockOps, Flags: dataplane.AllowMulti},
	} {
		if err := link.RawAttachProgram(at); err != nil {
			coll.Close()
			return nil, fmt.Errorf("eBPF program %s: %w", at.Program, err)
		}
	}
	return dataplane.HoldEBPF(coll), nil
}

// Counters reads what the programs of a node's cgroup have done since
// they were attached: sockets that were "noted", messages that were
// "redirected" to the other socket, and those that went "plain", by the
// network.
func Counters(cgroup string) (map[string]uint64, error) {
	dir, err := os.Open(cgroup)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return dataplane.CgroupCounters(dir, ebpf.AttachCGroupSockOps, bpf.SockmapMapCnbSockCount, "noted", "redirected", "plain")
}
