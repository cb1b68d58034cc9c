package paper

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/dataset"
)

// second is a testbed that has all cells, each of which takes a second.
func second() Testbed {
	return Testbed{Lacks: func(result.Cell, string) string { return "" }, Cost: func(result.Cell) time.Duration { return time.Second }}
}

// TestProspects: what a testbed lacks is listed before it measures, and a claim of which
// it has a part can be contradicted still.
func TestProspects(t *testing.T) {
	labtest.Slow(t)
	p := load(t, "lim2020")
	testbed := second()
	testbed.Lacks = func(c result.Cell, _ string) string {
		if c.Network == "weave/fastdp" || c.Network == "calico/ipip-policy" {
			return "kernel has no " + c.Network
		}
		return ""
	}
	got := map[string]Prospect{}
	for _, x := range p.Prospects(testbed) {
		got[x.Claim.ID] = x
	}
	if x := got["calico-8500-of-9300"]; x.Why != "" || x.Part || len(x.Cells) != 2 {
		t.Errorf("%+v", x)
	}
	if x := got["calico-best"]; x.Why != "kernel has no weave/fastdp" || !x.Part || slices.ContainsFunc(x.Cells, func(c result.Cell) bool { return c.Network == "weave/fastdp" }) {
		t.Errorf("%+v", x)
	}
	if x := got["ipip-half-of-bare-metal"]; x.Part {
		t.Errorf("one cell is no pair: %+v", x)
	}
	if x := got["hpl-alike-in-80-percent-of-memory"]; x.Why != x.Claim.NotYet || x.Part {
		t.Errorf("%+v", x)
	}
}

// TestProspectsOfPairs: cells whose every other side the testbed lacks are not measured for the
// claim, however many there are.
func TestProspectsOfPairs(t *testing.T) {
	p := Paper{Claims: []Claim{claimOf("greater", on("a", "b"), on("c")), claimOf("greater", on("c"), on("a", "b")), claimOf("greater", on("a", "b"), on("host"))}, known: program(t)}
	a, b, c, host := cellOf("a"), cellOf("b"), cellOf("c"), cellOf("host")
	p.uses = [][]result.Cell{{a, b, c}, {a, b, c}, {a, b, host}}
	testbed := second()
	testbed.Lacks = func(cell result.Cell, _ string) string {
		if cell == c || cell == b {
			return "kernel has no " + cell.Network
		}
		return ""
	}
	for i, want := range [][]result.Cell{nil, nil, {a, host}} {
		if x := p.Prospects(testbed)[i]; !slices.Equal(x.Cells, want) || x.Part != (len(want) > 0) || !strings.HasPrefix(x.Why, "kernel has no ") {
			t.Errorf("claim %d: %+v, want the cells %v", i, x, want)
		}
	}
}

// TestOpen: cells of a decided claim need no more blocks, those of an open one do.
func TestOpen(t *testing.T) {
	p := Paper{known: program(t), Claims: []Claim{claimOf("greater", on("a"), on("host")), claimOf("greater", on("b"), on("c"))}}
	a, b, c, host := cellOf("a"), cellOf("b"), cellOf("c"), cellOf("host")
	p.uses = [][]result.Cell{{a, host}, {b, c}}
	m := (&made{}).add(a, throughput, around(2e9)...).add(host, throughput, around(1e9)...).
		add(b, throughput, 1.3e9, 0.9e9, 1.5e9).add(c, throughput, 1e9, 1e9, 1e9)
	done := p.Open(dataset.Options{})(m.samples)
	for cell, want := range map[result.Cell]bool{a: true, host: true, b: false, c: false} {
		if done[cell] != want {
			t.Errorf("%s: done %t, want %t", cell.Network, done[cell], want)
		}
	}
}

// TestOpenWithoutEffect: cells of a profile that did not take effect need no more blocks,
// whatever is open of the claim; the others of the claim do.
func TestOpenWithoutEffect(t *testing.T) {
	p := Paper{known: program(t), Claims: []Claim{claimOf("greater", Selector{"network": "a", "profile": "any"}, on("c"))}}
	a, tuned, c, tunedC := cellOf("a"), cellOf("a", profile("tuned")), cellOf("c"), cellOf("c", profile("tuned"))
	p.uses = [][]result.Cell{{a, tuned, c, tunedC}}
	m := (&made{}).add(a, throughput, 1.3e9, 0.9e9, 1.5e9).add(tuned, throughput, 1.3e9, 0.9e9, 1.5e9).
		add(c, throughput, 1e9, 1e9, 1e9).add(tunedC, throughput, 1e9, 1e9, 1e9)
	for i := range m.samples {
		if m.samples[i].Cell.Profile == "tuned" {
			m.samples[i].Warnings = []string{"profile tuned: rmem_max is 4194304, not 16777216"}
		}
	}
	done := p.Open(dataset.Options{})(m.samples)
	for cell, want := range map[result.Cell]bool{a: false, tuned: true, c: false, tunedC: true} {
		if done[cell] != want {
			t.Errorf("%s %s: done %t, want %t", cell.Network, cell.Profile, done[cell], want)
		}
	}
}

// TestUsedCells: a study measures what its claims and tables use, not all combinations.
func TestUsedCells(t *testing.T) {
	p := load(t, "spiderpool-v0.8")
	for _, c := range p.Used {
		if c.Workload == "netperf" && c.Placement == result.IntraHost {
			t.Errorf("%s: nothing uses it", name(c))
		}
	}
	if len(p.Used) == 0 {
		t.Error("no cell is used")
	}
}

// TestRefusedCells: cells that a testbed refuses are recorded whatever the budget, so that
// the report gives their reason and not the budget.
func TestRefusedCells(t *testing.T) {
	p := load(t, "lim2020")
	if got := p.Refused(second()); len(got) != 0 {
		t.Errorf("nothing is refused: %v", got)
	}
	lab := second()
	lab.Refuses = func(c result.Cell) string {
		if c.Network == "weave/fastdp" {
			return "kernel has no openvswitch"
		}
		return ""
	}
	got := p.Refused(lab)
	if len(got) == 0 || slices.ContainsFunc(got, func(c result.Cell) bool { return c.Network != "weave/fastdp" }) {
		t.Errorf("%v", got)
	}
}
