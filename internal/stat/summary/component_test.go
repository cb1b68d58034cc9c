package summary_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/stat/stattest"
	"github.com/cnibench/cnibench/internal/unit"
)

// stackedSample is a sample of round trips with sampled stacks at the server's
// end of one machine: seconds in each component of a window of one second.
func stackedSample(c result.Cell, block int, perSecond float64, seconds map[string]float64) result.Sample {
	s := stattest.OKSample(c, block, stattest.Metrics{"transactions_per_second": perSecond})
	end, idle := stattest.Metrics{"window_seconds": 1}, stattest.Metrics{"window_seconds": 0.5}
	for _, k := range unit.Components() {
		end[unit.ComponentSeconds(k.Name)], idle[unit.ComponentSeconds(k.Name)] = seconds[k.Name], 0
	}
	idle[unit.ComponentSeconds("scheduling")] = 0.01 // 0.02 cores
	s.Probes = map[string]map[string]float64{"client_node": {"window_seconds": 1}, "server_node": end, "client_node_idle": idle, "server_node_idle": idle}
	s.Machines = map[string]string{"client_node": "a", "server_node": "a"}
	return s
}

// By hand: 1.5 busy seconds, 0.3 of them elsewhere, 0.02 idle scheduling, over
// 10,000 round trips is 118 µs each.
func TestAttribution(t *testing.T) {
	host, bridge := stattest.RROf(result.HostNetwork), stattest.RROf("bridge")
	of := map[string]float64{"user": 0.2, "socket": 0.3, "transport": 0.4, "bridge": 0.1, "scheduling": 0.12, "other": 0.08, "elsewhere": 0.3}
	base := map[string]float64{"user": 0.2, "socket": 0.3, "transport": 0.4, "scheduling": 0.12, "other": 0.08, "elsewhere": 0.4}
	var samples []result.Sample
	for b := 1; b <= 3; b++ {
		samples = append(samples, stackedSample(host, b, 10_000, base), stackedSample(bridge, b, 10_000, of))
	}
	a := stattest.Find(t, stat.Analyse(samples, dataset.Options{}), bridge).Attribution
	if a == nil || a.Work != "transaction" {
		t.Fatalf("attribution: %+v", a)
	}
	stattest.Near(t, "total", a.Total.Value, 118e-6, 1e-12)
	stattest.Near(t, "more than host", a.More.Value, 10e-6, 1e-12)
	stattest.Near(t, "elsewhere", *a.ElsewhereShare, 0.2, 1e-9)
	for name, want := range map[string]float64{"user": 20e-6, "bridge": 10e-6, "scheduling": 10e-6, "netfilter": 0} {
		c, ok := a.Component(name)
		if !ok {
			t.Errorf("no %s", name)
		}
		stattest.Near(t, name, c.Seconds.Value, want, 1e-12)
	}
	if c, _ := a.Component("bridge"); c.More == nil || math.Abs(c.More.Value-10e-6) > 1e-12 {
		t.Errorf("bridge more than host: %v", c.More)
	}
	if _, ok := a.Component(unit.ElsewhereComponent); ok {
		t.Error("traffic is charged with what others did")
	}
	if b := stattest.Find(t, stat.Analyse(samples, dataset.Options{}), host).Attribution; b == nil || b.More != nil {
		t.Errorf("the baseline: %+v", b)
	}
}

// Components add up to the total in every campaign, whatever the noise, and the
// differences to the difference.
func TestComponentsAddUp(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	host, bridge := stattest.RROf(result.HostNetwork), stattest.RROf("bridge")
	for range 20 {
		var samples []result.Sample
		for b := 1; b <= 7; b++ {
			for _, c := range []result.Cell{host, bridge} {
				of := map[string]float64{}
				for _, k := range unit.Components() {
					of[k.Name] = r.Float64()
				}
				samples = append(samples, stackedSample(c, b, 1e4*(1+r.Float64()), of))
			}
		}
		a := stattest.Find(t, stat.Analyse(samples, dataset.Options{}), bridge).Attribution
		var sum, more, share float64
		for _, c := range a.Components {
			sum, more, share = sum+c.Seconds.Value, more+c.More.Value, share+*c.Share
		}
		stattest.Near(t, "sum of components over their total", sum/a.Total.Value, 1, 1e-9)
		stattest.Near(t, "sum of differences", more, a.More.Value, 1e-12)
		stattest.Near(t, "sum of shares", share, 1, 1e-9)
	}
}

// What was not sampled is not attributed, and never 0.
func TestAttributionAbsent(t *testing.T) {
	bridge := stattest.RROf("bridge")
	without := stattest.OKSample(bridge, 1, stattest.Metrics{"transactions_per_second": 1e4})
	if a := stattest.Find(t, stat.Analyse([]result.Sample{without}, dataset.Options{}), bridge).Attribution; a != nil {
		t.Errorf("without stacks: %+v", a)
	}
	// One of two machines was not sampled: its part is unknown, not nothing.
	half := stackedSample(bridge, 1, 1e4, map[string]float64{"user": 0.5})
	half.Machines["client_node"] = "b"
	if a := stattest.Find(t, stat.Analyse([]result.Sample{half}, dataset.Options{}), bridge).Attribution; a != nil {
		t.Errorf("with one machine of two: %+v", a)
	}
	// A component that one sample does not have leaves that sample out.
	partial := stackedSample(bridge, 1, 1e4, map[string]float64{"user": 0.5})
	delete(partial.Probes["server_node"], unit.ComponentSeconds("veth"))
	if a := stattest.Find(t, stat.Analyse([]result.Sample{partial}, dataset.Options{}), bridge).Attribution; a != nil {
		t.Errorf("with a component missing: %+v", a)
	}
}

// Where idle time takes all away there is no whole to have a share of.
func TestShareOfNothing(t *testing.T) {
	var samples []result.Sample
	for b := range 3 {
		of := map[string]float64{}
		for _, k := range unit.Components() {
			of[k.Name] = -0.1
		}
		samples = append(samples, stackedSample(stattest.RROf("bridge"), b, 1e4, of))
	}
	for _, c := range stattest.Find(t, stat.Analyse(samples, dataset.Options{}), stattest.RROf("bridge")).Attribution.Components {
		if c.Share != nil {
			t.Errorf("%s has a share of a total below zero: %v", c.Name, *c.Share)
		}
	}
}
