package paper

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/stat/estimate"
)

// TestBudgetOfStudy: before anything is measured, a budget takes the claims that cost least, and
// what they share once; more time takes more of them, and enough takes all.
func TestBudgetOfStudy(t *testing.T) {
	labtest.Slow(t)
	p := load(t, "volpert2022")
	before := 0
	for _, block := range []int{2, 6, 100} {
		b := p.Budget(time.Duration(firstBlocks*block)*time.Second, second(), dataset.Options{})
		next := b.Next(nil)
		if n := len(next.Cells()); n > block || next.Block != time.Duration(n)*time.Second || len(next.Claims) <= before {
			t.Errorf("%d s a block: %d cells in %s for %d claims, before %d", block, n, next.Block, len(next.Claims), before)
		}
		before = len(next.Claims)
	}
	measured := slices.DeleteFunc(slices.Clone(p.Claims), func(c Claim) bool { return c.NotYet != "" })
	if before != len(measured) {
		t.Errorf("%d of %d claims with time for all", before, len(measured))
	}
	// One claim is measured however little time there is.
	if next := p.Budget(time.Millisecond, second(), dataset.Options{}).Next(nil); len(next.Claims) != 1 || len(next.Cells()) == 0 {
		t.Errorf("%+v", next)
	}
	// Findings and numbers come first.
	for _, c := range p.Budget(6*firstBlocks*time.Second, second(), dataset.Options{}).Next(nil).Cells() {
		if c.Services > 0 || c.Policies > 0 {
			t.Errorf("%s belongs to a question", name(c))
		}
	}
}

// three is a paper with three claims: a against the host, b against c, and d against c under two
// profiles.
func three(t *testing.T) (p Paper, a, b, c, host result.Cell) {
	a, b, c, host = cellOf("a"), cellOf("b"), cellOf("c"), cellOf("host")
	cTuned, bTuned := cellOf("c", profile("tuned")), cellOf("b", profile("tuned"))
	p = Paper{known: program(t), Claims: []Claim{
		claimOf("greater", on("a"), on("host")), claimOf("greater", on("b"), on("c")),
		claimOf("greater", Selector{"network": "b", "profile": "tuned"}, on("c")),
	}}
	for i := range p.Claims {
		p.Claims[i].Kind, p.Claims[i].ID = findingKind, string(rune('x'+i))
	}
	p.Publication.Cells = Selector{"profile": "default_settings"}
	p.uses = [][]result.Cell{{a, host}, {b, c}, {bTuned, cTuned}}
	p.Used = []result.Cell{a, b, c, host, bTuned, cTuned}
	return p, a, b, c, host
}

// ids are those of the claims that are measured next.
func ids(s Spending) string {
	var out string
	for _, c := range s.Claims {
		out += c.ID
	}
	return out
}

// timed gives samples the times of a run, one after the other.
func timed(m *made, each time.Duration) []result.Sample {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	slices.SortStableFunc(m.samples, func(a, b result.Sample) int { return a.Block - b.Block })
	for i := range m.samples {
		m.samples[i].Started = begin.Add(time.Duration(i) * each)
	}
	return m.samples
}

// TestBudgetMakesRoom: a claim that is decided, or that nothing would decide in the time that is
// left, makes room for one that waits.
func TestBudgetMakesRoom(t *testing.T) {
	p, a, b, c, host := three(t)
	for name, x := range map[string]struct {
		budget time.Duration
		made   *made
		want   string
	}{
		"at first":        {24 * time.Second, nil, "xyz"},
		"time for two":    {17 * time.Second, nil, "xy"},
		"too little":      {time.Second, nil, "x"},
		"x is decided":    {30 * time.Second, (&made{}).add(a, throughput, around(2e9)...).add(host, throughput, around(1e9)...), "yz"},
		"y has two of 4":  {17 * time.Second, (&made{}).add(b, throughput, 1.3e9, 0.9e9).add(c, throughput, 1e9, 1e9), "yx"},
		"y needs many":    {20 * time.Second, (&made{}).add(b, throughput, 1.3e9, 0.9e9, 1.1e9, 1e9).add(c, throughput, 1e9, 1e9, 1e9, 1e9), "xz"},
		"y has one block": {22 * time.Second, (&made{}).add(b, throughput, 1.3e9, 0.9e9, 1.1e9, 1e9).add(c, throughput, 1e9, 1e9, 1e9, 1e9), "xzy"},
		"y has the rest":  {50 * time.Second, (&made{}).add(b, throughput, 1.3e9, 0.9e9, 1.1e9, 1e9).add(c, throughput, 1e9, 1e9, 1e9, 1e9), "xzy"},
		"resumed":         {18 * time.Second, (&made{}).add(a, throughput, around(2e9)...).add(host, throughput, around(1e9)...).add(b, throughput, 1.3e9, 0.9e9, 1.1e9, 1e9, 1.2e9).add(c, throughput, 1e9, 1e9, 1e9, 1e9, 1e9), "zy"},
		"nothing is left": {7 * time.Second, (&made{}).add(b, throughput, 1.3e9, 0.9e9, 1.1e9, 1e9).add(c, throughput, 1e9, 1e9, 1e9, 1e9), "x"},
	} {
		var samples []result.Sample
		if x.made != nil {
			samples = timed(x.made, time.Second)
		}
		b := p.Budget(x.budget, second(), dataset.Options{})
		if got := ids(b.Next(samples)); got != x.want {
			t.Errorf("%s: %s, want %s", name, got, x.want)
		}
	}
	samples := timed((&made{}).add(a, throughput, around(2e9)...).add(host, throughput, around(1e9)...), time.Second)
	done := p.Budget(15*time.Second, second(), dataset.Options{}).Done(samples)
	for i, want := range []bool{true, false, false, true, true, true} {
		if have, known := done[p.Used[i]]; !known || have != want {
			t.Errorf("%s: done %t, want %t", name(p.Used[i]), have, want)
		}
	}
}

// TestBudgetWithoutEffect: of a profile that did not take effect nothing more is measured.
func TestBudgetWithoutEffect(t *testing.T) {
	p, _, _, _, _ := three(t)
	m := (&made{}).add(p.Used[4], throughput, 1.3e9).add(p.Used[5], throughput, 1e9)
	m.samples[0].Warnings = []string{"profile tuned: rmem_max is 4194304, not 16777216"}
	b := p.Budget(time.Hour, second(), dataset.Options{})
	if got := ids(b.Next(nil)); got != "xyz" {
		t.Errorf("at first %s", got)
	}
	if got := ids(b.Next(timed(m, time.Second))); got != "xy" {
		t.Errorf("without the profile %s", got)
	}
}

// TestBudgetClock: the time that is left is read from the records, without that between two runs,
// and what samples took says what others will.
func TestBudgetClock(t *testing.T) {
	p, a, _, _, host := three(t)
	testbed := second()
	testbed.Profile = 10 * time.Second
	b := p.Budget(time.Hour, testbed, dataset.Options{})
	if next := b.Next(nil); next.Block != 26*time.Second {
		t.Errorf("six cells of two profiles: %s a block", next.Block)
	}
	samples := timed((&made{}).add(a, throughput, 1e9, 1.1e9).add(host, throughput, 1e9, 0.9e9), 3*time.Second)
	if at := b.clock(samples); at.spent != 10*time.Second || at.scale != 2.5 {
		t.Errorf("%+v", at)
	}
	samples[3].Started = samples[3].Started.Add(24 * time.Hour)
	if at := b.clock(samples); at.spent != 6*time.Second+longestGap+time.Second {
		t.Errorf("resumed a day later: %+v", at)
	}
	samples = append(samples, result.Sample{Cell: a, Status: result.StatusUnsupported, Block: 1})
	if at := b.clock(samples); at.spent != 6*time.Second+longestGap+time.Second {
		t.Errorf("what is refused takes no time: %+v", at)
	}
	if at := b.clock(nil); at.spent != 0 || at.scale != 1 {
		t.Errorf("%+v", at)
	}
}

// TestManyLooks: a claim on a boundary is asked about after every block, and is decided falsely in
// fewer than 5 % of runs however many blocks there are.
func TestManyLooks(t *testing.T) {
	labtest.Slow(t)
	const runs, blocks = 1500, 200
	r := rand.New(rand.NewPCG(2, blocks))
	wrong := 0
	for range runs {
		var sum, squares float64
		for n := 1; n <= blocks; n++ {
			v := 0.1 * r.NormFloat64()
			sum, squares = sum+v, squares+v*v
			m := estimate.Moments{N: n, Mean: sum / float64(n)}
			if n < firstBlocks {
				continue
			}
			m.SD = math.Sqrt((squares - sum*m.Mean) / float64(n-1))
			j := decision{confidence: openConfidence, comparisons: []comparison{{bounds: bounds{holdLow: 1, holdHigh: math.Inf(1), failLow: 1, failHigh: math.Inf(1)}, moments: m}}}
			if j.verdict(0) != Undecided {
				wrong++
				break
			}
		}
	}
	share := float64(wrong) / runs
	t.Logf("%.1f %%", 100*share)
	if share > 0.05 {
		t.Errorf("%.1f %% of runs decide falsely, want at most 5 %%", 100*share)
	}
}

// TestManyLooksWithOthers: so it is where claims' spreads are estimated together with those of others.
func TestManyLooksWithOthers(t *testing.T) {
	labtest.Slow(t)
	const runs, contrasts, blocks = 25, 60, 60
	for name, spread := range map[string]func(*rand.Rand) float64{
		"alike":            func(*rand.Rand) float64 { return 0.1 },
		"one in ten wider": func(r *rand.Rand) float64 { return map[bool]float64{true: 0.5, false: 0.1}[r.IntN(10) == 0] },
		"all different":    func(r *rand.Rand) float64 { return 0.1 * math.Exp(0.6*r.NormFloat64()) },
	} {
		r := rand.New(rand.NewPCG(3, blocks))
		wrong := 0
		for range runs {
			var ms [contrasts]estimate.Moments
			var sds, sums, squares [contrasts]float64
			var decided [contrasts]bool
			for i := range sds {
				sds[i] = spread(r)
			}
			for n := 1; n <= blocks; n++ {
				for i := range ms {
					v := sds[i] * r.NormFloat64()
					sums[i], squares[i] = sums[i]+v, squares[i]+v*v
					ms[i] = estimate.Moments{N: n, Mean: sums[i] / float64(n)}
					if n > 1 {
						ms[i].SD = math.Sqrt((squares[i] - sums[i]*ms[i].Mean) / float64(n-1))
					}
				}
				if n < firstBlocks {
					continue
				}
				prior := estimate.PriorOf(ms[:])
				for i, m := range ms {
					j := decision{confidence: openConfidence, comparisons: []comparison{{bounds: bounds{holdLow: 1, holdHigh: math.Inf(1), failLow: 1, failHigh: math.Inf(1)}, moments: m, prior: prior}}}
					decided[i] = decided[i] || j.verdict(0) != Undecided
				}
			}
			for _, is := range decided {
				if is {
					wrong++
				}
			}
		}
		share := float64(wrong) / (runs * contrasts)
		t.Logf("%s: %.1f %%", name, 100*share)
		if share > 0.05 {
			t.Errorf("%s: %.1f %% of claims are decided falsely, want at most 5 %%", name, 100*share)
		}
	}
}
