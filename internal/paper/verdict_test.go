package paper

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/stat/estimate"
	"github.com/cnibench/cnibench/internal/workload"
)

const throughput = "throughput_bits_per_second"

// made is results that a test makes up: values of a metric for each cell, one a
// block.
type made struct {
	samples []result.Sample
	known   campaign.Known
	env     result.Environment
}

func cellOf(network string, change ...func(*result.Cell)) result.Cell {
	c := result.Cell{Network: network, Path: result.PathPodToPod, Placement: result.InterHost, Link: "10-gigabit",
		Profile: "default_settings", MTU: 1500, Workload: "tcp_stream", MessageBytes: 1472, Streams: 1}
	for _, f := range change {
		f(&c)
	}
	if c.IsBaseline() {
		c = c.Baseline()
	}
	return c
}

func streams(n int) func(*result.Cell) { return func(c *result.Cell) { c.Streams = n } }

func profile(name string) func(*result.Cell) { return func(c *result.Cell) { c.Profile = name } }

func (m *made) add(c result.Cell, metric string, values ...float64) *made {
	for i, v := range values {
		one := 1.0
		m.samples = append(m.samples, result.Sample{Schema: 1, ID: fmt.Sprintf("b%02d-%s", i, c.Network), Block: i + 1, Attempt: 1, Cell: c,
			Status: result.StatusOK, MeasuredSeconds: &one, Metrics: map[string]float64{metric: v}})
	}
	return m
}

func (m *made) unsupported(c result.Cell, reason string) *made {
	m.samples = append(m.samples, result.Sample{Schema: 1, ID: "u", Block: 1, Cell: c, Status: result.StatusUnsupported, Reason: reason})
	return m
}

func (m *made) failed(c result.Cell, reason string) *made {
	m.samples = append(m.samples, result.Sample{Schema: 1, ID: "f", Block: 1, Cell: c, Status: result.StatusFailed, Reason: reason})
	return m
}

func (m *made) results() *Results {
	k := stat.NewCollector(dataset.Options{LinkRate: func(link string) (float64, bool) { return 10e9, link == "10-gigabit" }})
	for i := range m.samples {
		k.Add(&m.samples[i])
	}
	if m.known.Networks == nil {
		m.known = campaign.Known{Networks: []string{"host", "a", "b", "c"}, Links: []string{"10-gigabit", "unshaped"},
			Profiles: []string{"default_settings", "tuned"}, Workloads: []workload.Spec{{Name: "tcp_stream"}, {Name: "tcp_rr"}}}
	}
	return &Results{Analysis: k.Analyse(), Collector: k, Known: m.known, Environment: &m.env}
}

// around are values that vary by about a percent.
func around(v float64) []float64 {
	return []float64{v, v * 1.01, v * 0.99, v * 1.005, v * 0.995}
}

func claimOf(relation string, left Selector, right Selector) Claim {
	return Claim{ID: "x", Metric: throughput, Left: left, Relation: relation, Right: right}
}

func on(networks ...any) Selector {
	if len(networks) == 1 {
		return Selector{"network": networks[0]}
	}
	return Selector{"network": networks}
}

func with(c Claim, f func(*Claim)) Claim { f(&c); return c }

func ptr(v float64) *float64 { return &v }

func ends(c Claim, low, high *float64) Claim { c.Range = []*float64{low, high}; return c }

func wantVerdict(t *testing.T, c Claim, r *Results, want Outcome) Verdict {
	t.Helper()
	v := judge(nil, c, r, left{})
	if v.Outcome != want {
		t.Errorf("%s %v %v: %s, want %s (%+v, %+v)", c.Left, c.Relation, c.Right, v.Outcome, want, v.Pairs, v.Missing)
	}
	return v
}

// TestVerdictsFlip: each relation is reproduced by samples that show it, and
// contradicted by those that show the opposite.
func TestVerdictsFlip(t *testing.T) {
	two := func(a, b float64) *Results {
		return (&made{}).add(cellOf("a"), throughput, around(a)...).add(cellOf("b"), throughput, around(b)...).add(cellOf("host"), throughput, around(1e9)...).results()
	}
	in := func(c Claim, low, high float64) Claim { c.Range = []*float64{&low, &high}; return c }
	alike := func(c Claim) Claim { c.Within = 0.05; return c }
	for name, x := range map[string]struct {
		claim   Claim
		yes, no [2]float64
	}{
		"greater":           {claimOf("greater", on("a"), on("b")), [2]float64{2e9, 1e9}, [2]float64{1e9, 2e9}},
		"greater, alike":    {claimOf("greater", on("a"), on("b")), [2]float64{1.1e9, 1e9}, [2]float64{1e9, 1e9}},
		"less":              {claimOf("less", on("a"), on("b")), [2]float64{1e9, 2e9}, [2]float64{2e9, 1e9}},
		"better":            {claimOf("better", on("a"), on("b")), [2]float64{2e9, 1e9}, [2]float64{1e9, 2e9}},
		"worse":             {claimOf("worse", on("a"), on("b")), [2]float64{1e9, 2e9}, [2]float64{2e9, 1e9}},
		"ratio within":      {in(claimOf("ratio_within", on("a"), on("b")), 1.8, 2.2), [2]float64{2e9, 1e9}, [2]float64{1e9, 1e9}},
		"indistinguishable": {alike(claimOf("indistinguishable", on("a"), on("b"))), [2]float64{1e9, 1e9}, [2]float64{1.2e9, 1e9}},
		"greater by":        {with(claimOf("greater", on("a"), on("b")), func(c *Claim) { c.By = 0.5 }), [2]float64{2e9, 1e9}, [2]float64{1.2e9, 1e9}},
		"greater up to":     {with(claimOf("greater", on("a"), on("b")), func(c *Claim) { c.UpTo = 0.05 }), [2]float64{1.025e9, 1e9}, [2]float64{1.2e9, 1e9}},
		"a small gain":      {with(claimOf("greater", on("a"), on("b")), func(c *Claim) { c.UpTo = 0.05 }), [2]float64{1.025e9, 1e9}, [2]float64{0.9e9, 1e9}},
		"less by":           {with(claimOf("less", on("a"), on("b")), func(c *Claim) { c.By = 0.5 }), [2]float64{0.4e9, 1e9}, [2]float64{0.8e9, 1e9}},
		"less up to":        {with(claimOf("less", on("a"), on("b")), func(c *Claim) { c.UpTo = 0.1 }), [2]float64{0.95e9, 1e9}, [2]float64{0.5e9, 1e9}},
		"not greater":       {claimOf("not_greater", on("a"), on("b")), [2]float64{0.5e9, 1e9}, [2]float64{1.2e9, 1e9}},
		"not less":          {claimOf("not_less", on("a"), on("b")), [2]float64{2e9, 1e9}, [2]float64{0.8e9, 1e9}},
		"one bound":         {ends(claimOf("ratio_within", on("a"), on("b")), nil, ptr(0.5)), [2]float64{0.3e9, 1e9}, [2]float64{0.7e9, 1e9}},
		"difference":        {ends(claimOf("difference_within", on("a"), on("b")), ptr(0.5e9), ptr(1.5e9)), [2]float64{5e9, 4e9}, [2]float64{4.1e9, 4e9}},
		"zero, additive":    {with(claimOf("less", on("a"), on("b")), func(c *Claim) { c.Measure = differenceMeasure }), [2]float64{0, 1e9}, [2]float64{0, 0}},
		"zero, additive >":  {with(claimOf("greater", on("a"), on("b")), func(c *Claim) { c.Measure = differenceMeasure }), [2]float64{1e9, 0}, [2]float64{0, 1e9}},
		"all except":        {with(claimOf("greater", on("a", "b"), on("host")), func(c *Claim) { c.Except = on("b") }), [2]float64{2e9, 1e9}, [2]float64{2e9, 2e9}},
		"any":               {with(claimOf("greater", on("a", "b"), on("host")), func(c *Claim) { c.Holds = holdsAny }), [2]float64{1e9, 2e9}, [2]float64{1e9, 1e9}},
	} {
		t.Run(name, func(t *testing.T) {
			wantVerdict(t, x.claim, two(x.yes[0], x.yes[1]), Reproduced)
			wantVerdict(t, x.claim, two(x.no[0], x.no[1]), Contradicted)
		})
	}
}

// TestBetterKnowsWhichWay: of latency less is better.
func TestBetterKnowsWhichWay(t *testing.T) {
	const latency = "latency_mean_seconds"
	r := (&made{}).add(cellOf("a"), latency, 10e-6, 10.1e-6, 9.9e-6).add(cellOf("b"), latency, 20e-6, 20.1e-6, 19.9e-6).results()
	c := claimOf("better", on("a"), on("b"))
	c.Metric = primaryMetric
	wantVerdict(t, c, r, Reproduced)
	c.Relation = "worse"
	wantVerdict(t, c, r, Contradicted)
}

func TestFactorVerdicts(t *testing.T) {
	by := func(values ...float64) *Results {
		m := &made{}
		for i, v := range values {
			m.add(cellOf("a", streams(1<<i)), throughput, around(v)...)
		}
		return m.results()
	}
	rises := Claim{Metric: throughput, Left: on("a"), Relation: "rises_with", Factor: "streams"}
	wantVerdict(t, rises, by(1e9, 2e9, 3e9), Reproduced)
	wantVerdict(t, rises, by(1e9, 2e9, 2e9), Reproduced) // no step falls
	wantVerdict(t, rises, by(2e9, 2e9, 1e9), Contradicted)
	wantVerdict(t, rises, by(1e9, 3e9, 2e9), Contradicted) // a step falls
	wantVerdict(t, rises, by(1e9), NotMeasurable)
	falls := rises
	falls.Relation = "falls_with"
	wantVerdict(t, falls, by(3e9, 2e9, 1e9), Reproduced)
	wantVerdict(t, falls, by(1e9, 2e9, 3e9), Contradicted)
	beyond, two := rises, 2.0
	beyond.Relation, beyond.At = "falls_beyond", &two
	wantVerdict(t, beyond, by(3e9, 3e9, 1e9), Reproduced)
	wantVerdict(t, beyond, by(3e9, 3e9, 3e9), Contradicted)
	wantVerdict(t, beyond, by(3e9, 3e9), NotMeasurable) // nothing is beyond
}

func TestVerdictsAgainstNumbers(t *testing.T) {
	// MTU 1500, TCP: (1500 − 52) / (1500 + 14) of 10 Gbit/s.
	limit := 10e9 * 1448 / 1514
	full := Claim{Metric: throughput, Left: on("a"), Relation: "fills_link"}
	short := full
	short.Relation = "short_of_link"
	at := func(v float64) *Results {
		return (&made{}).add(cellOf("a"), throughput, v, v*0.999, v*1.001).results()
	}
	wantVerdict(t, full, at(limit*0.998), Reproduced)
	wantVerdict(t, full, at(limit/2), Contradicted)
	wantVerdict(t, short, at(limit/2), Reproduced)
	wantVerdict(t, short, at(limit*0.998), Contradicted)
	bound := 0.01
	lost := Claim{Metric: "loss_ratio", Left: on("a"), Relation: "value_within", Range: []*float64{nil, &bound}}
	none := (&made{}).add(cellOf("a"), "loss_ratio", 0, 0, 0).results()
	much := (&made{}).add(cellOf("a"), "loss_ratio", 0.3, 0.31, 0.29).results()
	wantVerdict(t, lost, none, Reproduced)
	wantVerdict(t, lost, much, Contradicted)
	lost.Range = []*float64{&bound, nil}
	wantVerdict(t, lost, much, Reproduced)
	wantVerdict(t, lost, none, Contradicted)
	unshaped := cellOf("a", func(c *result.Cell) { c.Link = "unshaped" })
	v := wantVerdict(t, full, (&made{}).add(unshaped, throughput, 1e9, 1e9).results(), NotMeasurable)
	if !strings.Contains(v.Missing[0].Why, "not known") {
		t.Errorf("%+v", v.Missing)
	}
}

// TestEfficiencies: a profile that speeds up the bare network alone makes the
// efficiency worse, whatever the throughput does.
func TestEfficiencies(t *testing.T) {
	r := (&made{}).
		add(cellOf("host"), throughput, 4e9, 4.1e9, 3.9e9).add(cellOf("a"), throughput, 2e9, 2.1e9, 1.9e9).
		add(cellOf("host", profile("tuned")), throughput, 8e9, 8.1e9, 7.9e9).add(cellOf("a", profile("tuned")), throughput, 3e9, 3.05e9, 2.95e9).results()
	c := claimOf("greater", Selector{"network": "a", "profile": "tuned"}, Selector{"profile": "default_settings"})
	wantVerdict(t, c, r, Reproduced)
	c.Measure = efficiencyMeasure
	wantVerdict(t, c, r, Contradicted)
}

// TestSeveralPairs: all must hold, one contradicts, most is more than half.
func TestSeveralPairs(t *testing.T) {
	r := (&made{}).add(cellOf("a"), throughput, around(2e9)...).add(cellOf("b"), throughput, around(1e9)...).
		add(cellOf("c"), throughput, around(3e9)...).add(cellOf("host"), throughput, around(1e9)...).results()
	v := wantVerdict(t, claimOf("greater", on("a"), on("b", "host")), r, Reproduced)
	if len(v.Pairs) != 2 || v.Pairs[0].Outcome != Reproduced {
		t.Errorf("%+v", v.Pairs)
	}
	wantVerdict(t, claimOf("greater", on("a"), on("b", "c")), r, Contradicted)
	most := claimOf("greater", on("a"), on("b", "c", "host"))
	most.Holds = holdsMost
	wantVerdict(t, most, r, Reproduced)
	most = claimOf("greater", on("a"), on("b", "c"))
	most.Holds = holdsMost
	wantVerdict(t, most, r, Contradicted) // half is not most
}

// TestUndecided: intervals that are too wide decide nothing, and the verdict says how
// many blocks would.
// TestDecidingPair: of several pairs the report shows the one nearest to failing the
// claim, also where the relation asks for a range, or for a difference that may be 0.
func TestDecidingPair(t *testing.T) {
	three := func(a, b, c float64) *Results {
		m := &made{}
		for i, v := range []float64{a, b, c} {
			values := around(v)
			m.add(cellOf(string(rune('a'+i))), throughput, append(values[i+1:], values[:i+1]...)...) // so that the ratios vary
		}
		return m.add(cellOf("d"), throughput, around(100)...).results()
	}
	all := on("a", "b", "c")
	anyOf := func(c *Claim) { c.Holds = holdsAny }
	for name, c := range map[string]struct {
		claim   Claim
		results *Results
		want    string
	}{
		"less: the one with the least loss":         {claimOf("less", all, on("d")), three(50, 90, 70), "b"},
		"similar: the one that differs most":        {with(claimOf("indistinguishable", all, on("d")), func(c *Claim) { c.Within = 0.5 }), three(101, 100, 120), "c"},
		"difference: the one nearest to 0":          {with(claimOf("less", all, on("d")), func(c *Claim) { c.Measure = differenceMeasure }), three(90, 70, 50), "a"},
		"contradicted: the one that shows it best":  {claimOf("less", all, on("d")), three(150, 90, 300), "c"},
		"any: the one that shows the relation best": {with(claimOf("less", all, on("d")), anyOf), three(90, 50, 150), "b"},
	} {
		v := judge(nil, c.claim, c.results, left{})
		if len(v.Pairs) != 3 {
			t.Fatalf("%s: %d pairs, not 3", name, len(v.Pairs))
		}
		if got := v.Pairs[v.Deciding].Left.Network; got != c.want {
			t.Errorf("%s: %s decides, not %s (%s)", name, got, c.want, v.Outcome)
		}
	}
}

func TestUndecided(t *testing.T) {
	c := claimOf("greater", on("a"), on("b"))
	m := (&made{}).add(cellOf("a"), throughput, 1.3e9, 0.9e9, 1.5e9, 0.95e9).add(cellOf("b"), throughput, 1e9, 1e9, 1e9, 1e9)
	v := wantVerdict(t, c, m.results(), Undecided)
	if v.MoreBlocks < 1 {
		t.Fatalf("%+v", v)
	}
	// As many more of the same mean and spread do decide, one fewer does not.
	j := decision{comparisons: resolve(m.results(), nil, c).comparisons, confidence: 0.95}
	if j.verdict(v.MoreBlocks) == Undecided || j.verdict(v.MoreBlocks-1) != Undecided {
		t.Errorf("%d more blocks: %s, one fewer: %s", v.MoreBlocks, j.verdict(v.MoreBlocks), j.verdict(v.MoreBlocks-1))
	}
	// One block has no interval.
	one := (&made{}).add(cellOf("a"), throughput, 2e9).add(cellOf("b"), throughput, 1e9).results()
	if v := wantVerdict(t, c, one, Undecided); v.MoreBlocks != 0 || v.Pairs[0].Value.Low != nil {
		t.Errorf("%+v", v)
	}
	// A pair that failed, or that the time budget left out, keeps a claim open that holds in the others.
	measured := func() *made {
		return (&made{}).add(cellOf("a"), throughput, around(2e9)...).add(cellOf("b"), throughput, around(1e9)...)
	}
	v = wantVerdict(t, claimOf("greater", on("a"), on("b", "c")), measured().failed(cellOf("c"), "broken").results(), Undecided)
	if len(v.Missing) != 1 || !strings.Contains(v.Missing[0].Why, "broken") || v.MoreBlocks != 0 {
		t.Errorf("%+v", v)
	}
	cut := measured().unsupported(cellOf("c"), "kernel has no c").results()
	cut.Cut = true
	wantVerdict(t, claimOf("greater", on("a"), Selector{"network": []any{"b", "c"}, "streams": []any{1.0, 4.0}}), cut, Undecided)
}

// TestLeftOutOfAnOpenFactor: a factor that a claim leaves open has fewer values where a time
// budget cut the campaign. What it left out keeps the claim open, whatever the rest shows.
func TestLeftOutOfAnOpenFactor(t *testing.T) {
	m := (&made{}).add(cellOf("a"), throughput, around(2e9)...).add(cellOf("b"), throughput, around(1e9)...).unsupported(cellOf("c"), "kernel has no c")
	claim := with(claimOf("greater", Selector{"network": "a", "profile": anyValue}, on("b", "c")), func(c *Claim) { c.ID = "open" })
	tuned := cellOf("a", func(c *result.Cell) { c.Profile, c.CPUs = "tuned", "same" })
	tunedB := cellOf("b", func(c *result.Cell) { c.Profile, c.CPUs = "tuned", "same" })
	elsewhere := cellOf("z")
	for name, c := range map[string]struct {
		cut  bool
		uses []result.Cell
		want Outcome
	}{
		"all is recorded":              {true, []result.Cell{cellOf("a"), cellOf("b"), cellOf("c")}, ReproducedInPart},
		"other conditions":             {true, []result.Cell{cellOf("a", func(c *result.Cell) { c.CPUs = "free" }), cellOf("b"), cellOf("c")}, ReproducedInPart},
		"a profile is left out":        {true, []result.Cell{cellOf("a"), cellOf("b"), cellOf("c"), tuned, tunedB}, Undecided},
		"of which one side is no cell": {true, []result.Cell{cellOf("a"), cellOf("b"), cellOf("c"), tuned}, ReproducedInPart},
		"of another campaign":          {true, []result.Cell{elsewhere, tuned}, ReproducedInPart},
		"without a time budget":        {false, []result.Cell{cellOf("a"), tuned}, ReproducedInPart},
		"a testbed of its own":         {true, nil, ReproducedInPart},
	} {
		for _, holds := range []string{"", holdsMost} {
			r := m.results()
			r.Cut = c.cut
			claim.Holds = holds
			if v := Verdicts(Paper{Claims: []Claim{claim}, uses: [][]result.Cell{c.uses}, known: program(t)}, r)[0]; v.Outcome != c.want {
				t.Errorf("%s, holds %q: %s, want %s (%v)", name, holds, v.Outcome, c.want, v.Missing)
			}
		}
	}
}

// TestReproducedInPart: a claim holds in all that can be measured, and the rest needs what the
// testbed lacks. It is nothing of the kind where one measured pair does not show it.
func TestReproducedInPart(t *testing.T) {
	part := (&made{}).add(cellOf("a"), throughput, around(2e9)...).add(cellOf("b"), throughput, around(1e9)...).
		add(cellOf("d"), throughput, 1.2e9, 2.9e9, 1.3e9, 2.8e9).unsupported(cellOf("c"), "kernel has no c").results()
	others := on("b", "c")
	v := wantVerdict(t, claimOf("greater", on("a"), others), part, ReproducedInPart)
	if len(v.Missing) != 1 || !strings.Contains(v.Missing[0].Why, "kernel has no c") || v.MoreBlocks != 0 || v.Leans != "" || !v.Outcome.Compared() || v.Pairs[v.Deciding].Outcome != Reproduced {
		t.Errorf("%+v", v)
	}
	wantVerdict(t, claimOf("less", on("a"), others), part, Contradicted)
	wantVerdict(t, with(claimOf("greater", on("a"), others), func(c *Claim) { c.Holds = holdsMost }), part, ReproducedInPart)
	wantVerdict(t, with(claimOf("greater", on("a"), others), func(c *Claim) { c.Holds = holdsAny }), part, Reproduced)
	if v := wantVerdict(t, claimOf("greater", on("a"), on("b", "c", "d")), part, Undecided); v.MoreBlocks < 1 {
		t.Errorf("%+v", v)
	}
	// Whatever the pair that is missing would show, most of the four show it, or most do not.
	most := func(c *Claim) { c.Holds = holdsMost }
	four := (&made{}).add(cellOf("a"), throughput, around(2e9)...).add(cellOf("b"), throughput, around(1e9)...).
		add(cellOf("d"), throughput, around(1.1e9)...).add(cellOf("e"), throughput, around(1.2e9)...).failed(cellOf("c"), "broken").results()
	wantVerdict(t, with(claimOf("greater", on("a"), on("b", "c", "d", "e")), most), four, Reproduced)
	wantVerdict(t, with(claimOf("less", on("a"), on("b", "c", "d", "e")), most), four, Contradicted)
	wantVerdict(t, with(claimOf("greater", on("a"), on("b", "c")), most), four, Undecided)
	wantVerdict(t, with(claimOf("less", on("a"), on("b", "c")), most), four, Contradicted)      // at most half of two
	wantVerdict(t, with(claimOf("greater", on("a", "c"), on("b", "d")), most), four, Undecided) // c has two pairs
	part.Untaken = map[string][]string{"default_settings": {"a setting"}}
	wantVerdict(t, claimOf("greater", on("a"), on("b")), part, NotMeasurable)
}

// TestNotMeasurable: the reason is asked of what is known here and of the records.
func TestNotMeasurable(t *testing.T) {
	r := (&made{env: result.Environment{Absent: []string{"probe counters: none"}}}).
		add(cellOf("a"), throughput, 1e9, 1e9).unsupported(cellOf("b"), "kernel has no b").failed(cellOf("c"), "broken").results()
	for want, c := range map[string]Claim{
		"no network weave":                        claimOf("greater", on("weave"), on("a")),
		"no link token-ring":                      claimOf("greater", Selector{"network": "a", "link": "token-ring"}, on("b")),
		"no profile quick":                        claimOf("greater", on("a"), Selector{"profile": "quick"}),
		"no workload chess":                       claimOf("greater", Selector{"workload": "chess"}, on("b")),
		"no factor moon":                          claimOf("greater", Selector{"network": "a", "moon": "full"}, on("b")),
		"unsupported here: kernel has no b":       claimOf("greater", on("a"), on("b")),
		"all 1 samples failed: broken":            claimOf("greater", on("a"), on("c")),
		"add it to the campaign":                  claimOf("greater", on("a"), Selector{"streams": 4.0}),
		"cycles_per_byte (probe counters: none)":  with(claimOf("greater", on("a"), on("a")), func(c *Claim) { c.Metric = "cycles_per_byte" }),
		"too large for a desk":                    {NotYet: "too large for a desk"},
		"fewer than 2 values of mtu are recorded": {Metric: throughput, Left: on("a"), Relation: "rises_with", Factor: "mtu"},
		"this cnibench has no factor moon":        {Metric: throughput, Left: on("a"), Relation: "rises_with", Factor: "moon"},
	} {
		v := judge(nil, c, r, left{})
		if v.Outcome != NotMeasurable || len(v.Missing) == 0 || !strings.Contains(v.Missing[0].Why, want) {
			t.Errorf("want %q: %s, %+v", want, v.Outcome, v.Missing)
		}
	}
	r.Cut = true
	if v := judge(nil, claimOf("greater", on("a"), Selector{"streams": 4.0}), r, left{}); v.Outcome != NotMeasured || v.Outcome.Compared() || !strings.Contains(v.Missing[0].Why, "time budget") {
		t.Errorf("%s, %+v", v.Outcome, v.Missing)
	}
	if v := judge(nil, claimOf("greater", on("a"), on("b")), r, left{}); v.Outcome != NotMeasurable { // the budget is not why
		t.Errorf("%s, %+v", v.Outcome, v.Missing)
	}
}

// TestLeftOutOrLacking: of a claim without any pair, part of the cells was left out by a time
// budget, and part needs what the testbed lacks. A run without the budget may decide it where
// it would have both sides of a pair.
func TestLeftOutOrLacking(t *testing.T) {
	r := (&made{}).add(cellOf("a"), throughput, around(2e9)...).unsupported(cellOf("c"), "kernel has no c").results()
	r.Cut = true
	a, b, c, host := cellOf("a"), cellOf("b"), cellOf("c"), cellOf("host")
	for name, x := range map[string]struct {
		claim Claim
		uses  []result.Cell
		want  Outcome
		first string
	}{
		"a and b would be a pair":        {claimOf("greater", on("a"), on("b", "c")), []result.Cell{a, b, c}, NotMeasured, leftOut},
		"b and host would be a pair":     {claimOf("greater", on("b"), on("c", "host")), []result.Cell{b, c, host}, NotMeasured, leftOut},
		"c is missing in each":           {claimOf("greater", on("b", "host"), on("c")), []result.Cell{b, c, host}, NotMeasurable, unsupportedHere},
		"c is missing, and b is not":     {claimOf("greater", on("c"), on("b")), []result.Cell{b, c}, NotMeasurable, unsupportedHere},
		"nothing is left out":            {claimOf("greater", on("a"), on("c")), []result.Cell{a, c}, NotMeasurable, unsupportedHere},
		"all of it is left out":          {claimOf("greater", on("b"), on("host")), []result.Cell{b, host}, NotMeasured, leftOut},
		"with the conditions of the lab": {claimOf("greater", on("a"), on("b", "c")), []result.Cell{a, b, cellOf("c", func(c *result.Cell) { c.CPUs = "free" })}, NotMeasured, leftOut},
	} {
		v := Verdicts(Paper{Claims: []Claim{x.claim}, uses: [][]result.Cell{x.uses}, known: program(t)}, r)[0]
		if v.Outcome != x.want || len(v.Missing) == 0 || !strings.HasPrefix(v.Missing[0].Why, x.first) {
			t.Errorf("%s: %s, want %s; %v", name, v.Outcome, x.want, v.Missing)
		}
	}
}

// TestReasonThatMostHave: of a claim without any pair, the reason that most of it has is named
// first.
func TestReasonThatMostHave(t *testing.T) {
	m := (&made{}).unsupported(cellOf("b"), "kernel has no b").failed(cellOf("c"), "broken").failed(cellOf("a"), "broken")
	v := judge(nil, claimOf("greater", on("b", "c", "a"), on("host")), m.results(), left{})
	if v.Outcome != NotMeasurable || len(v.Missing) != 4 || !strings.Contains(v.Missing[0].Why, "broken") {
		t.Errorf("%s: %v", v.Outcome, v.Missing)
	}
}

// TestFalseDecisions: a claim whose truth is on its boundary is decided falsely
// in at most 5 % of campaigns, of one pair and of many.
func TestFalseDecisions(t *testing.T) {
	const campaigns = 4000
	for name, x := range map[string]struct {
		pairs  int
		bounds bounds
		truth  float64 // of every ratio
		wrong  Outcome // what must be rare; "" where either is
	}{
		"greater, none":                 {1, more(Claim{}), 1, Reproduced},
		"greater, just more":            {1, more(Claim{}), 1 + negligible, Contradicted},
		"ratio at its upper end":        {1, within(0.8, 1.25), 1.25, ""},
		"five pairs, none greater":      {5, more(Claim{}), 1, Reproduced},
		"ten pairs, each just more":     {10, more(Claim{}), 1 + negligible, Contradicted},
		"ten pairs at their upper ends": {10, within(0.8, 1.25), 1.25, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, uint64(x.pairs)))
			wrong := 0
			for range campaigns {
				j := decision{confidence: 0.95}
				for range x.pairs {
					j.comparisons = append(j.comparisons, comparison{bounds: x.bounds, moments: draw(r, math.Log(x.truth), 0.1, 6)})
				}
				if w := j.verdict(0); w == x.wrong || x.wrong == "" && w != Undecided {
					wrong++
				}
			}
			share := float64(wrong) / campaigns
			t.Logf("%.1f %%", 100*share)
			if share > 0.05+3*math.Sqrt(0.05*0.95/campaigns) {
				t.Errorf("%.1f %% of campaigns decide falsely, want at most 5 %%", 100*share)
			}
		})
	}
}

// draw makes the moments of n normal values.
func draw(r *rand.Rand, mean, sd float64, n int) estimate.Moments {
	var sum, squares float64
	for range n {
		v := mean + sd*r.NormFloat64()
		sum += v
		squares += v * v
	}
	m := estimate.Moments{N: n, Mean: sum / float64(n)}
	m.SD = math.Sqrt((squares - sum*m.Mean) / float64(n-1))
	return m
}
