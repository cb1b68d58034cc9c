// Package stattest makes samples by hand and by simulation, for the tests of the packages of
// statistics.
package stattest

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/cnibench/cnibench/internal/result"
)

// Throughput is the metric of streams.
const Throughput = "throughput_bits_per_second"

// CellOf is a tcp_stream cell of a network between pods; of host, the baseline.
func CellOf(network string) result.Cell {
	c := result.Cell{Network: network, Path: result.PathPodToPod, Placement: result.InterHost, Link: "unshaped",
		Profile: "default_settings", MTU: 1500, Workload: "tcp_stream", MessageBytes: 1472, Streams: 1}
	if network == result.HostNetwork {
		return c.Baseline()
	}
	return c
}

// RROf is a tcp_rr cell.
func RROf(network string) result.Cell {
	c := CellOf(network)
	c.Workload, c.MessageBytes = "tcp_rr", 64
	return c
}

// Metrics are what a sample measured.
type Metrics = map[string]float64

// OKSample is a measured sample.
func OKSample(c result.Cell, block int, m Metrics) result.Sample {
	seconds := 1.0
	return result.Sample{Schema: 1, ID: fmt.Sprintf("b%02d-%s", block, c.Network), Block: block, Attempt: 1, Cell: c,
		Status: result.StatusOK, Started: time.Unix(int64(block), 0), MeasuredSeconds: &seconds, Metrics: m}
}

// FailedSample is a sample that was not measured, and why.
func FailedSample(c result.Cell, block int, reason string) result.Sample {
	s := OKSample(c, block, nil)
	s.Status, s.Reason, s.MeasuredSeconds = result.StatusFailed, reason, nil
	return s
}

// Streams is one sample of throughput a block, block 1 first.
func Streams(c result.Cell, bitsPerSecond ...float64) []result.Sample {
	var out []result.Sample
	for i, v := range bitsPerSecond {
		out = append(out, OKSample(c, i+1, Metrics{Throughput: v}))
	}
	return out
}

// Join puts campaigns together.
func Join(all ...[]result.Sample) []result.Sample {
	var out []result.Sample
	for _, s := range all {
		out = append(out, s...)
	}
	return out
}

// HistogramOf is the record of round trips given in nanoseconds.
func HistogramOf(t testing.TB, values ...int64) *result.Histogram {
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

// Find is the summary of a cell in an analysis.
func Find[S any](t testing.TB, a interface{ Cell(result.Cell) (S, bool) }, c result.Cell) S {
	t.Helper()
	s, ok := a.Cell(c)
	if !ok {
		t.Fatalf("no summary of %s %s", c.Network, c.Traffic())
	}
	return s
}

// SortedKeys are the keys of a map, in order.
func SortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
