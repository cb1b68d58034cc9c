package stat

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/cnibench/cnibench/internal/result"
)

// Samples made by hand, for the tests of this package.

const throughput = "throughput_bits_per_second"

// cellOf is a tcp_stream cell of a network between pods; of host, the baseline.
func cellOf(network string) result.Cell {
	c := result.Cell{Network: network, Path: result.PathPodToPod, Placement: result.InterHost, Link: "unshaped",
		Profile: "default_settings", MTU: 1500, Workload: "tcp_stream", MessageBytes: 1472, Streams: 1}
	if network == result.HostNetwork {
		return c.Baseline()
	}
	return c
}

// rrOf is a tcp_rr cell.
func rrOf(network string) result.Cell {
	c := cellOf(network)
	c.Workload, c.MessageBytes = "tcp_rr", 64
	return c
}

type metrics = map[string]float64

// okSample is a measured sample.
func okSample(c result.Cell, block int, m metrics) result.Sample {
	seconds := 1.0
	return result.Sample{Schema: 1, ID: fmt.Sprintf("b%02d-%s", block, c.Network), Block: block, Attempt: 1, Cell: c,
		Status: result.StatusOK, Started: time.Unix(int64(block), 0), MeasuredSeconds: &seconds, Metrics: m}
}

func failedSample(c result.Cell, block int, reason string) result.Sample {
	s := okSample(c, block, nil)
	s.Status, s.Reason, s.MeasuredSeconds = result.StatusFailed, reason, nil
	return s
}

// streams is one sample of throughput a block, block 1 first.
func streams(c result.Cell, bitsPerSecond ...float64) []result.Sample {
	var out []result.Sample
	for i, v := range bitsPerSecond {
		out = append(out, okSample(c, i+1, metrics{throughput: v}))
	}
	return out
}

func join(all ...[]result.Sample) []result.Sample {
	var out []result.Sample
	for _, s := range all {
		out = append(out, s...)
	}
	return out
}

// noise draws values with mean 0 and standard deviation 1.
type noise struct {
	name string
	draw func(*rand.Rand) float64
}

// noises are those that intervals must stand: the logs of log-normal samples,
// Student's t with 3 degrees of freedom (the least that has a variance), and
// one value in ten five times as wide.
func noises() []noise {
	return []noise{
		{"log-normal", func(r *rand.Rand) float64 { return r.NormFloat64() }},
		{"log-t with 3 degrees of freedom", func(r *rand.Rand) float64 {
			var chi2 float64
			for range 3 {
				z := r.NormFloat64()
				chi2 += z * z
			}
			return r.NormFloat64() / math.Sqrt(chi2/3) / math.Sqrt(3)
		}},
		{"one in ten five times as wide", func(r *rand.Rand) float64 {
			x := r.NormFloat64()
			if r.Float64() < 0.1 {
				x *= 5
			}
			return x / math.Sqrt(0.9+0.1*25)
		}},
	}
}

// quietCampaign is host and the networks with small normal noise about the
// given efficiencies.
func quietSamples(seed uint64, blocks int, efficiencies map[string]float64) []result.Sample {
	r := rand.New(rand.NewPCG(seed, 1))
	var out []result.Sample
	for b := 1; b <= blocks; b++ {
		day := math.Exp(0.1 * r.NormFloat64()) // what the machine does to all of a block
		out = append(out, okSample(cellOf(result.HostNetwork), b, metrics{throughput: 1e10 * day * math.Exp(0.005*r.NormFloat64())}))
		for _, n := range sortedKeys(efficiencies) {
			out = append(out, okSample(cellOf(n), b, metrics{throughput: 1e10 * day * efficiencies[n] * math.Exp(0.005*r.NormFloat64())}))
		}
	}
	return out
}

// histogramOf is the record of round trips given in nanoseconds.
func histogramOf(t testing.TB, values ...int64) *result.Histogram {
	t.Helper()
	h := hdrhistogram.New(1, 60_000_000_000, 3)
	for _, v := range values {
		if err := h.RecordValue(v); err != nil {
			t.Fatal(err)
		}
	}
	encoded, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		t.Fatal(err)
	}
	return &result.Histogram{Unit: "nanoseconds", Count: int64(len(values)), HDRBase64: string(encoded)}
}

func find(t testing.TB, a Analysis, c result.Cell) CellSummary {
	t.Helper()
	s, ok := a.Cell(c)
	if !ok {
		t.Fatalf("no summary of %s %s", c.Network, c.Traffic())
	}
	return s
}

func warningOf(a Analysis, code Code) (Warning, bool) {
	for _, w := range a.Warnings {
		if w.Code == code {
			return w, true
		}
	}
	return Warning{}, false
}

func near(t testing.TB, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s is %.6g, want %.6g ± %.2g", what, got, want, tolerance)
	}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
