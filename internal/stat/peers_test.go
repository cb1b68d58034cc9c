package stat

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/comparison"
	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/stat/estimate"
	"github.com/cnibench/cnibench/internal/stat/stattest"
	"github.com/cnibench/cnibench/internal/stat/warning"
)

// Each test here is named after a mistake that a published tool makes, and
// holds its opposite. TestPeerMistakeGroupedOrder is in coverage_test.go.

// The p99 of several runs is no mean of their p99s.
func TestPeerMistakeAveragedP99(t *testing.T) {
	c := stattest.RROf("bridge")
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
		s := stattest.OKSample(c, b, stattest.Metrics{"transactions_per_second": 30_000})
		s.Histogram = stattest.HistogramOf(t, values...)
		samples = append(samples, s)
	}
	slices.Sort(all)
	truth := float64(all[len(all)*99/100-1]) / 1e9
	e := stattest.Find(t, Analyse(samples, dataset.Options{}), c).Latency["latency_p99_seconds"]
	stattest.Near(t, "p99", e.Value, truth, truth/1000)
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
	host, c := stattest.CellOf(result.HostNetwork), stattest.CellOf("antrea")
	samples := stattest.Join(stattest.Streams(host, 100, 100, 100), stattest.Streams(c, 90, 90))
	samples = append(samples, stattest.FailedSample(c, 3, "iperf3: Name or service not known"))
	a := Analyse(samples, dataset.Options{})
	s := stattest.Find(t, a, c)
	stattest.Near(t, "median", s.Absolute[stattest.Throughput].Value, 90, 0)
	stattest.Near(t, "efficiency", s.Efficiency.Value, 0.9, 1e-12)
	if s.OK != 2 || s.Failed != 1 || len(s.Reasons) != 1 || s.Reasons[0].Reason != "iperf3: Name or service not known" {
		t.Errorf("%d ok, %d failed, %v", s.OK, s.Failed, s.Reasons)
	}
	if w, ok := a.Warning(warning.FailedSamples); !ok || !strings.Contains(w.Message, "Name or service not known") {
		t.Errorf("warning %q", w.Message)
	}
}

// A cell whose samples all failed has no numbers at all.
func TestPeerMistakeFailureStoredAsSuccess(t *testing.T) {
	c := stattest.CellOf("antrea")
	samples := append(stattest.Streams(stattest.CellOf(result.HostNetwork), 1, 1), stattest.FailedSample(c, 1, "no route"), stattest.FailedSample(c, 2, "no route"))
	s := stattest.Find(t, Analyse(samples, dataset.Options{}), c)
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
		for _, n := range stattest.SortedKeys(networks) {
			c := stattest.CellOf(n)
			c.Link = "1-gigabit"
			wobble := 1 + 1e-6*float64(b%3)
			s := stattest.OKSample(c, b, stattest.Metrics{stattest.Throughput: limit * networks[n].share * wobble})
			cpu := stattest.Metrics{"cpu_user_seconds": 0, "cpu_system_seconds": 0.1, "cpu_irq_seconds": 0, "cpu_softirq_seconds": networks[n].cpu * (1 + 0.01*float64(b%2))}
			s.Probes = map[string]map[string]float64{"client_node": cpu, "server_node": cpu}
			samples = append(samples, s)
		}
	}
	opt := dataset.Options{LinkRate: func(link string) (float64, bool) { return 1e9, link == "1-gigabit" }}
	a := Analyse(samples, opt)
	if len(a.Rankings) != 2 {
		t.Fatalf("%d rankings, want one that cannot rank and one by CPU", len(a.Rankings))
	}
	full, cpu := a.Rankings[0], a.Rankings[1]
	if !full.LinkBound || full.Metric != stattest.Throughput {
		t.Errorf("first ranking: %+v", full)
	}
	for _, r := range full.Ranked {
		if r.Rank != 1 || r.RankTo != 3 {
			t.Errorf("%s has rank %d to %d though the link is full", r.Network, r.Rank, r.RankTo)
		}
	}
	if cpu.Metric != dataset.CPUPerByte || cpu.LinkBound || cpu.Ranked[0].Network != "bridge" || cpu.Ranked[2].Network != "calico/direct" || cpu.Ranked[2].Rank != 3 {
		t.Errorf("second ranking: %+v", cpu)
	}
	// Unknown link: nothing is known to be full, so they are ranked.
	if b := Analyse(samples, dataset.Options{}); b.Rankings[0].LinkBound || b.Rankings[0].Ranked[2].Rank != 3 {
		t.Errorf("without a known rate: %+v", b.Rankings[0])
	}
}

// Three bare-metal runs of 31.92, 33.87 and 28.30 Gbit/s are 31.4 ± 22 %: an
// efficiency against their mean alone hides that.
func TestPeerMistakeBaselineWithoutUncertainty(t *testing.T) {
	host, c := stattest.CellOf(result.HostNetwork), stattest.CellOf("cilium")
	a := Analyse(stattest.Join(stattest.Streams(host, 31.92e9, 33.87e9, 28.30e9), stattest.Streams(c, 22.0e9, 22.1e9, 21.9e9)), dataset.Options{})
	h, _ := stattest.Find(t, a, host).Mean.RelativeHalfwidth()
	stattest.Near(t, "half-width of the baseline", h, 0.22, 0.02)
	e := stattest.Find(t, a, c).Efficiency
	w, ok := e.RelativeHalfwidth()
	if !ok || w < 0.15 {
		t.Errorf("efficiency ± %.1f %% does not carry the baseline's ± 22 %%", 100*w)
	}
	if _, ok := a.Warning(warning.TooFewBlocks); !ok {
		t.Error("three blocks and no warning")
	}
}

// 70 % of the CPU time went uncounted: softirq.
func TestPeerMistakeSoftirqLeftOut(t *testing.T) {
	s := stattest.OKSample(stattest.CellOf("antrea"), 1, stattest.Metrics{stattest.Throughput: 8e9})
	end := stattest.Metrics{"cpu_user_seconds": 0.05, "cpu_system_seconds": 0.42, "cpu_irq_seconds": 0, "cpu_softirq_seconds": 1.15, "cpu_idle_seconds": 6}
	s.Probes = map[string]map[string]float64{"client_node": end, "server_node": end}
	cpu := func(s result.Sample, o dataset.Options) estimate.Estimate {
		return stattest.Find(t, Analyse([]result.Sample{s}, o), s.Cell).Absolute[dataset.CPUPerByte]
	}
	stattest.Near(t, "CPU per byte", cpu(s, dataset.Options{}).Value, 2*1.62/1e9, 1e-15)
	// In a lab both ends are one machine: its time is counted once.
	stattest.Near(t, "CPU per byte", cpu(s, dataset.Options{Environment: result.Environment{Testbed: "lab"}}).Value, 1.62/1e9, 1e-15)
	// Probes that were read over a part of the time are of that part.
	half := stattest.Metrics{"cpu_user_seconds": 0.025, "cpu_system_seconds": 0.21, "cpu_irq_seconds": 0, "cpu_softirq_seconds": 0.575, "window_seconds": *s.MeasuredSeconds / 2}
	s.Probes = map[string]map[string]float64{"client_node": half, "server_node": end}
	stattest.Near(t, "CPU per byte", cpu(s, dataset.Options{}).Value, 2*1.62/1e9, 1e-15)
	// An end without softirq makes the cost unknown, not small.
	s.Probes["server_node"] = stattest.Metrics{"cpu_user_seconds": 0.05, "cpu_system_seconds": 0.42, "cpu_irq_seconds": 0}
	if e := cpu(s, dataset.Options{}); e.N != 0 {
		t.Errorf("CPU per byte %g though one end is unknown", e.Value)
	}
}

// Kernels that differ between the sides are named, not averaged over.
func TestPeerMistakeMixedKernels(t *testing.T) {
	env := func(kernel string) result.Environment { return result.Environment{Host: result.Host{Kernel: kernel}} }
	s := stattest.Streams(stattest.CellOf("cilium"), 1, 1.01, 1.02)
	c := comparison.Compare(comparison.Side{Samples: s, Environment: env("5.15.0-92")}, comparison.Side{Samples: s, Environment: env("5.15.0-100")}, comparison.Options{})
	if !slices.Contains(c.Differences, "kernel: 5.15.0-92 → 5.15.0-100") {
		t.Errorf("differences %q", c.Differences)
	}
	// And inside one campaign, where the nodes have two.
	mixed := result.Environment{Places: map[string]result.PlaceFacts{"node1": {Kernel: "5.15.0-92"}, "node2": {Kernel: "5.15.0-100"}}}
	if w, _ := Analyse(s, dataset.Options{Environment: mixed}).Warning(warning.SettingsDiffer); !strings.Contains(w.Message, "kernel is 5.15.0-100 or 5.15.0-92") {
		t.Errorf("warning %+v", w)
	}
}

// A network that drops can seem faster than bare metal: 132 %, with its loss.
func TestPeerMistakeClippedEfficiency(t *testing.T) {
	c := stattest.CellOf("kuberouter")
	c.Workload = "udp_stream"
	var samples []result.Sample
	for b := 1; b <= 6; b++ {
		samples = append(samples, stattest.OKSample(c.Baseline(), b, stattest.Metrics{stattest.Throughput: 7.34e9, "loss_ratio": 0}),
			stattest.OKSample(c, b, stattest.Metrics{stattest.Throughput: 9.71e9 * (1 + 0.001*float64(b)), "loss_ratio": 0.12}))
	}
	a := Analyse(samples, dataset.Options{})
	s := stattest.Find(t, a, c)
	stattest.Near(t, "efficiency", s.Efficiency.Value, 1.32, 0.01)
	stattest.Near(t, "loss", s.Loss.Value, 0.12, 1e-12)
	if w, ok := a.Warning(warning.Loss); !ok || len(w.Cells) != 1 || w.Cells[0] != c {
		t.Errorf("warning %+v", w)
	}
}

// Loss that was not measured is not a loss of 0.
func TestPeerMistakeLossAlwaysZero(t *testing.T) {
	if s := stattest.Find(t, Analyse(stattest.Streams(stattest.CellOf("bridge"), 1, 2), dataset.Options{}), stattest.CellOf("bridge")); s.Loss != nil {
		t.Errorf("loss %+v", s.Loss)
	}
}

// A published row has 47,560 transactions/s at 32.2 µs half a round trip: three
// times what one connection can do. Its neighbour's 9,986/s at 51.3 µs is right.
func TestPeerMistakeImpossibleRoundTrips(t *testing.T) {
	row := func(n string, perSecond, halfTrip float64) result.Sample {
		return stattest.OKSample(stattest.RROf(n), 1, stattest.Metrics{"transactions_per_second": perSecond, "latency_mean_seconds": 2 * halfTrip})
	}
	a := Analyse([]result.Sample{row(result.HostNetwork, 47560, 32.2e-6), row("calico", 9986, 51.3e-6)}, dataset.Options{})
	w, _ := a.Warning(warning.RoundTripRate)
	if !slices.Equal(w.Cells, []result.Cell{stattest.RROf(result.HostNetwork)}) {
		t.Errorf("warned of %v: %s", w.Cells, w.Message)
	}
}

// One sample has no interval, not one of width 0.
func TestPeerMistakeIntervalOfOneSample(t *testing.T) {
	s := stattest.Find(t, Analyse(stattest.Join(stattest.Streams(stattest.CellOf(result.HostNetwork), 10), stattest.Streams(stattest.CellOf("bridge"), 9)), dataset.Options{}), stattest.CellOf("bridge"))
	for what, e := range map[string]estimate.Estimate{"efficiency": *s.Efficiency, "median": s.Absolute[stattest.Throughput]} {
		if e.Low != nil || e.High != nil || e.Needed == 0 {
			t.Errorf("%s of one sample: %+v", what, e)
		}
	}
}

// A baseline is the same in every factor but the network: not the last row that
// happens to be on the host.
func TestPeerMistakeBaselineOfAnotherKey(t *testing.T) {
	other := stattest.CellOf(result.HostNetwork)
	other.Streams = 8
	a := Analyse(stattest.Join(stattest.Streams(other, 40, 40), stattest.Streams(stattest.CellOf("bridge"), 20, 20)), dataset.Options{})
	s := stattest.Find(t, a, stattest.CellOf("bridge"))
	if s.Efficiency != nil || !strings.HasPrefix(s.NoEfficiency, "no baseline") {
		t.Errorf("efficiency %+v, %q", s.Efficiency, s.NoEfficiency)
	}
	if _, ok := a.Warning(warning.NoBaseline); !ok {
		t.Error("no warning")
	}
}

// Every repetition counts; the last does not overwrite the others.
func TestPeerMistakeSamplesOverwritten(t *testing.T) {
	e := stattest.Find(t, Analyse(stattest.Streams(stattest.CellOf("bridge"), 1, 2, 3, 4, 100), dataset.Options{}), stattest.CellOf("bridge")).Absolute[stattest.Throughput]
	if e.N != 5 || e.Value != 3 {
		t.Errorf("%+v", e)
	}
}

// A regression of 10 % is 10 % of the base, not of the mean of both.
func TestPeerMistakeSymmetricDifference(t *testing.T) {
	c := comparison.Compare(comparison.Side{Samples: stattest.Streams(stattest.CellOf("x"), 100, 100, 100)}, comparison.Side{Samples: stattest.Streams(stattest.CellOf("x"), 90, 90, 90)}, comparison.Options{})
	stattest.Near(t, "change", c.Cells[0].Change.Value, 0.9, 1e-12)
}

// One network's pods had an MTU of 9000 where another's had 8950, and won.
func TestPeerMistakeMTUNotNormalised(t *testing.T) {
	at := func(n string, mtu float64) result.Sample {
		return stattest.OKSample(stattest.CellOf(n), 1, stattest.Metrics{stattest.Throughput: 1, "client_mtu_bytes": mtu})
	}
	a := Analyse([]result.Sample{at(result.HostNetwork, 9000), at("canal", 9000), at("flannel", 8950)}, dataset.Options{})
	w, _ := a.Warning(warning.MTUDiffers)
	if !slices.Equal(w.Cells, []result.Cell{stattest.CellOf("flannel")}) || !strings.Contains(w.Message, "flannel has 8950 where its baseline has 9000") {
		t.Errorf("%+v", w)
	}
}
