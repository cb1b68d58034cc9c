package stat

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/comparison"
	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/stat/stattest"
	"github.com/cnibench/cnibench/internal/stat/stopping"
)

// mixed is a campaign with a bit of everything.
func mixed(t testing.TB) []result.Sample {
	samples := stattest.Join(stattest.QuietSamples(1, 9, map[string]float64{"bridge": 0.95, "flannel/vxlan": 0.8, "calico/direct": 0.9}),
		stattest.LatencySamples(t, 7, 200, 1.3))
	again := stattest.OKSample(stattest.CellOf("bridge"), 9, stattest.Metrics{stattest.Throughput: 9e9})
	again.Attempt = 2
	gone := stattest.FailedSample(stattest.CellOf("calico/ipip"), 1, "kernel without ipip")
	gone.Status = result.StatusUnsupported
	return append(samples, again, gone, stattest.FailedSample(stattest.CellOf("bridge"), 10, "reset"), stattest.FailedSample(stattest.CellOf("bridge"), 11, "timeout"))
}

func TestOrderOfSamplesDoesNotMatter(t *testing.T) {
	samples := mixed(t)
	opt := dataset.Options{TargetRelativeHalfwidth: 0.02, MinBlocks: 5}
	want := Analyse(samples, opt)
	r := rand.New(rand.NewPCG(1, 1))
	for range 5 {
		r.Shuffle(len(samples), func(i, j int) { samples[i], samples[j] = samples[j], samples[i] })
		if d := cmp.Diff(want, Analyse(samples, opt), cmp.Exporter(func(reflect.Type) bool { return true })); d != "" {
			t.Fatalf("another order, another answer:\n%s", d)
		}
	}
}

func TestScalingAllThroughputsLeavesEfficiency(t *testing.T) {
	samples := mixed(t)
	want := Analyse(samples, dataset.Options{})
	for i := range samples {
		if v, ok := samples[i].Metrics[stattest.Throughput]; ok {
			samples[i].Metrics[stattest.Throughput] = v * 37
		}
	}
	got := Analyse(samples, dataset.Options{})
	for i, s := range got.Cells {
		w := want.Cells[i]
		if s.Efficiency == nil || w.Efficiency == nil {
			continue
		}
		stattest.Near(t, s.Cell.Network, s.Efficiency.Value, w.Efficiency.Value, 1e-12)
		stattest.Near(t, s.Cell.Network+" low", *s.Efficiency.Low, *w.Efficiency.Low, 1e-12)
		if s.Primary == stattest.Throughput {
			stattest.Near(t, "absolute", s.Absolute[stattest.Throughput].Value, 37*w.Absolute[stattest.Throughput].Value, 1)
		}
	}
}

// TestOddSamplesNeverPanic: nothing, nonsense and the edge of numbers.
func TestOddSamplesNeverPanic(t *testing.T) {
	odd := []float64{0, -1, 1, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, math.SmallestNonzeroFloat64}
	r := rand.New(rand.NewPCG(1, 1))
	names := []string{stattest.Throughput, "loss_ratio", "latency_mean_seconds", "transactions_per_second", "sent_throughput_bits_per_second", "client_mtu_bytes", "unheard_of"}
	for range 300 {
		var samples []result.Sample
		for range r.IntN(40) {
			c := stattest.CellOf([]string{result.HostNetwork, "a", "b"}[r.IntN(3)])
			m := stattest.Metrics{}
			for _, n := range names {
				if r.IntN(2) == 0 {
					m[n] = odd[r.IntN(len(odd))]
				}
			}
			s := stattest.OKSample(c, r.IntN(12), m)
			s.Status = []string{result.StatusOK, result.StatusOK, result.StatusFailed, result.StatusUnsupported, "?"}[r.IntN(5)]
			if r.IntN(5) == 0 {
				s.MeasuredSeconds = &odd[r.IntN(len(odd))]
			}
			samples = append(samples, s)
		}
		opt := dataset.Options{TargetRelativeHalfwidth: 0.02, LinkRate: func(string) (float64, bool) { return 1e9, true }}
		Analyse(samples, opt)
		stopping.Look(samples, opt)
		comparison.Compare(comparison.Side{Samples: samples}, comparison.Side{Samples: samples[len(samples)/2:]}, comparison.Options{Options: opt, Threshold: 0.03})
		nullTest(dataset.Collect(samples, opt))
	}
}

// BenchmarkAnalyse100000 is 100,000 records: 500 cells in 200 blocks, a fifth
// of them with a histogram.
func BenchmarkAnalyse100000(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	trips := make([]int64, 20_000)
	for i := range trips {
		trips[i] = int64(30_000 * math.Exp(0.1*r.NormFloat64()))
	}
	histogram := stattest.HistogramOf(b, trips...)
	var samples []result.Sample
	for block := 1; block <= 200; block++ {
		for n := range 500 {
			c := stattest.CellOf([]string{result.HostNetwork, "bridge", "flannel/vxlan", "flannel/host-gw", "calico/direct"}[n%5])
			c.MessageBytes = 1 + n/5
			v := 1e10 * math.Exp(0.01*r.NormFloat64())
			s := stattest.OKSample(c, block, stattest.Metrics{stattest.Throughput: v, "sent_throughput_bits_per_second": v, "retransmits": 3,
				"tcp_cwnd_packets": 10, "tcp_rtt_seconds": 1e-4, "client_mtu_bytes": 1500, "server_mtu_bytes": 1500})
			end := stattest.Metrics{}
			for _, m := range []string{"user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"} {
				end["cpu_"+m+"_seconds"] = 0.1
			}
			s.Probes = map[string]map[string]float64{"client_node": end, "server_node": end}
			if n/5%5 == 0 {
				s.Histogram = histogram
			}
			samples = append(samples, s)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if a := Analyse(samples, dataset.Options{TargetRelativeHalfwidth: 0.02, MinBlocks: 5}); len(a.Cells) != 500 {
			b.Fatal(fmt.Sprint(len(a.Cells), " cells"))
		}
	}
}
