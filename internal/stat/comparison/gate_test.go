package comparison

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/stattest"
)

func toolsOf(c result.Cell) []string {
	if c.Workload == "iperf3" {
		return []string{"iperf3"}
	}
	return nil
}

// TestDifferencesThatMatter: a difference is one of the comparison only where a compared
// cell depends on it; the others are listed apart.
func TestDifferencesThatMatter(t *testing.T) {
	native, tool := stattest.CellOf("x"), stattest.CellOf("x")
	tool.Workload = "iperf3"
	native.Cluster, tool.Cluster = "c", "c"
	node := result.NodeFacts{OS: "Debian 12", Kernel: "6.1", CPUs: 4, MemoryBytes: 1}
	env := func(version, iperf3, cni string, nodes map[string]result.NodeFacts) result.Environment {
		e := result.Environment{Version: version, Testbed: "kubernetes", Tools: map[string]string{"iperf3": iperf3, "cni/bridge": cni},
			Clusters: map[string]result.ClusterFacts{"c": {Nodes: nodes}}, Places: map[string]result.PlaceFacts{}}
		for name := range nodes {
			e.Places["pod-client-1 on "+name] = result.PlaceFacts{}
		}
		return e
	}
	base := env("1", "3.12", "1.1", map[string]result.NodeFacts{"n1": node})
	for name, c := range map[string]struct {
		cells     []result.Cell
		next      result.Environment
		differ    []string
		harmless  []string
		onTestbed string
	}{
		"version, native":         {[]result.Cell{native}, env("2", "3.12", "1.1", base.Clusters["c"].Nodes), []string{"cnibench: 1 → 2"}, nil, ""},
		"version, tool":           {[]result.Cell{tool}, env("2", "3.12", "1.1", base.Clusters["c"].Nodes), nil, []string{"cnibench: 1 → 2"}, ""},
		"version, tool in a lab":  {[]result.Cell{tool}, env("2", "3.12", "1.1", base.Clusters["c"].Nodes), []string{"cnibench: 1 → 2"}, nil, "lab"},
		"version, both":           {[]result.Cell{native, tool}, env("2", "3.12", "1.1", base.Clusters["c"].Nodes), []string{"cnibench: 1 → 2 (matters for 1 of 2 cells: x tcp_stream 1472 B)"}, nil, ""},
		"tool":                    {[]result.Cell{native, tool}, env("1", "3.16", "1.1", base.Clusters["c"].Nodes), []string{"version of iperf3: 3.12 → 3.16 (matters for 1 of 2 cells: x iperf3 1472 B)"}, nil, ""},
		"plugin":                  {[]result.Cell{native}, env("1", "3.12", "1.2", base.Clusters["c"].Nodes), []string{"version of cni/bridge: 1.1 → 1.2"}, nil, ""},
		"plugin, baseline only":   {[]result.Cell{native.Baseline()}, env("1", "3.12", "1.2", base.Clusters["c"].Nodes), nil, []string{"version of cni/bridge: 1.1 → 1.2"}, ""},
		"renamed node":            {[]result.Cell{native}, env("1", "3.12", "1.1", map[string]result.NodeFacts{"n9": {OS: "Debian 12", Kernel: "6.1", CPUs: 4, MemoryBytes: 2}}), nil, []string{"cluster c: nodes: n1 → n9", "pod-client-1 on n1: a place of the campaign → (absent)", "pod-client-1 on n9: (absent) → a place of the campaign"}, ""},
		"another node":            {[]result.Cell{native}, env("1", "3.12", "1.1", map[string]result.NodeFacts{"n9": {OS: "Debian 12", Kernel: "6.9", CPUs: 4}}), []string{"cluster c: nodes: n1 → n9", "pod-client-1 on n1: a place of the campaign → (absent)", "pod-client-1 on n9: (absent) → a place of the campaign"}, nil, ""},
		"nothing is known of any": {nil, env("2", "3.12", "1.1", base.Clusters["c"].Nodes), []string{"cnibench: 1 → 2"}, nil, ""},
	} {
		var samples []result.Sample
		for _, x := range c.cells {
			samples = append(samples, stattest.OKSample(x, 1, stattest.Metrics{stattest.Throughput: 1}))
		}
		from := base
		if c.onTestbed != "" {
			from.Testbed, c.next.Testbed = c.onTestbed, c.onTestbed
		}
		got := Compare(Side{samples, from}, Side{samples, c.next}, Options{Threshold: 0.03, Tools: toolsOf, KnownTools: []string{"iperf3"}})
		if !slices.Equal(got.Differences, c.differ) || !slices.Equal(got.Harmless, c.harmless) {
			t.Errorf("%s: differences %q, want %q; harmless %q, want %q", name, got.Differences, c.differ, got.Harmless, c.harmless)
		}
	}
}

// TestPluginsOfOneNetwork: another version of a CNI plugin matters for the networks that
// use it; networks of a campaign's own conflists may use any.
func TestPluginsOfOneNetwork(t *testing.T) {
	uses, other, own := stattest.CellOf("uses"), stattest.CellOf("other"), stattest.CellOf("own")
	plugins := func(network string) ([]string, bool) {
		return map[string][]string{"uses": {"bridge", "host-local"}, "other": {"host-local"}}[network], network != "own"
	}
	env := func(version string) result.Environment {
		return result.Environment{Testbed: "lab", Tools: map[string]string{"cni/bridge": version}}
	}
	for name, c := range map[string]struct {
		cells            []result.Cell
		differ, harmless []string
	}{
		"one of two":        {[]result.Cell{uses, other}, []string{"version of cni/bridge: 1.1 → 1.2 (matters for 1 of 2 cells: uses tcp_stream 1472 B)"}, nil},
		"none":              {[]result.Cell{other}, nil, []string{"version of cni/bridge: 1.1 → 1.2"}},
		"a network unknown": {[]result.Cell{own}, []string{"version of cni/bridge: 1.1 → 1.2"}, nil},
	} {
		var samples []result.Sample
		for _, x := range c.cells {
			samples = append(samples, stattest.OKSample(x, 1, stattest.Metrics{stattest.Throughput: 1}))
		}
		got := Compare(Side{samples, env("1.1")}, Side{samples, env("1.2")}, Options{Threshold: 0.03, Plugins: plugins})
		if !slices.Equal(got.Differences, c.differ) || !slices.Equal(got.Harmless, c.harmless) {
			t.Errorf("%s: differences %q, want %q; harmless %q, want %q", name, got.Differences, c.differ, got.Harmless, c.harmless)
		}
	}
}

// TestDifferencesNameCells: cells that network and traffic do not distinguish are named
// with all factors, and a long list is cut.
func TestDifferencesNameCells(t *testing.T) {
	at := func(mtu, streams int) result.Cell {
		c := stattest.CellOf("uses")
		c.MTU, c.Streams = mtu, streams
		return c
	}
	all := []result.Cell{at(1500, 1), at(9000, 1), at(1500, 2)}
	if got, want := (sides{cells: all}).name(all), "uses pod-to-pod inter-host, unshaped, default_settings, MTU 1500, tcp_stream 1472 B; "+
		"uses pod-to-pod inter-host, unshaped, default_settings, MTU 9000, tcp_stream 1472 B; uses tcp_stream 1472 B × 2"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	var many []result.Cell
	for n := range 8 {
		many = append(many, at(1500, n+1))
	}
	if got := (sides{cells: many}).name(many); !strings.HasSuffix(got, "; and 3 more") || strings.Count(got, ";") != mostNamed {
		t.Errorf("%q", got)
	}
}

// TestRenamedNodeWithOtherSettings: a new name of a node matters for no cell only where
// its places have the same settings.
func TestRenamedNodeWithOtherSettings(t *testing.T) {
	cell := stattest.CellOf("x")
	cell.Cluster = "c"
	env := func(node, rmem string) result.Environment {
		return result.Environment{Testbed: "kubernetes",
			Clusters: map[string]result.ClusterFacts{"c": {Nodes: map[string]result.NodeFacts{node: {OS: "Debian 12", Kernel: "6.1", CPUs: 4}}}},
			Places:   map[string]result.PlaceFacts{"pod-client-1 on " + node: {Node: node, Sysctls: map[string]string{"net.core.rmem_max": rmem}}}}
	}
	samples := []result.Sample{stattest.OKSample(cell, 1, stattest.Metrics{stattest.Throughput: 1})}
	for rmem, refused := range map[string]int{"1": 0, "2": 2} {
		got := Compare(Side{samples, env("n1", "1")}, Side{samples, env("n9", rmem)}, Options{Threshold: 0.03})
		if len(got.Differences) != refused || len(got.Harmless) != 3-refused {
			t.Errorf("rmem_max %s: differences %q, harmless %q", rmem, got.Differences, got.Harmless)
		}
	}
}

// TestPlacesOfAnAddedNetwork: a network of one side only adds places that matter for no
// compared cell.
func TestPlacesOfAnAddedNetwork(t *testing.T) {
	base := Side{[]result.Sample{stattest.OKSample(stattest.CellOf("x"), 1, stattest.Metrics{stattest.Throughput: 1})}, result.Environment{Testbed: "lab"}}
	next := Side{append(slices.Clone(base.Samples), stattest.OKSample(stattest.CellOf("y"), 1, stattest.Metrics{stattest.Throughput: 1})),
		result.Environment{Testbed: "lab", Places: map[string]result.PlaceFacts{"y node1": {}}}}
	if c := Compare(base, next, Options{Threshold: 0.03}); len(c.Differences) != 0 || len(c.Harmless) != 1 {
		t.Errorf("differences %q, harmless %q", c.Differences, c.Harmless)
	}
	next.Environment.Places = map[string]result.PlaceFacts{"x node1": {}}
	if c := Compare(base, next, Options{Threshold: 0.03}); len(c.Differences) != 1 {
		t.Errorf("differences %q", c.Differences)
	}
}

// TestNeedsDecide: a run of the length that an undecided comparison asks for decides in
// most cases.
func TestNeedsDecide(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 11))
	asked, decided := 0, 0
	for range 60 {
		base, short := side(r, 40, 1, 0.03, nil), side(r, 5, 1, 0.03, nil)
		began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		for i := range short.Samples {
			short.Samples[i].Started = began.Add(time.Duration(short.Samples[i].Block) * 4 * time.Second)
		}
		c := Compare(base, short, Options{Threshold: 0.03})
		if c.Cells[0].Verdict != CannotTell {
			continue
		}
		n := c.Cells[0].Needs
		if n == nil || n.Blocks <= 5 || n.Seconds != 4*float64(n.Blocks) {
			t.Fatalf("%+v", n)
		}
		if n.BaseToo || n.Blocks > 400 {
			continue // the short run's change was near the threshold by chance
		}
		asked++
		again := Compare(base, side(r, n.Blocks, 1, 0.03, nil), Options{Threshold: 0.03})
		decided += stattest.Count(again.Cells[0].Verdict != CannotTell)
	}
	t.Logf("%d of %d decided", decided, asked)
	if asked < 15 || decided*2 < asked {
		t.Errorf("%d of %d runs of the stated length decided", decided, asked)
	}
}

// TestNeedsOfTheBase: where the base is the noisy side, the statement is about both.
func TestNeedsOfTheBase(t *testing.T) {
	r := rand.New(rand.NewPCG(12, 12))
	c := Compare(side(r, 4, 1, 0.2, nil), side(r, 40, 1, 0.001, nil), Options{Threshold: 0.01})
	if x := c.Cells[0]; x.Verdict != CannotTell || x.Needs == nil || !x.Needs.BaseToo || x.Needs.Blocks <= 4 {
		t.Errorf("%s %+v", x.Verdict, x.Needs)
	}
	if len(c.Undecided()) != 1 {
		t.Errorf("%d undecided", len(c.Undecided()))
	}
}
