package summary_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/stat/stattest"
	"github.com/cnibench/cnibench/internal/stat/summary"
)

// stepsOf is the ladder of flannel/vxlan.
func stepsOf(network string) []dataset.Step {
	all := []dataset.Step{
		{Network: "calico/direct", Adds: "veth pairs", Components: []string{"veth", "forwarding"}},
		{Network: "ladder/bridge", Adds: "a bridge", Components: []string{"bridge"}},
		{Network: "flannel/host-gw", Adds: "netfilter's hooks", Components: []string{"netfilter"}},
		{Network: "flannel/vxlan", Adds: "VXLAN", Components: []string{"encapsulation"}},
	}
	i := slices.IndexFunc(all, func(r dataset.Step) bool { return r.Network == network })
	return all[:i+1]
}

// stepSample is a sample of 10,000 round trips a second: what they take is in the
// components, in microseconds each, and in CPU time.
func stepSample(network string, block int, us map[string]float64) result.Sample {
	const perSecond = 1e4
	seconds, total := map[string]float64{}, 0.0
	for name, v := range us {
		seconds[name] = v * 1e-6 * perSecond
		total += seconds[name]
	}
	s := stackedSample(stattest.RROf(network), block, perSecond, seconds)
	s.Probes["client_node_idle"]["component_scheduling_cpu_seconds"], s.Probes["server_node_idle"]["component_scheduling_cpu_seconds"] = 0, 0
	for _, mode := range dataset.BusyModes() {
		s.Probes["server_node"][mode] = 0
	}
	s.Probes["server_node"]["cpu_system_seconds"] = total
	return s
}

// ladderSamples are a campaign of all steps. Encapsulation takes 10 µs in its own
// functions, and makes 15 µs of others run again.
func ladderSamples(blocks int, without func(network string, block int) bool) []result.Sample {
	r := rand.New(rand.NewPCG(7, 8))
	var out []result.Sample
	for b := 1; b <= blocks; b++ {
		us := map[string]float64{"socket": 60, "ip": 10, "driver": 30}
		noisy := func(network string, add map[string]float64) {
			for name, v := range add {
				us[name] += v
			}
			if without(network, b) {
				return
			}
			now := map[string]float64{}
			for _, name := range stattest.SortedKeys(us) {
				now[name] = us[name] * (1 + 0.002*r.NormFloat64())
			}
			out = append(out, stepSample(network, b, now))
		}
		noisy(result.HostNetwork, nil)
		noisy("calico/direct", map[string]float64{"veth": 6, "forwarding": 4})
		noisy("ladder/bridge", map[string]float64{"bridge": 5})
		noisy("flannel/host-gw", map[string]float64{"netfilter": 2})
		noisy("flannel/vxlan", map[string]float64{"encapsulation": 10, "ip": 9, "driver": 6})
	}
	return out
}

func ladderOf(t *testing.T, samples []result.Sample, network string) *summary.Ladder {
	t.Helper()
	return stattest.Find(t, stat.Analyse(samples, dataset.Options{Ladder: stepsOf}), stattest.RROf(network)).Ladder
}

func all(string, int) bool { return false }

func TestLadder(t *testing.T) {
	l := ladderOf(t, ladderSamples(8, all), "flannel/vxlan")
	if l == nil || l.Metric != "cpu_seconds_per_transaction" || len(l.Steps) != 4 {
		t.Fatalf("ladder: %+v", l)
	}
	for i, want := range []float64{10, 5, 2, 25} {
		stattest.Near(t, l.Steps[i].Network, l.Steps[i].More.Value, want*1e-6, 0.5e-6)
	}
	if s := l.Steps[3]; s.Below != "flannel/host-gw" || strings.Join(s.Adds, ",") != "VXLAN" {
		t.Errorf("step %+v", s)
	}
	stattest.Near(t, "sum", l.Sum.Value, l.Direct.Value, 1e-15) // every block has all
	stattest.Near(t, "direct", l.Direct.Value, 42e-6, 1e-6)
	if l := ladderOf(t, ladderSamples(8, all), "calico/direct"); l != nil {
		t.Errorf("a ladder of one step: %+v", l)
	}
	if l := ladderOf(t, ladderSamples(8, all), "ladder/bridge"); l == nil || len(l.Steps) != 2 {
		t.Errorf("ladder/bridge: %+v", l)
	}
}

// The steps add up to the direct difference, within its interval where blocks are
// not the same.
func TestLadderAddsUp(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 30 {
		l := ladderOf(t, ladderSamples(12, func(network string, block int) bool {
			return network != result.HostNetwork && network != "flannel/vxlan" && r.Float64() < 0.1
		}), "flannel/vxlan")
		if l == nil {
			t.Fatal("no ladder")
		}
		steps := 0.0
		for _, s := range l.Steps {
			steps += s.More.Value
		}
		stattest.Near(t, "the steps", steps, l.Sum.Value, 1e-15)
		low, high, ok := l.Direct.Interval()
		if !ok || l.Direct.N != 12 || l.Sum.N > 12 || l.Sum.Value < low || l.Sum.Value > high {
			t.Errorf("steps of %d blocks add up to %v, the direct difference of %d is %v to %v", l.Sum.N, l.Sum.Value, l.Direct.N, low, high)
		}
	}
}

// What was not measured apart is one step with the next.
func TestLadderWithoutAStep(t *testing.T) {
	l := ladderOf(t, ladderSamples(8, func(network string, _ int) bool { return network == "ladder/bridge" }), "flannel/vxlan")
	if l == nil || len(l.Steps) != 3 || strings.Join(l.Steps[1].Adds, ",") != "a bridge,netfilter's hooks" || l.Steps[1].Below != "calico/direct" {
		t.Fatalf("ladder: %+v", l)
	}
	stattest.Near(t, "both", l.Steps[1].More.Value, 7e-6, 0.5e-6)
	for _, gone := range []string{result.HostNetwork, "flannel/vxlan"} {
		without := ladderSamples(8, func(network string, _ int) bool { return network == gone })
		for _, s := range stat.Analyse(without, dataset.Options{Ladder: stepsOf}).Cells {
			if s.Cell.Network == "flannel/vxlan" && s.Ladder != nil {
				t.Errorf("a ladder without %s", gone)
			}
		}
	}
	if l := stattest.Find(t, stat.Analyse(ladderSamples(8, all), dataset.Options{}), stattest.RROf("flannel/vxlan")).Ladder; l != nil {
		t.Errorf("a ladder that nobody described: %+v", l)
	}
}

// Steps and stacks agree where all of a step is in its own functions, and do not
// where it makes others run again.
func TestLadderAgainstStacks(t *testing.T) {
	l := ladderOf(t, ladderSamples(10, all), "flannel/vxlan")
	if len(l.Checks) != 4 {
		t.Fatalf("checks: %+v", l.Checks)
	}
	for _, c := range l.Checks[:3] {
		if c.Disagree || len(c.Elsewhere) > 0 {
			t.Errorf("%v: %+v", c.Components, c)
		}
	}
	c := l.Checks[3]
	stattest.Near(t, "steps", c.Steps.Value, 25e-6, 1e-6)
	stattest.Near(t, "stacks", c.Stacks.Value, 10e-6, 0.1e-6)
	if !c.Disagree || len(c.Elsewhere) != 2 || c.Elsewhere[0].Name != "ip" || c.Elsewhere[1].Name != "driver" {
		t.Fatalf("%+v", c)
	}
	stattest.Near(t, "difference", c.Difference.Value, c.Steps.Value-c.Stacks.Value, 1e-15)
	stattest.Near(t, "ip", c.Elsewhere[0].Seconds.Value, 9e-6, 0.5e-6)
}

// Instructions are taken where they were counted for every step.
func TestLadderOfInstructions(t *testing.T) {
	samples := ladderSamples(5, all)
	for i, s := range samples {
		for end, n := range map[string]float64{"server_node": 1, "client_node_idle": 0, "server_node_idle": 0} {
			s.Probes[end]["instructions_user"], s.Probes[end]["instructions_kernel"] = n*1e4, n*1e4*float64(1000*(1+i%5))
		}
	}
	l := ladderOf(t, samples, "flannel/vxlan")
	if l == nil || l.Metric != "instructions_per_transaction" {
		t.Fatalf("ladder: %+v", l)
	}
	for _, s := range l.Steps {
		stattest.Near(t, s.Network, s.More.Value, 1000, 1e-9)
	}
	if len(l.Checks) != 4 || math.Abs(l.Checks[0].Steps.Value-10e-6) > 1e-6 {
		t.Errorf("checks are of CPU time: %+v", l.Checks)
	}
	delete(samples[1].Probes["server_node"], "instructions_user") // of one step in one block
	if l := ladderOf(t, samples, "flannel/vxlan"); l == nil || l.Sum.N != 4 {
		t.Errorf("ladder: %+v", l)
	}
}
