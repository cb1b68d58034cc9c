package rank

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/stat/estimate"
	"github.com/cnibench/cnibench/internal/stat/stattest"
)

// simulated is a campaign whose truth is known: what each network really does,
// against the bare network, in bandwidth, latency and CPU cost.
type simulated struct {
	truth    map[string][3]float64
	settings int // message sizes
	blocks   int
	spread   float64 // of a sample's log
	shared   float64 // spread of what a network's samples of one block have in common
	lost     float64 // share of samples that fail
}

func (s simulated) samples(r *rand.Rand, draw func(*rand.Rand) float64) []result.Sample {
	var out []result.Sample
	networks := append([]string{result.HostNetwork}, stattest.SortedKeys(s.truth)...)
	for b := 1; b <= s.blocks; b++ {
		day := 0.1 * r.NormFloat64()
		for _, n := range networks {
			truth, own := [3]float64{1, 1, 1}, s.shared*r.NormFloat64()
			if n != result.HostNetwork {
				truth = s.truth[n]
			}
			value := func(goal int) float64 { return truth[goal] * math.Exp(day+own+s.spread*draw(r)) }
			for i := range s.settings {
				stream, rr := stattest.CellOf(n), stattest.RROf(n)
				stream.MessageBytes, rr.MessageBytes = 1000*(i+1), 64*(i+1)
				one := stattest.OKSample(stream, b, stattest.Metrics{stattest.Throughput: 1e10 * value(0), "instructions_per_byte": 1 / value(2)})
				one.Probes = map[string]map[string]float64{result.ClientNode: {"window_seconds": 1}}
				two := stattest.OKSample(rr, b, stattest.Metrics{"latency_mean_seconds": 3e-5 / value(1)})
				for _, x := range []result.Sample{one, two} {
					if r.Float64() < s.lost {
						x = stattest.FailedSample(x.Cell, b, "lost")
					}
					out = append(out, x)
				}
			}
		}
	}
	return out
}

// best is the true answer; "" where two are equally good.
func (s simulated) best(g Goal) (name string, worth map[string]float64) {
	worth = map[string]float64{}
	for n, t := range s.truth {
		at := slices.Index(measuredGoals(), g)
		if at >= 0 {
			worth[n] = t[at]
			continue
		}
		worst := 0.0
		for goal := range 3 {
			most := 0.0
			for _, u := range s.truth {
				most = math.Max(most, u[goal])
			}
			worst = math.Max(worst, 1-t[goal]/most)
		}
		worth[n] = -worst
	}
	names := stattest.SortedKeys(worth)
	slices.SortFunc(names, func(a, b string) int {
		return stattest.Count(worth[a] < worth[b]) - stattest.Count(worth[a] > worth[b])
	})
	if worth[names[0]] == worth[names[1]] {
		return "", worth
	}
	return names[0], worth
}

// tried is what many simulated campaigns came to.
type tried struct{ sure, wrong, beyond, missing int }

// try asks many campaigns. Wrong is sure of what is not the best, or sure where
// none is; beyond is a loss larger than said; missing is a best network that was
// said to be worse.
func (s simulated) try(t *testing.T, g Goal, reps int, seed uint64, noise stattest.Noise) tried {
	t.Helper()
	best, worth := s.best(g)
	most := math.Inf(-1)
	for _, w := range worth {
		most = math.Max(most, w)
	}
	var out tried
	r := rand.New(rand.NewPCG(seed, 9))
	for range reps {
		rec, err := Recommend(s.samples(r, noise.Draw), dataset.Options{}, Question{Goal: g})
		if err != nil {
			t.Fatal(err)
		}
		out.sure += stattest.Count(rec.Sure)
		out.wrong += stattest.Count(rec.Sure && rec.Take.Network != best)
		loss := 1 - worth[rec.Take.Network]/most
		if g == Balanced {
			loss = most - worth[rec.Take.Network]
		}
		out.beyond += stattest.Count(rec.LossAtMost != nil && loss > *rec.LossAtMost+1e-12)
		out.missing += stattest.Count(slices.ContainsFunc(rec.Others, func(o Alternative) bool { return o.Significant && worth[o.Network] == most }))
	}
	return out
}

// TestRecommendIsRightWhenItIsSure is the promise of a recommendation, for each
// goal, each kind of noise, and truths from clear to equal: it is sure of what is
// not the best, calls the best worse, or says too small a loss, in at most 5 %
// of campaigns each. Where the truth is clear it is sure, where it is not it says
// so.
func TestRecommendIsRightWhenItIsSure(t *testing.T) {
	reps := stattest.Repetitions(300)
	clearly := map[string][3]float64{"a": {0.95, 0.9, 0.9}, "b": {0.85, 0.8, 0.8}, "c": {0.7, 0.6, 0.6}}
	narrow := map[string][3]float64{"a": {0.95, 0.9, 0.9}, "b": {0.94, 0.89, 0.89}, "c": {0.7, 0.6, 0.6}}
	equal := map[string][3]float64{"a": {0.9, 0.9, 0.9}, "b": {0.9, 0.9, 0.9}, "c": {0.9, 0.9, 0.9}, "d": {0.9, 0.9, 0.9}}
	trade := map[string][3]float64{"a": {1, 1, 0.9}, "b": {0.9, 1, 1}, "c": {0.8, 0.8, 0.8}}
	for _, c := range []struct {
		name         string
		s            simulated
		least, most  float64 // share of sure answers
		onlyBalanced bool
	}{
		{"clear", simulated{truth: clearly, settings: 1, blocks: 8, spread: 0.01}, 0.95, 1, false},
		{"clear, three settings", simulated{truth: clearly, settings: 3, blocks: 8, spread: 0.01, shared: 0.01}, 0.95, 1, false},
		{"clear, a tenth fails", simulated{truth: clearly, settings: 2, blocks: 12, spread: 0.01, lost: 0.1}, 0.95, 1, false},
		{"1 % apart", simulated{truth: narrow, settings: 1, blocks: 8, spread: 0.01}, 0, 0.9, false},
		{"equal", simulated{truth: equal, settings: 1, blocks: 8, spread: 0.02}, 0, 0.05, false},
		{"equal, what goes wrong goes wrong for a block", simulated{truth: equal, settings: 4, blocks: 6, spread: 0.005, shared: 0.03}, 0, 0.05, false},
		{"equal, a tenth fails", simulated{truth: equal, settings: 3, blocks: 12, spread: 0.02, lost: 0.1}, 0, 0.05, false},
		{"equal worst losses", simulated{truth: trade, settings: 1, blocks: 8, spread: 0.01}, 0, 0.05, true},
	} {
		for i, g := range append(measuredGoals(), Balanced) {
			if c.onlyBalanced && g != Balanced {
				continue
			}
			noise := stattest.Noises()[i%len(stattest.Noises())]
			got := c.s.try(t, g, reps, 5, noise)
			rate := func(n int) float64 { return float64(n) / float64(reps) }
			t.Logf("%s, %s, %s: sure in %.1f %%, wrongly in %.1f %%, the best called worse in %.1f %%, loss above what was said in %.1f %%",
				c.name, g, noise.Name, 100*rate(got.sure), 100*rate(got.wrong), 100*rate(got.missing), 100*rate(got.beyond))
			for what, n := range map[string]int{"sure and wrong": got.wrong, "the best called worse": got.missing, "loss above what was said": got.beyond} {
				if rate(n) > 0.05+stattest.Margin(0.05, reps) {
					t.Errorf("%s, %s: %s in %.1f %%", c.name, g, what, 100*rate(n))
				}
			}
			if rate(got.sure) < c.least-stattest.Margin(0.05, reps) || rate(got.sure) > c.most+stattest.Margin(0.05, reps) {
				t.Errorf("%s, %s: sure in %.1f %%, want %.0f to %.0f %%", c.name, g, 100*rate(got.sure), 100*c.least, 100*c.most)
			}
		}
	}
}

// TestSettlingMeasurementSettles: the reported number of blocks makes a
// campaign sure in about 4 of 5 cases.
func TestSettlingMeasurementSettles(t *testing.T) {
	reps := stattest.Repetitions(400)
	truth := map[string][3]float64{"a": {0.9, 0.9, 0.9}, "b": {0.89, 0.89, 0.89}}
	// The pilot is long, so that it knows difference and spread, and noisy
	// enough not to be sure.
	pilot := simulated{truth: truth, settings: 1, blocks: 200, spread: 0.06}
	r := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		rec, err := Recommend(pilot.samples(r, stattest.Noises()[0].Draw), dataset.Options{}, Question{Goal: Bandwidth})
		if err != nil {
			t.Fatal(err)
		}
		if rec.Sure || rec.Goals[0].Pairs[0].Ratio.Value < 1.009 || rec.Goals[0].Pairs[0].Ratio.Value > 1.0135 {
			continue // not what the truth is: no measure of the promise
		}
		x := rec.Goals[0].Pairs[0].difference
		want := math.Pow((1.96+0.8416)*x.se*math.Sqrt(x.blocks)/x.mean, 2)
		if got := float64(rec.Settle.Blocks); math.Abs(got/want-1) > 0.02 {
			t.Errorf("%g blocks, the normal distribution asks for %.0f", got, want)
		}
		// As many blocks, of a truth that is what the pilot saw.
		seen := simulated{truth: map[string][3]float64{"a": {0.9, 1, 1}, "b": {0.9 * math.Exp(-x.mean), 1, 1}}, settings: 1, blocks: rec.Settle.Blocks, spread: x.se * math.Sqrt(x.blocks) / math.Sqrt2}
		got := seen.try(t, Bandwidth, reps/4, 6, stattest.Noises()[0])
		share := float64(got.sure) / float64(reps/4)
		t.Logf("%d blocks: sure in %.0f %%", rec.Settle.Blocks, 100*share)
		if math.Abs(share-estimate.Power) > stattest.Margin(estimate.Power, reps/4)+0.02 {
			t.Errorf("sure in %.0f %% of campaigns of %d blocks", 100*share, rec.Settle.Blocks)
		}
		return
	}
	t.Error("no pilot was unsure of what is so")
}

// TestGoalAcrossProfiles: a network with another profile is another option, and
// all are compared with the bare network as it is.
func TestGoalAcrossProfiles(t *testing.T) {
	var samples []result.Sample
	r := rand.New(rand.NewPCG(3, 3))
	for b := 1; b <= 8; b++ {
		for _, n := range []string{"host", "bridge"} {
			for p, gain := range map[string]float64{result.DefaultProfile: 1, "network-throughput": 1.2} {
				c := stattest.CellOf(n)
				c.Profile = p
				v := 1e10 * gain * math.Exp(0.002*r.NormFloat64())
				if n == "bridge" {
					v *= 0.9
				}
				samples = append(samples, stattest.OKSample(c, b, stattest.Metrics{stattest.Throughput: v}))
			}
		}
	}
	rec, err := Recommend(samples, dataset.Options{}, Question{Goal: Bandwidth})
	if err != nil {
		t.Fatal(err)
	}
	if want := (Option{Network: "bridge", Profile: "network-throughput"}); rec.Take != want || !rec.Sure {
		t.Errorf("took %s, sure %v", rec.Take, rec.Sure)
	}
	stattest.Near(t, "efficiency", rec.Goals[0].Ranked[0].Efficiency.Value, 1.08, 0.005)
	stattest.Near(t, "behind", rec.Others[0].Behind.Value, 1/1.2, 0.005)
	if rec.Settle != nil || *rec.LossAtMost != 0 {
		t.Errorf("sure, and settle %+v, loss %v", rec.Settle, *rec.LossAtMost)
	}
}

func TestRecommendSaysWhatIsMissing(t *testing.T) {
	full := simulated{truth: map[string][3]float64{"a": {1, 1, 1}, "b": {0.9, 0.9, 0.9}}, settings: 1, blocks: 4, spread: 0.01}.samples(rand.New(rand.NewPCG(1, 1)), stattest.Noises()[0].Draw)
	streamsOnly := slices.DeleteFunc(slices.Clone(full), func(s result.Sample) bool { return s.Cell.Workload != "tcp_stream" })
	alone := slices.DeleteFunc(slices.Clone(full), func(s result.Sample) bool { return s.Cell.Network == "b" })
	second := stattest.OKSample(stattest.CellOf(result.SecondName("a")), 1, stattest.Metrics{stattest.Throughput: 1})
	ten, policed := 10, slices.Clone(full)
	for i := range policed {
		if !policed[i].Cell.IsBaseline() {
			policed[i].Cell.Policies = 100
		}
	}
	hundred := 100
	if rec, err := Recommend(policed, dataset.Options{}, Question{Goal: Bandwidth, Policies: &hundred}); err != nil || rec.Take.Network != "a" {
		t.Errorf("100 policies: %s, %v", rec.Take, err)
	}
	broken := stattest.FailedSample(stattest.CellOf("b"), 1, "connection refused")
	for _, c := range []struct {
		name    string
		samples []result.Sample
		q       Question
		want    string
	}{
		{"empty", nil, Question{Goal: Bandwidth}, "no records"},
		{"host", stattest.Streams(stattest.CellOf("host"), 1, 2), Question{Goal: Bandwidth}, "only the baseline"},
		{"latency", streamsOnly, Question{Goal: Latency}, "no round trips were measured: add tcp_rr"},
		{"balanced", streamsOnly, Question{Goal: Balanced}, "balanced takes bandwidth, latency and CPU cost, and no round trips"},
		{"size", full, Question{Goal: Bandwidth, MessageBytes: 77}, "messages of 77 B: this campaign has 64, 1000 B"},
		{"protocol", full, Question{Goal: Bandwidth, Protocol: "udp"}, "with udp: this campaign has tcp"},
		{"all failed", []result.Sample{broken}, Question{Goal: CPU}, "nothing was measured of any network: all 1 samples failed: connection refused"},
		{"one", alone, Question{Goal: Bandwidth}, "there is only a: nothing to choose from"},
		{"left out", append(slices.Clone(stattest.Streams(stattest.CellOf("a"), 1, 2)), broken), Question{Goal: Bandwidth}, "b: tcp_stream 1472 B: all 1 samples failed: connection refused"},
		{"policies", full, Question{Goal: Bandwidth, Policies: &ten}, "this campaign has no such factor: no cell has a number of policies"},
		{"another number of policies", policed, Question{Goal: Bandwidth, Policies: &ten}, "no network was measured with 10 policies"},
		{"null test", append(slices.Clone(full), second), Question{Goal: Bandwidth}, "null test"},
		{"goal", full, Question{Goal: "speed"}, `goal "speed": want one of`},
	} {
		if _, err := Recommend(c.samples, dataset.Options{}, c.q); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	one, err := Recommend(slices.DeleteFunc(slices.Clone(full), func(s result.Sample) bool { return s.Block > 1 }), dataset.Options{}, Question{Goal: Bandwidth})
	if err != nil || one.Sure || one.Settle.Blocks != 0 || one.LossAtMost != nil {
		t.Errorf("one block: %+v, %v", one, err)
	}
}
