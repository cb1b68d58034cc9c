// Package ladder divides the cost of a network into steps: networks of which each has one
// thing more than the one below it.
package ladder

import (
	"context"
	"fmt"
	"strings"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/dataplane"
	"github.com/cnibench/cnibench/internal/result"
)

// Step is a network that adds one thing to another: both measured in the same blocks show
// what the step costs.
type Step struct {
	Network string
	// Below is the network that has all of it but one thing, Adds names that thing.
	Below, Adds string
	// Components are those of sampled stacks (unit.Components) whose functions are
	// the step's own. Other functions that a step runs are in others' as well: a packet in a
	// tunnel goes through IP twice.
	Components []string
}

// Steps are all steps. A network's ladder is the way from it down to the host. Networks
// whose names begin with result.LadderPrefix exist only for ladders: nobody runs them.
func Steps() []Step {
	const (
		host, bridge, conntrack, bridgeConntrack    = result.HostNetwork, result.LadderPrefix + "bridge", result.LadderPrefix + "conntrack", result.LadderPrefix + "bridge-conntrack"
		direct, directPolicy, gateway, bridgePlugin = "calico/direct", "calico/direct-policy", "flannel/host-gw", "bridge"
		ipip, vxlan, geneve, tracked                = "IP in IP", "VXLAN", "Geneve", ", tracked"
		rules                                       = "the policy's rules"
		hooks                                       = "netfilter's hooks at the bridge"
		track                                       = "connection tracking"
	)
	filter, tunnel, programs := []string{"netfilter"}, []string{"encapsulation"}, []string{"ebpf"}
	trackedTunnel := []string{"encapsulation", "netfilter"}
	return []Step{
		{direct, host, "veth pairs, forwarding", []string{"veth", "forwarding"}},
		{bridge, direct, "a bridge", []string{"bridge"}},
		{bridgePlugin, bridge, hooks, filter},
		{gateway, bridgeConntrack, "flanneld's rules", filter},
		{"flannel/vxlan", gateway, vxlan + tracked, trackedTunnel},
		{"flannel/vxlan-no-offload", "flannel/vxlan", "no offloads at the tunnel", []string{"encapsulation", "qdisc"}},
		{"flannel/ipip", gateway, ipip + tracked, trackedTunnel},
		{"flannel/udp", gateway, "a tunnel in user space" + tracked, []string{"encapsulation", "user", "socket", "netfilter"}},
		{"flannel/wireguard", gateway, "WireGuard" + tracked, trackedTunnel},
		{conntrack, direct, track, filter},
		{directPolicy, conntrack, rules, filter},
		{"calico/ipip", direct, ipip, tunnel},
		{"calico/ipip-policy", directPolicy, ipip + tracked, trackedTunnel},
		{"calico/vxlan", direct, vxlan, tunnel},
		{"calico/vxlan-policy", directPolicy, vxlan + tracked, trackedTunnel},
		{"calico/ebpf", direct, "eBPF at the devices", programs},
		{"canal", directPolicy, vxlan + tracked, trackedTunnel},
		{bridgeConntrack, bridgePlugin, track, filter},
		{"docker/bridge", bridgeConntrack, "Docker's rules", filter},
		{"kube-router", bridgeConntrack, "kube-router's rules", filter},
		{"kube-router/policy", "kube-router", rules, filter},
		{"docker/overlay", bridge, "VXLAN in place of forwarding", []string{"encapsulation", "forwarding"}},
		{"cilium/native", direct, "eBPF in place of forwarding", []string{"ebpf", "forwarding"}},
		{"cilium/native-policy", "cilium/native", "the policy's map", programs},
		{"cilium/vxlan", "cilium/native", vxlan, tunnel},
		{"cilium/vxlan-policy", "cilium/vxlan", "the policy's map", programs},
		{"cilium/geneve", "cilium/native", geneve, tunnel},
	}
}

// Of is the way from the bare network up to a network, the lowest step
// first; nil for a network that has none.
func Of(network string) []Step {
	of := map[string]Step{}
	for _, r := range Steps() {
		of[r.Network] = r
	}
	var down []Step
	for at := network; ; {
		r, ok := of[at]
		if !ok {
			break
		}
		down = append([]Step{r}, down...)
		at = r.Below
	}
	return down
}

// Names are the networks that have one of more than one step.
func Names() []string {
	var names []string
	for _, r := range Steps() {
		if len(Of(r.Network)) > 1 && !result.IsLadderOnly(r.Network) {
			names = append(names, r.Network)
		}
	}
	return names
}

// Bridge is n, the network bridge, without the hooks of netfilter that
// br_netfilter leads bridged packets through.
func Bridge(n network.Network) network.Network {
	n.Name, n.Summary = result.LadderPrefix+"bridge", "a step of ladders: the network bridge, and bridged packets do not pass netfilter"
	n.Wants = nil
	n.NoServices = "bridged packets do not pass netfilter, so a pod of the same node would answer past the service"
	base := n.SetUp
	n.SetUp = func(ctx context.Context, self network.Node, nodes []network.Node) error {
		if err := base(ctx, self, nodes); err != nil {
			return err
		}
		for _, path := range []string{"net/bridge/bridge-nf-call-iptables", "net/bridge/bridge-nf-call-ip6tables", "net/bridge/bridge-nf-call-arptables"} {
			if _, err := netns.Sysctl(self.NS, path); err != nil {
				continue // a kernel without br_netfilter has no such hooks
			}
			if err := netns.SetSysctls(self.NS, netns.Setting{Path: path, Value: "0"}); err != nil {
				return err
			}
		}
		return nil
	}
	return n
}

// Conntrack is a network with connection tracking on its nodes and no rule
// that a forwarded packet is checked against.
func Conntrack(n network.Network, name string) network.Network {
	n.Summary = "a step of ladders: " + n.Name + " with connection tracking, and no rule in the pods' way"
	n.Name = result.LadderPrefix + name
	n.Needs = append(append([]netns.Feature{}, n.Needs...), dataplane.NFTTool(), netns.NFTables(), netns.Conntrack())
	base := n.SetUp
	n.SetUp = func(ctx context.Context, self network.Node, nodes []network.Node) error {
		if err := base(ctx, self, nodes); err != nil {
			return err
		}
		return trackConnections(ctx, self)
	}
	return n
}

// trackConnections turns connection tracking on: the kernel does so in a
// namespace with the first rule that asks for a state. This one is where packets
// for the node itself come in, which no forwarded packet passes.
func trackConnections(ctx context.Context, self network.Node) error {
	const rule = "table inet cnb-ladder { chain in { type filter hook input priority filter; ct state invalid drop; }; }\n"
	r := exec.NewRunner()
	defer r.Close()
	_, err := r.Run(ctx, exec.Cmd{Argv: []string{dataplane.NFT, "-f", "-"}, NetNS: self.NS.Path, Stdin: strings.NewReader(rule)})
	if err != nil {
		return fmt.Errorf("%s: connection tracking: %w", self.Name, err)
	}
	return nil
}
