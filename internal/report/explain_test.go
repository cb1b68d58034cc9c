package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/unit"
)

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

// stacked is a campaign with sampled stacks: round trips, and a stream on two MTUs.
func stacked() Input {
	in := Input{Campaign: campaign.Campaign{Name: "stacked", Sampling: sampling()}, Environment: fixtureEnvironment(), Dir: "results/s"}
	random := rand.New(rand.NewPCG(5, 6))
	base := map[string]float64{"user": 2, "socket": 6, "transport": 8, "ip": 2, "driver": 3, "scheduling": 5, "memory": 2, "other": 0.5, "qdisc": 1}
	var samples []result.Sample
	for block := 1; block <= 8; block++ {
		for _, network := range []string{"host", "calico/direct", "calico/direct-policy", "flannel/vxlan", "flannel/host-gw"} {
			for i, c := range []result.Cell{cellOf(network, "tcp_rr", 64), cellOf(network, "tcp_stream", 9000), cellOf(network, "tcp_stream", 9000)} {
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
	return analyse(in, samples)
}

func explain(t *testing.T, in Input, opt Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := Explain(&b, in, opt); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestExplainGolden(t *testing.T) {
	golden(t, "explain.txt", explain(t, stacked(), Options{Width: 100, Unicode: true}))
	golden(t, "explain-where.md", render(t, "markdown", stacked(), Options{}))
	for name, in := range map[string]Input{"explain-without-stacks.txt": withoutStacks(), "explain-empty.txt": {Campaign: campaign.Campaign{Name: "empty"}}} {
		golden(t, name, explain(t, in, Options{Width: 80, Unicode: true}))
	}
	var b bytes.Buffer
	if err := ExplainJSON(&b, stacked()); err != nil {
		t.Fatal(err)
	}
	golden(t, "explain.json", b.String())
}

// withoutStacks is a campaign on a machine that lets none be sampled.
func withoutStacks() Input {
	in := normal()
	in.Environment.Absent = []string{"probe stacks: kernel stacks: CPU 0: perf_event_open: permission denied (run as root, or sysctl -w kernel.perf_event_paranoid=-1)"}
	return in
}

// Every statement of what would change a cost is one of figures that were
// measured, and those that cannot be told apart are said to be so.
func TestExplainChanges(t *testing.T) {
	var b bytes.Buffer
	if err := ExplainJSON(&b, stacked()); err != nil {
		t.Fatal(err)
	}
	var got explained
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	in := stacked()
	found := map[string]bool{}
	for _, e := range got.Networks {
		for _, c := range e.Changes {
			found[e.Network+" "+c.Network+" "+fmt.Sprint(c.MTU)+" "+c.Traffic] = true
			if c.ToldApart == overlap(c.Now, c.Then) {
				t.Errorf("%s: %+v", e.Network, c)
			}
			known := false
			for _, s := range in.Analysis.Cells {
				known = known || s.Cell.Network == c.Network && s.Cell.MTU == c.MTU && s.Cell.Traffic() == c.Traffic && s.Attribution.Total.Value == c.Then.Value
			}
			if !known {
				t.Errorf("%s: %q is of no cell", e.Network, c.Words)
			}
		}
	}
	for _, want := range []string{
		"flannel/vxlan flannel/host-gw 1500 tcp_rr 64 B", "calico/direct-policy calico/direct 1500 tcp_rr 64 B",
		"flannel/vxlan flannel/vxlan 9000 tcp_stream 9000 B", "calico/direct calico/direct 9000 tcp_stream 9000 B",
	} {
		if !found[want] {
			t.Errorf("no change %q among %v", want, found)
		}
	}
	if found["flannel/vxlan flannel/vxlan 9000 tcp_rr 64 B"] {
		t.Error("a larger MTU of a traffic that was not measured on it")
	}
	text := explain(t, stacked(), Options{Width: 400, Unicode: true})
	for _, want := range []string{"netfilter +5.", "encapsulation +3.", "native routing instead of the tunnel", "no network policy", "an MTU of 9000"} {
		if !strings.Contains(text, want) {
			t.Errorf("the text says nothing of %q:\n%s", want, text)
		}
	}
}

// ladders are those of the networks of these tests; the step between bridge and
// veth pairs was not measured.
func ladders(network string) []stat.Step {
	direct := stat.Step{Network: "calico/direct", Adds: "veth pairs, forwarding", Components: []string{"veth", "forwarding"}}
	bridge := stat.Step{Network: "ladder/bridge", Adds: "a bridge", Components: []string{"bridge"}}
	gateway := stat.Step{Network: "flannel/host-gw", Adds: "netfilter's hooks at the bridge", Components: []string{"netfilter"}}
	switch network {
	case "calico/direct-policy":
		return []stat.Step{direct, {Network: network, Adds: "the policy's rules", Components: []string{"netfilter"}}}
	case "flannel/host-gw":
		return []stat.Step{direct, bridge, gateway}
	case "flannel/vxlan":
		return []stat.Step{direct, bridge, gateway, {Network: network, Adds: "VXLAN", Components: []string{"encapsulation"}}}
	}
	return nil
}

// A ladder is told with what it adds up to, and where it and the stacks disagree
// that is said: the outer header's way through IP is none of the tunnel's functions.
func TestExplainLadder(t *testing.T) {
	text := explain(t, stacked(), Options{Width: 100, Unicode: true})
	for _, want := range []string{
		"Step by step, tcp_rr 64 B: CPU time of the machines per transaction", "+ VXLAN ", "+ a bridge, netfilter's hooks at the bridge ", "all steps ", "directly, less host ",
		"! Not every step was measured apart: ladders: [flannel/vxlan] in the campaign", "! Ladder and stacks disagree on encapsulation: the steps (VXLAN) come to +4.", "IP +1.",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the text says nothing of %q:\n%s", want, text)
		}
	}
	in := stacked()
	for i := range in.Analysis.Cells {
		if l := in.Analysis.Cells[i].Ladder; l != nil {
			off := *l.Direct.High * 1.01
			l.Sum.Value = off
			l.Metric = strings.Replace(l.Metric, "cpu_seconds", "instructions", 1)
		}
	}
	text = explain(t, in, Options{Width: 100, Unicode: true})
	for _, want := range []string{"The steps do not add up to the direct difference", "instructions per transaction"} {
		if !strings.Contains(text, want) {
			t.Errorf("the text says nothing of %q", want)
		}
	}
}
