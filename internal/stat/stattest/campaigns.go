package stattest

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/cnibench/cnibench/internal/result"
)

// RoundTripsOf is a campaign of round trips on one network: messages of some sizes take
// what of gives, with a share of noise for each sample.
func RoundTripsOf(network string, blocks int, noise float64, of func(bytes int) float64, sizes ...int) []result.Sample {
	r := rand.New(rand.NewPCG(3, 4))
	var out []result.Sample
	for b := 1; b <= blocks; b++ {
		for _, n := range sizes {
			c := RROf(network)
			c.MessageBytes = n
			out = append(out, OKSample(c, b, Metrics{"latency_mean_seconds": 2 * of(n) * (1 + noise*r.NormFloat64())}))
		}
	}
	return out
}

// Line is the time of a message by its bytes, with a latency α and a rate β.
func Line(alpha, beta float64) func(int) float64 {
	return func(n int) float64 { return alpha + float64(n)/beta }
}

// JobCell is a cell with ranks.
func JobCell(network, workload, algorithm string, ranks, bytes int) result.Cell {
	c := CellOf(network)
	c.Workload, c.Algorithm, c.Ranks, c.MessageBytes, c.Streams = workload, algorithm, ranks, bytes, 0
	return c
}

// LatencySamples is a campaign of tcp_rr in which the network's round trips are
// slower than the host's by the factor.
func LatencySamples(t testing.TB, blocks, values int, factor float64) []result.Sample {
	r := rand.New(rand.NewPCG(1, 1))
	var out []result.Sample
	for b := 1; b <= blocks; b++ {
		day := math.Exp(0.1 * r.NormFloat64())
		for _, n := range []struct {
			name string
			mean float64
		}{{result.HostNetwork, 20_000}, {"bridge", 20_000 * factor}} {
			c := RROf(n.name)
			if n.name == result.HostNetwork {
				c = c.Baseline()
			}
			trips := make([]int64, values)
			for i := range trips {
				trips[i] = int64(n.mean * day * math.Exp(0.3*r.NormFloat64()))
			}
			s := OKSample(c, b, Metrics{"transactions_per_second": 1e9 / n.mean / day})
			s.Histogram = HistogramOf(t, trips...)
			out = append(out, s)
		}
	}
	return out
}

// QuietSamples are host and the networks with small normal noise about the
// given efficiencies.
func QuietSamples(seed uint64, blocks int, efficiencies map[string]float64) []result.Sample {
	r := rand.New(rand.NewPCG(seed, 1))
	var out []result.Sample
	for b := 1; b <= blocks; b++ {
		day := math.Exp(0.1 * r.NormFloat64()) // what the machine does to all of a block
		out = append(out, OKSample(CellOf(result.HostNetwork), b, Metrics{Throughput: 1e10 * day * math.Exp(0.005*r.NormFloat64())}))
		for _, n := range SortedKeys(efficiencies) {
			out = append(out, OKSample(CellOf(n), b, Metrics{Throughput: 1e10 * day * efficiencies[n] * math.Exp(0.005*r.NormFloat64())}))
		}
	}
	return out
}
