package warning_test

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
	"github.com/cnibench/cnibench/internal/stat/warning"
)

// steady is a campaign without a fault: 12 blocks, nothing to warn of.
func steady() []result.Sample {
	r := rand.New(rand.NewPCG(1, 1))
	var out []result.Sample
	for b := 1; b <= 12; b++ {
		for _, n := range []string{result.HostNetwork, "x"} {
			v := 1e10 * math.Exp(0.01*r.NormFloat64())
			s := stattest.OKSample(stattest.CellOf(n), b, stattest.Metrics{stattest.Throughput: v, "sent_throughput_bits_per_second": v * 1.001, "client_mtu_bytes": 1500})
			end := stattest.Metrics{"cpu_busiest_core_ratio": 0.5, "cpu_steal_seconds": 0}
			s.Probes = map[string]map[string]float64{"client_node": end, "server_node": end}
			out = append(out, s)
		}
	}
	return out
}

func TestNothingToWarnOf(t *testing.T) {
	for _, w := range stat.Analyse(steady(), dataset.Options{TargetRelativeHalfwidth: 0.1, MinBlocks: 5}).Warnings {
		t.Errorf("%s: %s", w.Code, w.Message)
	}
}

func TestWarnings(t *testing.T) {
	x := stattest.CellOf("x")
	// each changes the samples of x, or hands back other samples or options.
	each := func(change func(s *result.Sample)) func([]result.Sample, *dataset.Options) []result.Sample {
		return func(samples []result.Sample, _ *dataset.Options) []result.Sample {
			for i := range samples {
				if samples[i].Cell == x {
					change(&samples[i])
				}
			}
			return samples
		}
	}
	for _, c := range []struct {
		code    warning.Code
		make    func([]result.Sample, *dataset.Options) []result.Sample
		message string // part of it
		cells   []result.Cell
	}{
		{warning.FailedSamples, func(s []result.Sample, _ *dataset.Options) []result.Sample {
			return append(s, stattest.FailedSample(x, 13, "connection refused"))
		}, "1 sample failed, 0 replaced by a retry; the most frequent reason (1): connection refused", []result.Cell{x}},
		{warning.SettingsChanged, func(s []result.Sample, o *dataset.Options) []result.Sample {
			o.Environment.Changed = []string{"sysctl a: 1 → 2", "b", "c", "d", "e"}
			return s
		}, "5 settings changed during the campaign: sysctl a: 1 → 2; b; c; and 2 more", nil},
		{warning.SettingsDiffer, func(s []result.Sample, o *dataset.Options) []result.Sample {
			o.Environment.Places = map[string]result.PlaceFacts{
				"node1": {Sysctls: map[string]string{"net.ipv4.tcp_congestion_control": "bbr"}},
				"pod1":  {Sysctls: map[string]string{"net.ipv4.tcp_congestion_control": "cubic"}}}
			return s
		}, "sysctl net.ipv4.tcp_congestion_control is bbr or cubic", nil},
		{warning.MTUDiffers, each(func(s *result.Sample) { s.Metrics["client_mtu_bytes"] = 1450 }), "x has 1450 where its baseline has 1500", []result.Cell{x}},
		{warning.NoBaseline, func(s []result.Sample, _ *dataset.Options) []result.Sample {
			return slices.DeleteFunc(s, func(s result.Sample) bool { return s.Cell.IsBaseline() })
		}, "no sample of network host", []result.Cell{x}},
		{warning.CPUSaturated, each(func(s *result.Sample) { s.Probes["server_node"] = stattest.Metrics{"cpu_busiest_core_ratio": 0.96} }), "95 % busy in 1 cell", []result.Cell{x}},
		{warning.Steal, each(func(s *result.Sample) { s.Probes["client_node"] = stattest.Metrics{"cpu_steal_seconds": 0.05} }), "5.0 % of a core", []result.Cell{x}},
		{warning.NotIdle, each(func(s *result.Sample) {
			s.Machines = map[string]string{"server_node": "busy"}
			s.Probes["server_node_idle"] = stattest.Metrics{"window_seconds": 0.3, "cpu_user_seconds": 0.06, "cpu_system_seconds": 0.03, "cpu_irq_seconds": 0, "cpu_softirq_seconds": 0, "cpu_nice_seconds": 0.03}
		}), "0.40 of a core", []result.Cell{x}},
		{warning.SpeedVaries, each(func(s *result.Sample) {
			s.Machines = map[string]string{"client_node": "hurried", "server_node": "steady"}
			s.Probes["client_node_idle"] = stattest.Metrics{"cpu_loop_seconds": 200e-6 * (1 + 0.25*float64(s.Block%2))}
			s.Probes["server_node_idle"] = stattest.Metrics{"cpu_loop_seconds": 200e-6 * (1 + 0.1*float64(s.Block%2))}
		}), "at 80 to 100 % of its usual speed", []result.Cell{x}},
		{warning.SenderReceiver, each(func(s *result.Sample) { s.Metrics["sent_throughput_bits_per_second"] *= 1.25 }), "+20.1 % of what was sent", []result.Cell{x}},
		{warning.Loss, each(func(s *result.Sample) { s.Metrics["loss_ratio"] = 0.03 }), "most in x tcp_stream 1472 B: 3.0 %", []result.Cell{x}},
		{warning.RoundTripRate, each(func(s *result.Sample) {
			s.Metrics["transactions_per_second"], s.Metrics["latency_mean_seconds"] = 10_000, 50e-6
		}), "0.50 of it", []result.Cell{x}},
		{warning.TooFewBlocks, func(s []result.Sample, _ *dataset.Options) []result.Sample { return s[:6] }, "fewer than 5 blocks; x tcp_stream 1472 B has only 3", []result.Cell{x}},
		{warning.TargetNotReached, func(s []result.Sample, o *dataset.Options) []result.Sample {
			o.TargetRelativeHalfwidth = 0.001
			return s
		}, "1 cell missed the target of ± 0.1 %; x tcp_stream 1472 B would need about", []result.Cell{x}},
		{warning.Drift, each(func(s *result.Sample) { s.Metrics[stattest.Throughput] *= 1 - 0.01*float64(s.Block) }), "1 cell drifted over the blocks, most x tcp_stream 1472 B: -1", []result.Cell{x}},
		{warning.Bimodal, each(func(s *result.Sample) {
			if s.Block%3 == 0 {
				s.Metrics[stattest.Throughput] *= 0.7
			}
		}), "form two groups", []result.Cell{x}},
		{warning.OutlierBlocks, each(func(s *result.Sample) {
			if s.Block == 7 {
				s.Metrics[stattest.Throughput] *= 0.5
			}
		}), "1 sample far from the median of their cell, in block 7; the farthest in x tcp_stream 1472 B, by -5", []result.Cell{x}},
		{warning.NotPositive, each(func(s *result.Sample) {
			if s.Block == 7 {
				s.Metrics[stattest.Throughput] = 0
			}
		}), "1 sample succeeded but transferred nothing", []result.Cell{x}},
	} {
		t.Run(string(c.code), func(t *testing.T) {
			var opt dataset.Options
			samples := c.make(steady(), &opt)
			w, ok := stat.Analyse(samples, opt).Warning(c.code)
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

// TestLossOfFragments: the warning names a loss of datagrams that travel in fragments.
func TestLossOfFragments(t *testing.T) {
	for _, c := range []struct {
		workload string
		mtu      float64
		want     bool
	}{{"udp_stream", 1450, true}, {"udp_stream", 1500, false}, {"tcp_stream", 1450, false}} {
		samples := steady()
		for i := range samples {
			samples[i].Cell.Workload = c.workload
			samples[i].Metrics["loss_ratio"], samples[i].Metrics["client_mtu_bytes"] = 0.03, c.mtu
		}
		w, ok := stat.Analyse(samples, dataset.Options{}).Warning(warning.Loss)
		if !ok {
			t.Fatal("no warning")
		}
		if said := strings.Contains(w.Message, "2 cells sent datagrams in fragments") && strings.Contains(w.Cure, "fit into the pods' MTU"); said != c.want {
			t.Errorf("%s on %v: %q, %q", c.workload, c.mtu, w.Message, w.Cure)
		}
	}
}
