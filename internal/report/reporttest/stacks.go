package reporttest

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/flame"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/unit"
)

// ComponentOf is what the functions of burnt belong to.
func ComponentOf(stack []string) string {
	for prefix, c := range map[string]string{"[user]": unit.UserComponent, "do_": "socket", "tcp": "transport", "ip": "ip", "br_": "bridge", "nf_": "netfilter", "vxlan": "encapsulation"} {
		if strings.HasPrefix(stack[len(stack)-1], prefix) {
			return c
		}
	}
	return unit.OtherComponent
}

// Burnt gives every measured cell of a campaign stacks; prefix is before the
// names of functions.
func Burnt(in report.Input, prefix string) report.Input {
	var cells []result.Cell
	for _, s := range in.Analysis.Cells {
		if s.OK > 0 {
			cells = append(cells, s.Cell)
		}
	}
	g := flame.NewGraphs(cells, ComponentOf)
	for i, c := range cells {
		if !g.Sample(c) {
			continue
		}
		add := func(us int, frames ...string) {
			for k := range frames {
				frames[k] = prefix + frames[k]
			}
			g.Add(c, result.Stack{Frames: frames, Microseconds: int64(us)})
		}
		add(90_000+i, "[user]")
		add(12_000, "do_syscall_64")
		for k := range 12 {
			add(30_000+1000*k, "do_syscall_64", "tcp_sendmsg", fmt.Sprintf("tcp_part_%d", k), "ip_output")
		}
		if c.Network != result.HostNetwork {
			add(70_000, "do_syscall_64", "tcp_sendmsg", "tcp_part_0", "ip_output", "br_forward", "nf_hook_slow")
			add(400, "do_syscall_64", "tcp_sendmsg", "tcp_part_0", "ip_output", "br_forward", "br_forward")
		}
		if strings.Contains(c.Network, "vxlan") {
			add(50_000, "do_syscall_64", "tcp_sendmsg", "tcp_part_0", "ip_output", "vxlan_xmit", "ip_output")
		}
	}
	in.Flames = report.Flames{Graphs: g.All(), Alike: g.Alike}
	return in
}

// way is what a network's way costs beside that of the host, in microseconds a
// round trip, by component.
func ways() map[string]map[string]float64 {
	direct := map[string]float64{"veth": 1.2, "forwarding": 2.1, "ip": 0.9}
	policy := maps.Clone(direct)
	policy["netfilter"] = 5.5
	vxlan := map[string]float64{"veth": 1.2, "forwarding": 2.4, "bridge": 1.5, "encapsulation": 3.1, "ip": 2.2, "netfilter": 1.1}
	gateway := map[string]float64{"veth": 1.2, "forwarding": 2.1, "bridge": 1.5, "ip": 0.9, "netfilter": 1.1}
	return map[string]map[string]float64{
		result.HostNetwork: {}, "calico/direct": direct, "calico/direct-policy": policy, "flannel/vxlan": vxlan, "flannel/host-gw": gateway,
	}
}

// Stacked is a campaign with sampled stacks: round trips, and a stream on two MTUs.
func Stacked() report.Input {
	in := report.Input{Campaign: campaign.Campaign{Name: "stacked", Sampling: Sampling()}, Environment: FixtureEnvironment(), Dir: "results/s"}
	random := rand.New(rand.NewPCG(5, 6))
	base := map[string]float64{"user": 2, "socket": 6, "transport": 8, "ip": 2, "driver": 3, "scheduling": 5, "memory": 2, "other": 0.5, "qdisc": 1}
	var samples []result.Sample
	for block := 1; block <= 8; block++ {
		for _, network := range []string{"host", "calico/direct", "calico/direct-policy", "flannel/vxlan", "flannel/host-gw"} {
			for i, c := range []result.Cell{CellOf(network, "tcp_rr", 64), CellOf(network, "tcp_stream", 9000), CellOf(network, "tcp_stream", 9000)} {
				if i == 2 {
					c.MTU = 9000
				}
				sec := 1.0
				s := result.Sample{Schema: 1, ID: fmt.Sprintf("b%02d-%s-%d", block, network, i), Block: block, Attempt: 1, Cell: c, Status: result.StatusOK,
					RequestedSeconds: 1, MeasuredSeconds: &sec, Machines: map[string]string{"client_node": "a", "server_node": "a"}}
				work := 20_000.0
				s.Metrics = map[string]float64{"transactions_per_second": work}
				if i > 0 {
					s.Metrics = map[string]float64{"throughput_bits_per_second": 1e10}
					work = 1e10 / 8 / 40_000 // a unit of base for 40 kB
				}
				end := map[string]float64{"window_seconds": 1, "cpu_user_seconds": 0.1, "cpu_system_seconds": 0.5, "cpu_irq_seconds": 0, "cpu_softirq_seconds": 0.3}
				for _, k := range unit.Components() {
					us := base[k.Name] + ways()[network][k.Name]
					if i == 2 {
						us /= 3 // fewer packets
					}
					end[unit.ComponentSeconds(k.Name)] = us * 1e-6 * work * math.Exp(0.03*random.NormFloat64())
				}
				end["cpu_system_seconds"] = -0.4
				for _, k := range unit.Components() {
					end["cpu_system_seconds"] += end[unit.ComponentSeconds(k.Name)]
				}
				end[unit.ComponentSeconds("elsewhere")] = 0.1
				end["first_edge_cpu_seconds"], end["stack_samples"] = 1.5e-3, 1000
				s.Probes = map[string]map[string]float64{"client_node": {"window_seconds": 1, "first_edge_cpu_seconds": 0.5e-3}, "server_node": end}
				samples = append(samples, s)
			}
		}
	}
	return Analyse(in, samples)
}

// ladders are those of the networks of these tests; the step between bridge and
// veth pairs was not measured.
func ladders(network string) []dataset.Step {
	direct := dataset.Step{Network: "calico/direct", Adds: "veth pairs, forwarding", Components: []string{"veth", "forwarding"}}
	bridge := dataset.Step{Network: "ladder/bridge", Adds: "a bridge", Components: []string{"bridge"}}
	gateway := dataset.Step{Network: "flannel/host-gw", Adds: "netfilter's hooks at the bridge", Components: []string{"netfilter"}}
	switch network {
	case "calico/direct-policy":
		return []dataset.Step{direct, {Network: network, Adds: "the policy's rules", Components: []string{"netfilter"}}}
	case "flannel/host-gw":
		return []dataset.Step{direct, bridge, gateway}
	case "flannel/vxlan":
		return []dataset.Step{direct, bridge, gateway, {Network: network, Adds: "VXLAN", Components: []string{"encapsulation"}}}
	}
	return nil
}
