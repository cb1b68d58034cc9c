package stat

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/result"
)

// Each test here is named after a mistake that a published tool makes, and
// holds its opposite. TestPeerMistakeGroupedOrder is in coverage_test.go.

// The p99 of several runs is no mean of their p99s.
func TestPeerMistakeAveragedP99(t *testing.T) {
	c := rrOf("bridge")
	var samples []result.Sample
	var all []int64
	for b := 1; b <= 6; b++ {
		var values []int64
		for i := range int64(1000) {
			v := 20_000 + i
			if b == 1 && i >= 900 { // one block with a long tail
				v = 1_000_000 + 1000*i
			}
			values = append(values, v)
		}
		all = append(all, values...)
		s := okSample(c, b, metrics{"transactions_per_second": 30_000})
		s.Histogram = histogramOf(t, values...)
		samples = append(samples, s)
	}
	slices.Sort(all)
	truth := float64(all[len(all)*99/100-1]) / 1e9
	e := find(t, Analyse(samples, Options{}), c).Latency["latency_p99_seconds"]
	near(t, "p99", e.Value, truth, truth/1000)
	// Five blocks have a p99 of 21 µs, one of 1.99 ms: their mean is 349 µs.
	if wrong := (5*20_990e-9 + 1_990_000e-9) / 6; math.Abs(e.Value-wrong) < 0.5*wrong {
		t.Errorf("p99 %g is the mean of the p99s", e.Value)
	}
	if low, high, ok := e.Interval(); !ok || low > e.Value || high < e.Value || high/low < 10 {
		t.Errorf("interval %g to %g (%v): one block of six makes the tail, and the interval must say so", low, high, ok)
	}
}

// A parse error is a failure with a reason, not the number 0.
func TestPeerMistakeZeroForParseError(t *testing.T) {
	host, c := cellOf(result.HostNetwork), cellOf("antrea")
	samples := join(streams(host, 100, 100, 100), streams(c, 90, 90))
	samples = append(samples, failedSample(c, 3, "iperf3: Name or service not known"))
	a := Analyse(samples, Options{})
	s := find(t, a, c)
	near(t, "median", s.Absolute[throughput].Value, 90, 0)
	near(t, "efficiency", s.Efficiency.Value, 0.9, 1e-12)
	if s.OK != 2 || s.Failed != 1 || len(s.Reasons) != 1 || s.Reasons[0].Reason != "iperf3: Name or service not known" {
		t.Errorf("%d ok, %d failed, %v", s.OK, s.Failed, s.Reasons)
	}
	if w, ok := warningOf(a, FailedSamples); !ok || !strings.Contains(w.Message, "Name or service not known") {
		t.Errorf("warning %q", w.Message)
	}
}

// A cell whose samples all failed has no numbers at all.
func TestPeerMistakeFailureStoredAsSuccess(t *testing.T) {
	c := cellOf("antrea")
	samples := append(streams(cellOf(result.HostNetwork), 1, 1), failedSample(c, 1, "no route"), failedSample(c, 2, "no route"))
	s := find(t, Analyse(samples, Options{}), c)
	if len(s.Absolute) != 0 || s.Efficiency != nil || s.Mean != nil || s.NoEfficiency != "all 2 samples failed: no route" {
		t.Errorf("%+v", s)
	}
}

// All networks fill the link: published tables rank them by the last digit.
func TestPeerMistakeLinkBoundRanking(t *testing.T) {
	const limit = 1e9 * (1500 - 52) / (1500 + 14)
	var samples []result.Sample
	networks := map[string]struct{ share, cpu float64 }{
		result.HostNetwork: {0.9997, 0.20}, "bridge": {0.9996, 0.30}, "flannel/host-gw": {0.9993, 0.45}, "calico/direct": {0.9990, 0.60},
	}
	for b := 1; b <= 10; b++ {
		for _, n := range sortedKeys(networks) {
			c := cellOf(n)
			c.Link = "1-gigabit"
			wobble := 1 + 1e-6*float64(b%3)
			s := okSample(c, b, metrics{throughput: limit * networks[n].share * wobble})
			cpu := metrics{"cpu_user_seconds": 0, "cpu_system_seconds": 0.1, "cpu_irq_seconds": 0, "cpu_softirq_seconds": networks[n].cpu * (1 + 0.01*float64(b%2))}
			s.Probes = map[string]map[string]float64{"client_node": cpu, "server_node": cpu}
			samples = append(samples, s)
		}
	}
	opt := Options{LinkRate: func(link string) (float64, bool) { return 1e9, link == "1-gigabit" }}
	a := Analyse(samples, opt)
	if len(a.Rankings) != 2 {
		t.Fatalf("%d rankings, want one that cannot rank and one by CPU", len(a.Rankings))
	}
	full, cpu := a.Rankings[0], a.Rankings[1]
	if !full.LinkBound || full.Metric != throughput {
		t.Errorf("first ranking: %+v", full)
	}
	for _, r := range full.Ranked {
		if r.Rank != 1 || r.RankTo != 3 {
			t.Errorf("%s has rank %d to %d though the link is full", r.Network, r.Rank, r.RankTo)
		}
	}
	if cpu.Metric != CPUPerByte || cpu.LinkBound || cpu.Ranked[0].Network != "bridge" || cpu.Ranked[2].Network != "calico/direct" || cpu.Ranked[2].Rank != 3 {
		t.Errorf("second ranking: %+v", cpu)
	}
	// Unknown link: nothing is known to be full, so they are ranked.
	if b := Analyse(samples, Options{}); b.Rankings[0].LinkBound || b.Rankings[0].Ranked[2].Rank != 3 {
		t.Errorf("without a known rate: %+v", b.Rankings[0])
	}
}

// Three bare-metal runs of 31.92, 33.87 and 28.30 Gbit/s are 31.4 ± 22 %: an
// efficiency against their mean alone hides that.
func TestPeerMistakeBaselineWithoutUncertainty(t *testing.T) {
	host, c := cellOf(result.HostNetwork), cellOf("cilium")
	a := Analyse(join(streams(host, 31.92e9, 33.87e9, 28.30e9), streams(c, 22.0e9, 22.1e9, 21.9e9)), Options{})
	h, _ := find(t, a, host).Mean.RelativeHalfwidth()
	near(t, "half-width of the baseline", h, 0.22, 0.02)
	e := find(t, a, c).Efficiency
	w, ok := e.RelativeHalfwidth()
	if !ok || w < 0.15 {
		t.Errorf("efficiency ± %.1f %% does not carry the baseline's ± 22 %%", 100*w)
	}
	if _, ok := warningOf(a, TooFewBlocks); !ok {
		t.Error("three blocks and no warning")
	}
}

// 70 % of the CPU time went uncounted: softirq.
func TestPeerMistakeSoftirqLeftOut(t *testing.T) {
	s := okSample(cellOf("antrea"), 1, metrics{throughput: 8e9})
	end := metrics{"cpu_user_seconds": 0.05, "cpu_system_seconds": 0.42, "cpu_irq_seconds": 0, "cpu_softirq_seconds": 1.15, "cpu_idle_seconds": 6}
	s.Probes = map[string]map[string]float64{"client_node": end, "server_node": end}
	cpu := func(s result.Sample, o Options) Estimate {
		return find(t, Analyse([]result.Sample{s}, o), s.Cell).Absolute[CPUPerByte]
	}
	near(t, "CPU per byte", cpu(s, Options{}).Value, 2*1.62/1e9, 1e-15)
	// In a lab both ends are one machine: its time is counted once.
	near(t, "CPU per byte", cpu(s, Options{Environment: result.Environment{Testbed: "lab"}}).Value, 1.62/1e9, 1e-15)
	// Probes that were read over a part of the time are of that part.
	half := metrics{"cpu_user_seconds": 0.025, "cpu_system_seconds": 0.21, "cpu_irq_seconds": 0, "cpu_softirq_seconds": 0.575, "window_seconds": *s.MeasuredSeconds / 2}
	s.Probes = map[string]map[string]float64{"client_node": half, "server_node": end}
	near(t, "CPU per byte", cpu(s, Options{}).Value, 2*1.62/1e9, 1e-15)
	// An end without softirq makes the cost unknown, not small.
	s.Probes["server_node"] = metrics{"cpu_user_seconds": 0.05, "cpu_system_seconds": 0.42, "cpu_irq_seconds": 0}
	if e := cpu(s, Options{}); e.N != 0 {
		t.Errorf("CPU per byte %g though one end is unknown", e.Value)
	}
}

// Kernels that differ between the sides are named, not averaged over.
func TestPeerMistakeMixedKernels(t *testing.T) {
	env := func(kernel string) result.Environment { return result.Environment{Host: result.Host{Kernel: kernel}} }
	s := streams(cellOf("cilium"), 1, 1.01, 1.02)
	c := Compare(Side{s, env("5.15.0-92")}, Side{s, env("5.15.0-100")}, CompareOptions{})
	if !slices.Contains(c.Differences, "kernel: 5.15.0-92 → 5.15.0-100") {
		t.Errorf("differences %q", c.Differences)
	}
	// And inside one campaign, where the nodes have two.
	mixed := result.Environment{Places: map[string]result.PlaceFacts{"node1": {Kernel: "5.15.0-92"}, "node2": {Kernel: "5.15.0-100"}}}
	if w, _ := warningOf(Analyse(s, Options{Environment: mixed}), SettingsDiffer); !strings.Contains(w.Message, "kernel is 5.15.0-100 or 5.15.0-92") {
		t.Errorf("warning %+v", w)
	}
}

// A network that drops can seem faster than bare metal: 132 %, with its loss.
func TestPeerMistakeClippedEfficiency(t *testing.T) {
	c := cellOf("kuberouter")
	c.Workload = "udp_stream"
	var samples []result.Sample
	for b := 1; b <= 6; b++ {
		samples = append(samples, okSample(c.Baseline(), b, metrics{throughput: 7.34e9, "loss_ratio": 0}),
			okSample(c, b, metrics{throughput: 9.71e9 * (1 + 0.001*float64(b)), "loss_ratio": 0.12}))
	}
	a := Analyse(samples, Options{})
	s := find(t, a, c)
	near(t, "efficiency", s.Efficiency.Value, 1.32, 0.01)
	near(t, "loss", s.Loss.Value, 0.12, 1e-12)
	if w, ok := warningOf(a, Loss); !ok || len(w.Cells) != 1 || w.Cells[0] != c {
		t.Errorf("warning %+v", w)
	}
}

// Loss that was not measured is not a loss of 0.
func TestPeerMistakeLossAlwaysZero(t *testing.T) {
	if s := find(t, Analyse(streams(cellOf("bridge"), 1, 2), Options{}), cellOf("bridge")); s.Loss != nil {
		t.Errorf("loss %+v", s.Loss)
	}
}

// A published row has 47,560 transactions/s at 32.2 µs half a round trip: three
// times what one connection can do. Its neighbour's 9,986/s at 51.3 µs is right.
func TestPeerMistakeImpossibleRoundTrips(t *testing.T) {
	row := func(n string, perSecond, halfTrip float64) result.Sample {
		return okSample(rrOf(n), 1, metrics{"transactions_per_second": perSecond, "latency_mean_seconds": 2 * halfTrip})
	}
	a := Analyse([]result.Sample{row(result.HostNetwork, 47560, 32.2e-6), row("calico", 9986, 51.3e-6)}, Options{})
	w, _ := warningOf(a, RoundTripRate)
	if !slices.Equal(w.Cells, []result.Cell{rrOf(result.HostNetwork)}) {
		t.Errorf("warned of %v: %s", w.Cells, w.Message)
	}
}

// One sample has no interval, not one of width 0.
func TestPeerMistakeIntervalOfOneSample(t *testing.T) {
	s := find(t, Analyse(join(streams(cellOf(result.HostNetwork), 10), streams(cellOf("bridge"), 9)), Options{}), cellOf("bridge"))
	for what, e := range map[string]Estimate{"efficiency": *s.Efficiency, "median": s.Absolute[throughput]} {
		if e.Low != nil || e.High != nil || e.Needed == 0 {
			t.Errorf("%s of one sample: %+v", what, e)
		}
	}
}

// A baseline is the same in every factor but the network: not the last row that
// happens to be on the host.
func TestPeerMistakeBaselineOfAnotherKey(t *testing.T) {
	other := cellOf(result.HostNetwork)
	other.Streams = 8
	a := Analyse(join(streams(other, 40, 40), streams(cellOf("bridge"), 20, 20)), Options{})
	s := find(t, a, cellOf("bridge"))
	if s.Efficiency != nil || !strings.HasPrefix(s.NoEfficiency, "no baseline") {
		t.Errorf("efficiency %+v, %q", s.Efficiency, s.NoEfficiency)
	}
	if _, ok := warningOf(a, NoBaseline); !ok {
		t.Error("no warning")
	}
}

// Every repetition counts; the last does not overwrite the others.
func TestPeerMistakeSamplesOverwritten(t *testing.T) {
	e := find(t, Analyse(streams(cellOf("bridge"), 1, 2, 3, 4, 100), Options{}), cellOf("bridge")).Absolute[throughput]
	if e.N != 5 || e.Value != 3 {
		t.Errorf("%+v", e)
	}
}

// A regression of 10 % is 10 % of the base, not of the mean of both.
func TestPeerMistakeSymmetricDifference(t *testing.T) {
	c := Compare(Side{Samples: streams(cellOf("x"), 100, 100, 100)}, Side{Samples: streams(cellOf("x"), 90, 90, 90)}, CompareOptions{})
	near(t, "change", c.Cells[0].Change.Value, 0.9, 1e-12)
}

// One network's pods had an MTU of 9000 where another's had 8950, and won.
func TestPeerMistakeMTUNotNormalised(t *testing.T) {
	at := func(n string, mtu float64) result.Sample {
		return okSample(cellOf(n), 1, metrics{throughput: 1, "client_mtu_bytes": mtu})
	}
	a := Analyse([]result.Sample{at(result.HostNetwork, 9000), at("canal", 9000), at("flannel", 8950)}, Options{})
	w, _ := warningOf(a, MTUDiffers)
	if !slices.Equal(w.Cells, []result.Cell{cellOf("flannel")}) || !strings.Contains(w.Message, "flannel has 8950 where its baseline has 9000") {
		t.Errorf("%+v", w)
	}
}
