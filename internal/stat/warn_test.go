package stat

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/result"
)

// steady is a campaign without a fault: 12 blocks, nothing to warn of.
func steady() []result.Sample {
	r := rand.New(rand.NewPCG(1, 1))
	var out []result.Sample
	for b := 1; b <= 12; b++ {
		for _, n := range []string{result.HostNetwork, "x"} {
			v := 1e10 * math.Exp(0.01*r.NormFloat64())
			s := okSample(cellOf(n), b, metrics{throughput: v, "sent_throughput_bits_per_second": v * 1.001, "client_mtu_bytes": 1500})
			end := metrics{"cpu_busiest_core_ratio": 0.5, "cpu_steal_seconds": 0}
			s.Probes = map[string]map[string]float64{"client_node": end, "server_node": end}
			out = append(out, s)
		}
	}
	return out
}

func TestNothingToWarnOf(t *testing.T) {
	for _, w := range Analyse(steady(), Options{TargetRelativeHalfwidth: 0.1, MinBlocks: 5}).Warnings {
		t.Errorf("%s: %s", w.Code, w.Message)
	}
}

func TestWarnings(t *testing.T) {
	x := cellOf("x")
	// each changes the samples of x, or hands back other samples or options.
	each := func(change func(s *result.Sample)) func([]result.Sample, *Options) []result.Sample {
		return func(samples []result.Sample, _ *Options) []result.Sample {
			for i := range samples {
				if samples[i].Cell == x {
					change(&samples[i])
				}
			}
			return samples
		}
	}
	for _, c := range []struct {
		code    Code
		make    func([]result.Sample, *Options) []result.Sample
		message string // part of it
		cells   []result.Cell
	}{
		{FailedSamples, func(s []result.Sample, _ *Options) []result.Sample {
			return append(s, failedSample(x, 13, "connection refused"))
		}, "1 sample failed, 0 replaced by a retry; the most frequent reason (1): connection refused", []result.Cell{x}},
		{SettingsChanged, func(s []result.Sample, o *Options) []result.Sample {
			o.Environment.Changed = []string{"sysctl a: 1 → 2", "b", "c", "d", "e"}
			return s
		}, "5 settings changed during the campaign: sysctl a: 1 → 2; b; c; and 2 more", nil},
		{SettingsDiffer, func(s []result.Sample, o *Options) []result.Sample {
			o.Environment.Places = map[string]result.PlaceFacts{
				"node1": {Sysctls: map[string]string{"net.ipv4.tcp_congestion_control": "bbr"}},
				"pod1":  {Sysctls: map[string]string{"net.ipv4.tcp_congestion_control": "cubic"}}}
			return s
		}, "sysctl net.ipv4.tcp_congestion_control is bbr or cubic", nil},
		{MTUDiffers, each(func(s *result.Sample) { s.Metrics["client_mtu_bytes"] = 1450 }), "x has 1450 where its baseline has 1500", []result.Cell{x}},
		{NoBaseline, func(s []result.Sample, _ *Options) []result.Sample {
			return slices.DeleteFunc(s, func(s result.Sample) bool { return s.Cell.IsBaseline() })
		}, "no sample of network host", []result.Cell{x}},
		{CPUSaturated, each(func(s *result.Sample) { s.Probes["server_node"] = metrics{"cpu_busiest_core_ratio": 0.96} }), "95 % busy in 1 cell", []result.Cell{x}},
		{Steal, each(func(s *result.Sample) { s.Probes["client_node"] = metrics{"cpu_steal_seconds": 0.05} }), "5.0 % of a core", []result.Cell{x}},
		{NotIdle, each(func(s *result.Sample) {
			s.Machines = map[string]string{"server_node": "busy"}
			s.Probes["server_node_idle"] = metrics{"window_seconds": 0.3, "cpu_user_seconds": 0.06, "cpu_system_seconds": 0.03, "cpu_irq_seconds": 0, "cpu_softirq_seconds": 0, "cpu_nice_seconds": 0.03}
		}), "0.40 of a core", []result.Cell{x}},
		{SenderReceiver, each(func(s *result.Sample) { s.Metrics["sent_throughput_bits_per_second"] *= 1.25 }), "+20.1 % of what was sent", []result.Cell{x}},
		{Loss, each(func(s *result.Sample) { s.Metrics["loss_ratio"] = 0.03 }), "most in x tcp_stream 1472 B: 3.0 %", []result.Cell{x}},
		{RoundTripRate, each(func(s *result.Sample) {
			s.Metrics["transactions_per_second"], s.Metrics["latency_mean_seconds"] = 10_000, 50e-6
		}), "0.50 of it", []result.Cell{x}},
		{TooFewBlocks, func(s []result.Sample, _ *Options) []result.Sample { return s[:6] }, "fewer than 5 blocks; x tcp_stream 1472 B has only 3", []result.Cell{x}},
		{TargetNotReached, func(s []result.Sample, o *Options) []result.Sample {
			o.TargetRelativeHalfwidth = 0.001
			return s
		}, "1 cell missed the target of ± 0.1 %; x tcp_stream 1472 B would need about", []result.Cell{x}},
		{Drift, each(func(s *result.Sample) { s.Metrics[throughput] *= 1 - 0.01*float64(s.Block) }), "1 cell drifted over the blocks, most x tcp_stream 1472 B: -1", []result.Cell{x}},
		{Bimodal, each(func(s *result.Sample) {
			if s.Block%3 == 0 {
				s.Metrics[throughput] *= 0.7
			}
		}), "form two groups", []result.Cell{x}},
		{OutlierBlocks, each(func(s *result.Sample) {
			if s.Block == 7 {
				s.Metrics[throughput] *= 0.5
			}
		}), "1 sample far from the median of their cell, in block 7; the farthest in x tcp_stream 1472 B, by -5", []result.Cell{x}},
		{NotPositive, each(func(s *result.Sample) {
			if s.Block == 7 {
				s.Metrics[throughput] = 0
			}
		}), "1 sample succeeded but transferred nothing", []result.Cell{x}},
	} {
		t.Run(string(c.code), func(t *testing.T) {
			var opt Options
			samples := c.make(steady(), &opt)
			w, ok := warningOf(Analyse(samples, opt), c.code)
			if !ok {
				t.Fatal("no warning")
			}
			if !strings.Contains(w.Message, c.message) {
				t.Errorf("message %q has no %q", w.Message, c.message)
			}
			if !slices.Equal(w.Cells, c.cells) || w.Cure == "" {
				t.Errorf("cells %v, cure %q", w.Cells, w.Cure)
			}
		})
	}
}

// TestFalseAlarms: how often each test of spread cries out on blocks that have
// nothing but noise. The figures are in docs/statistics.md.
func TestFalseAlarms(t *testing.T) {
	reps := repetitions(3000)
	for i, noise := range noises() {
		for _, n := range []int{12, 20, 40} {
			r := rand.New(rand.NewPCG(3, uint64(n)))
			var heaps, far, drifts int
			for range reps {
				points := make([]point, n)
				for i := range points {
					points[i] = point{i + 1, noise.draw(r)}
				}
				_, two := twoHeaps(values(points))
				heaps += count(two)
				drifts += count(trend(points) < 0.05)
				center, spread := robust(points)
				far += count(slices.ContainsFunc(points, func(p point) bool { return math.Abs(p.value-center) > farOut*spread }))
			}
			share := func(k int) float64 { return float64(k) / float64(reps) }
			t.Logf("%s, %d blocks: two heaps %.2f %%, outliers %.2f %%, drift %.2f %%", noise.name, n, 100*share(heaps), 100*share(far), 100*share(drifts))
			if share(heaps) > 0.002+margin(0.002, reps) {
				t.Errorf("%s, %d blocks: two heaps in %.2f %%", noise.name, n, 100*share(heaps))
			}
			// Heavy tails do have values far out: to say so is no false alarm.
			if i == 0 && share(far) > 0.01+margin(0.01, reps) {
				t.Errorf("%d blocks: outliers in %.2f %%", n, 100*share(far))
			}
			near(t, "drift", share(drifts), 0.05, 0.01+margin(0.05, reps))
		}
	}
}

// Pods that a LimitRange throttles are reported; a limit of memory throttles nothing.
func TestWarnPodsLimited(t *testing.T) {
	for resource, want := range map[string]bool{"cpu": true, "memory": false} {
		places := map[string]result.PlaceFacts{"pod-server-2 on b": {Limits: map[string]string{resource: "500m"}}, "host": {}}
		w := (&dataset{opt: Options{Environment: result.Environment{Places: places}}}).warnLimits(Analysis{})
		if (w.Code == PodsLimited) != want || want && !strings.Contains(w.Message, "CPUs of 1 pod that requested no limit: ") {
			t.Errorf("%s: %+v", resource, w)
		}
	}
}

// Networks that were switched one after the other are reported, in their order.
func TestWarnOneAfterAnother(t *testing.T) {
	for _, order := range [][]string{nil, {"a"}, {"a", "b"}} {
		w := (&dataset{opt: Options{Environment: result.Environment{OneAfterAnother: order}}}).warnSequence(Analysis{})
		if want := len(order) > 1; (w.Code == OneAfterAnother) != want || want && !strings.Contains(w.Message, "a, then b") {
			t.Errorf("%v: %+v", order, w)
		}
	}
}
