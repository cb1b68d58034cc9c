package stat

import (
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/stat/stattest"
	"github.com/cnibench/cnibench/internal/unit"
	"github.com/cnibench/cnibench/internal/workload"
)

// toolCell is the cell of a published tool with the factors of another cell.
func toolCell(c result.Cell, tool, test, protocol string, streams int) result.Cell {
	c.Workload, c.Test, c.Protocol, c.Streams = tool, test, protocol, streams
	return c
}

func TestCrossCheck(t *testing.T) {
	c := stattest.CellOf("bridge")
	iperf3, netperf := toolCell(c, "iperf3", "", "tcp", 1), toolCell(c, "netperf", "TCP_STREAM", "", 0)
	// The machine is twice as fast in block 2: the ratio does not see it.
	samples := stattest.Join(stattest.Streams(c, 12e9, 24e9, 12e9), stattest.Streams(iperf3, 10e9, 20e9, 10e9), stattest.Streams(netperf, 15e9, 30e9))
	a := Analyse(samples, dataset.Options{})
	if len(a.CrossChecks) != 2 {
		t.Fatalf("%+v", a.CrossChecks)
	}
	for i, want := range []struct {
		classic result.Cell
		ratio   float64
		n       int
	}{{iperf3, 1.2, 3}, {netperf, 0.8, 2}} {
		x := a.CrossChecks[i]
		if x.Native != c || x.Classic != want.classic || x.Metric != stattest.Throughput || x.Differs == "" {
			t.Errorf("%+v", x)
		}
		stattest.Near(t, "ratio", x.Ratio.Value, want.ratio, 1e-12)
		if low, high, ok := x.Ratio.Interval(); !ok || x.Ratio.N != want.n || low > want.ratio || high < want.ratio {
			t.Errorf("%+v", x.Ratio)
		}
	}
}

// A latency's ratio is not turned round: 0.5 is half the time.
func TestCrossCheckOfLatency(t *testing.T) {
	c := stattest.RROf("bridge")
	tool := toolCell(c, "sockperf", "ping-pong", "tcp", 0)
	var samples []result.Sample
	for b := 1; b <= 3; b++ {
		samples = append(samples,
			stattest.OKSample(c, b, stattest.Metrics{"latency_mean_seconds": 20e-6, "transactions_per_second": 50_000}),
			stattest.OKSample(tool, b, stattest.Metrics{"latency_mean_seconds": 40e-6, "transactions_per_second": 25_000}))
	}
	a := Analyse(samples, dataset.Options{})
	if len(a.CrossChecks) != 1 || a.CrossChecks[0].Metric != "latency_mean_seconds" {
		t.Fatalf("%+v", a.CrossChecks)
	}
	stattest.Near(t, "ratio", a.CrossChecks[0].Ratio.Value, 0.5, 1e-12)
	if len(a.RoundTrips) != 2 || !a.RoundTrips[0].OK || !a.RoundTrips[1].OK {
		t.Errorf("%+v", a.RoundTrips)
	}
}

// Only cells with the same factors are compared.
func TestCrossCheckOnlyOfEqualFactors(t *testing.T) {
	c := stattest.CellOf("bridge")
	tool := toolCell(c, "iperf3", "", "tcp", 1)
	for name, change := range map[string]func(native, classic *result.Cell){
		"network":   func(_, e *result.Cell) { e.Network = "macvlan" },
		"path":      func(_, e *result.Cell) { e.Path = result.PathHostToPod },
		"placement": func(_, e *result.Cell) { e.Placement = result.IntraHost },
		"link":      func(_, e *result.Cell) { e.Link = "1-gigabit" },
		"profile":   func(_, e *result.Cell) { e.Profile = "other" },
		"mtu":       func(_, e *result.Cell) { e.MTU = 9000 },
		"family":    func(_, e *result.Cell) { e.Family = "ipv6" },
		"size":      func(_, e *result.Cell) { e.MessageBytes = 0 },
		"streams":   func(_, e *result.Cell) { e.Streams = 4 },
		"many":      func(d, e *result.Cell) { d.Streams, e.Streams = 4, 0 },
		"direction": func(_, e *result.Cell) { e.Direction = "reverse" },
		"rate":      func(_, e *result.Cell) { e.RateBitsPerSecond = 1e6 },
		"open loop": func(d, e *result.Cell) { d.RatePerSecond, e.RatePerSecond = 1e3, 1e3 },
		"zero copy": func(d, _ *result.Cell) { d.ZeroCopy = true },
		"protocol":  func(_, e *result.Cell) { e.Protocol = "udp" },
	} {
		d, e := c, tool
		change(&d, &e)
		if x := Analyse(stattest.Join(stattest.Streams(d, 1, 1), stattest.Streams(e, 1, 1)), dataset.Options{}).CrossChecks; len(x) != 0 {
			t.Errorf("%s: %+v", name, x)
		}
	}
}

func TestCrossCheckSaysWhyNot(t *testing.T) {
	c := stattest.CellOf("bridge")
	tool := toolCell(c, "iperf3", "", "tcp", 1)
	missing := stattest.FailedSample(tool, 1, "iperf3 is not installed")
	missing.Status = result.StatusUnsupported
	other := stattest.Streams(tool, 1, 1, 1)[2:]
	for want, tools := range map[string][]result.Sample{
		"iperf3: unsupported: iperf3 is not installed":               {missing},
		"iperf3: all 2 samples failed: refused":                      {stattest.FailedSample(tool, 1, "refused"), stattest.FailedSample(tool, 2, "refused")},
		"no block has throughput_bits_per_second of both":            other,
		"no block has throughput_bits_per_second of both (no value)": {stattest.OKSample(tool, 1, stattest.Metrics{"retransmits": 1})},
	} {
		want, _, _ := strings.Cut(want, " (no value)")
		x := Analyse(stattest.Join(stattest.Streams(c, 1, 1), tools), dataset.Options{}).CrossChecks
		if len(x) != 1 || x[0].Ratio != nil || x[0].NoRatio != want {
			t.Errorf("want %q, got %+v", want, x)
		}
	}
}

// The table names workloads, tests, protocols and metrics that there are.
func TestCorrespondencesAreReal(t *testing.T) {
	has := func(list []string, s string) bool {
		if len(list) == 0 {
			return s == ""
		}
		for _, v := range list {
			if v == s {
				return true
			}
		}
		return false
	}
	for _, k := range Correspondences() {
		native, err := workload.Find(k.Native)
		if err != nil || len(native.Spec().Needs) > 0 {
			t.Errorf("%s: %v, or a tool", k.Native, err)
		}
		tool, err := workload.Find(k.Tool)
		if err != nil || len(tool.Spec().Needs) == 0 {
			t.Errorf("%s: %v, or no tool", k.Tool, err)
			continue
		}
		if s := tool.Spec(); !has(s.Tests, k.Test) || !has(s.Protocols, k.Protocol) {
			t.Errorf("%s has no test %q with protocol %q", k.Tool, k.Test, k.Protocol)
		}
		if _, ok := unit.FindMetric(k.Metric); !ok || k.Differs == "" {
			t.Errorf("%+v", k)
		}
	}
}
