package rank

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/stat/estimate"
	"github.com/cnibench/cnibench/internal/stat/job"
)

// Question is what a network is wanted for, and for which traffic. The zero
// value of a field asks for all that the campaign has.
type Question struct {
	Goal         Goal   `json:"goal"`
	MessageBytes int    `json:"message_bytes,omitempty"`
	Protocol     string `json:"protocol,omitempty"` // "tcp", "udp"
	// Services and Policies are how many of each are programmed; nil asks for all.
	Services *int `json:"services,omitempty"`
	Policies *int `json:"policies,omitempty"`
	// Job is the job that the goal HPC is about.
	Job *job.Profile `json:"-"`
}

// Recommendation is what to take, and how sure that is. docs/recommend.md has
// the rules.
type Recommendation struct {
	Question   Question `json:"question"`
	Confidence float64  `json:"confidence"`
	// Goals are the rankings that the answer is drawn from: one, or three.
	Goals []GoalRanking `json:"goals"`
	// Take has the best mean; of several goals, the least loss where it is worst.
	Take Option `json:"take"`
	// Sure reports that all others were shown to be worse.
	Sure bool `json:"sure"`
	// Others, the best first.
	Others []Alternative `json:"others"`
	// LossAtMost is what taking Take loses against the best at most, as a share
	// of the best; in a balanced question, more than the least possible worst
	// loss. Nil where it is not bounded.
	LossAtMost *float64 `json:"loss_at_most,omitempty"`
	// WorstLoss is Take's loss in the goal where it loses most; of a balanced
	// question alone.
	WorstLoss *Regret `json:"worst_loss,omitempty"`
	// Settle is the measurement that would make it sure; nil where it is.
	Settle *Settle `json:"settle,omitempty"`
	// Job is what the job takes on each network, for the goal HPC.
	Job *JobAnswer `json:"job,omitempty"`
}

// Alternative is an option that was not taken.
type Alternative struct {
	Option
	// Significant reports that it was shown to be worse; otherwise it is a runner-up.
	Significant bool `json:"significant"`
	// Behind compares the alternative with Take: less than 1 is worse, with the interval that
	// is right for all pairs together; nil in a balanced question.
	Behind *estimate.Estimate `json:"behind,omitempty"`
	// WorstLoss is of a balanced question.
	WorstLoss *Regret `json:"worst_loss,omitempty"`
	// Why says why it was not compared; "" where it was.
	Why string `json:"why,omitempty"`
}

// Regret is what an option loses against the best of a goal, as a share of it,
// in the goal where it loses most.
type Regret struct {
	Goal  Goal    `json:"goal"`
	Share float64 `json:"share"`
	// Low and High bound the largest loss, whichever goal it is in; nil where
	// some pair has no interval.
	Low  *float64 `json:"low,omitempty"`
	High *float64 `json:"high,omitempty"`
}

// Settle is the measurement that would separate the runners-up.
type Settle struct {
	// Options are those to be measured again; Blocks is how many blocks that
	// takes, in 4 of 5 campaigns; 0: more than MostBlocks, or it
	// cannot be said from what there is.
	Options []Option `json:"options"`
	Blocks  int      `json:"blocks,omitempty"`
	Why     string   `json:"why,omitempty"`
}

// MostBlocks is more than anybody will measure.
const MostBlocks = 10_000

// Recommend answers a question from the samples of a campaign. The probability
// that it is Sure of an option that is not the best is at most 1 − Confidence.
// It is an error when the campaign cannot answer the question at all.
func Recommend(samples []result.Sample, opt dataset.Options, q Question) (Recommendation, error) {
	c := dataset.Collect(samples, opt)
	out := Recommendation{Question: q, Confidence: c.Options.Confidence}
	if !slices.Contains(Goals(), q.Goal) {
		return out, fmt.Errorf("goal %q: want one of %v", q.Goal, Goals())
	}
	if err := q.check(c.Cells); err != nil {
		return out, err
	}
	if q.Goal == HPC {
		err := out.forJob(c)
		return out, err
	}
	for _, g := range measuredGoals() {
		if g != q.Goal && q.Goal != Balanced {
			continue
		}
		r := goal(c, g, onOnePath(c, g, q.wants), nil)
		if len(r.Settings) == 0 {
			return out, q.noAnswer(g)
		}
		out.Goals = append(out.Goals, r)
	}
	if q.Goal == Balanced {
		out.Goals = sameOptions(out.Goals, func(wanted []Option, g GoalRanking) GoalRanking {
			onPath := onOnePath(c, g.Goal, q.wants)
			return goal(c, g.Goal, func(cell result.Cell) bool { return onPath(cell) && slices.Contains(wanted, optionOf(cell)) }, nil)
		})
	}
	for _, g := range out.Goals {
		if len(g.Ranked) < 2 {
			return out, tooFew(g)
		}
	}
	if q.Goal == Balanced {
		out.balance()
	} else {
		out.single()
	}
	return out, nil
}

// forJob answers the question of which network suits a job.
func (r *Recommendation) forJob(c *dataset.Dataset) error {
	if r.Question.Job == nil {
		return errors.New("the goal hpc requires the profile of a job")
	}
	g, answer, err := rankJob(c, *r.Question.Job)
	if err != nil {
		return err
	}
	if len(g.Ranked) < 2 {
		return tooFew(g)
	}
	r.Goals, r.Job = []GoalRanking{g}, answer
	r.single()
	return nil
}

// wants reports whether a cell is one that the question is about.
func (q Question) wants(c result.Cell) bool {
	return (q.MessageBytes == 0 || c.MessageBytes == q.MessageBytes) && (q.Protocol == "" || dataset.Transport(c) == q.Protocol) &&
		(q.Services == nil || c.Services == *q.Services) && (q.Policies == nil || c.Policies == *q.Policies)
}

// check refuses a question that no cell of the campaign is about, and says what
// there is.
func (q Question) check(cells []*dataset.CellData) error {
	for _, f := range []struct {
		name string
		want *int
		of   func(result.Cell) int
	}{
		{"services", q.Services, func(c result.Cell) int { return c.Services }},
		{"policies", q.Policies, func(c result.Cell) int { return c.Policies }},
	} {
		if f.want != nil && !slices.ContainsFunc(cells, func(d *dataset.CellData) bool { return f.of(d.Cell) > 0 }) {
			return fmt.Errorf("this campaign has no such factor: no cell has a number of %s", f.name)
		}
	}
	var sizes, protocols []string
	any, why := false, ""
	for _, d := range cells {
		if result.OneName(d.Cell.Network) != d.Cell.Network {
			return errors.New("this is a null test: it compares networks with themselves, not with each other; run the campaign without --null-test")
		}
		if d.Cell.IsBaseline() {
			continue
		}
		any = any || q.wants(d.Cell) && len(d.OK) > 0
		if q.wants(d.Cell) && why == "" {
			why = dataset.NotMeasured(d)
		}
		if s := fmt.Sprint(d.Cell.MessageBytes); d.Cell.MessageBytes > 0 && !slices.Contains(sizes, s) {
			sizes = append(sizes, s)
		}
		if s := dataset.Transport(d.Cell); s != "" && !slices.Contains(protocols, s) {
			protocols = append(protocols, s)
		}
	}
	if any {
		return nil
	}
	switch {
	case why != "":
		return fmt.Errorf("nothing was measured of any network: %s", why)
	case len(cells) == 0:
		return errors.New("there are no records: nothing was measured; start or resume the campaign with cnibench run")
	case q.MessageBytes > 0 && !slices.Contains(sizes, fmt.Sprint(q.MessageBytes)):
		return fmt.Errorf("no network was measured with messages of %d B: this campaign has %s B", q.MessageBytes, orNone(sizes))
	case q.Protocol != "" && !slices.Contains(protocols, q.Protocol):
		return fmt.Errorf("no network was measured with %s: this campaign has %s", q.Protocol, orNone(protocols))
	case q.MessageBytes > 0 || q.Protocol != "":
		return fmt.Errorf("no network was measured with all that is asked for (%s): ask for less", q.words())
	case q.Services != nil || q.Policies != nil:
		return fmt.Errorf("no network was measured with %s", q.words())
	}
	return errors.New("only the baseline (host) was measured: add networks to the campaign")
}

// words describes what the question asks for in addition to its goal.
func (q Question) words() string {
	var parts []string
	if q.MessageBytes > 0 {
		parts = append(parts, fmt.Sprintf("messages of %d B", q.MessageBytes))
	}
	if q.Protocol != "" {
		parts = append(parts, q.Protocol)
	}
	if q.Services != nil {
		parts = append(parts, fmt.Sprintf("%d services", *q.Services))
	}
	if q.Policies != nil {
		parts = append(parts, fmt.Sprintf("%d policies", *q.Policies))
	}
	return strings.Join(parts, ", ")
}

func orNone(words []string) string {
	if len(words) == 0 {
		return "nothing"
	}
	return strings.Join(words, ", ")
}

// noAnswer is the error for a goal that the campaign did not measure, with the cure.
func (q Question) noAnswer(g Goal) error {
	cure := map[Goal]string{
		Bandwidth: "no throughput was measured: add tcp_stream or udp_stream to the campaign's workloads",
		Latency:   "no round trips were measured: add tcp_rr or udp_rr to the campaign's workloads",
		CPU:       "no CPU cost was measured: cnibench doctor says which probes work here",
	}[g]
	if q.Goal == Balanced {
		return fmt.Errorf("balanced takes bandwidth, latency and CPU cost, and %s", cure)
	}
	if q.words() != "" {
		return fmt.Errorf("for this traffic %s, or ask for less", cure)
	}
	return errors.New(cure)
}

func tooFew(g GoalRanking) error {
	why := ""
	for _, l := range g.LeftOut {
		why += fmt.Sprintf("\n  %s: %s", l.Option, l.Why)
	}
	if len(g.Ranked) == 1 {
		return fmt.Errorf("for %s there is only %s: nothing to choose from%s", g.Goal, g.Ranked[0].Option, why)
	}
	return fmt.Errorf("for %s no network was measured in every setting%s", g.Goal, why)
}

// sameOptions ranks again where the goals do not have the same options: one that
// was left out of one goal is left out of all.
func sameOptions(goals []GoalRanking, again func([]Option, GoalRanking) GoalRanking) []GoalRanking {
	count := map[Option]int{}
	for _, g := range goals {
		for _, r := range g.Ranked {
			count[r.Option]++
		}
	}
	var wanted []Option
	for o, n := range count {
		if n == len(goals) {
			wanted = append(wanted, o)
		}
	}
	out := slices.Clone(goals)
	for i, g := range goals {
		if len(g.Ranked) != len(wanted) {
			out[i] = again(wanted, g)
			out[i].LeftOut = g.LeftOut
		}
	}
	return out
}

// single takes the first of the only goal.
func (r *Recommendation) single() {
	g := r.Goals[0]
	r.Take, r.Sure = g.Ranked[0].Option, true
	worst, bounded := 0.0, true
	var open []GoalPair
	for _, other := range g.Ranked[1:] {
		p, sign := g.pair(r.Take, other.Option)
		v := Alternative{Option: other.Option, Significant: p.Significant && sign > 0, Behind: p.behind(sign, r.Confidence), Why: p.Why}
		r.Others = append(r.Others, v)
		if v.Behind.High == nil {
			bounded = false
		} else if !v.Significant {
			worst = math.Max(worst, 1-1/(*v.Behind.High))
		}
		if !v.Significant {
			r.Sure = false
			open = append(open, p)
		}
	}
	if bounded {
		r.LossAtMost = &worst
	}
	slices.SortStableFunc(r.Others, func(a, b Alternative) int {
		return cmp.Or(cmp.Compare(count(a.Significant), count(b.Significant)), cmp.Compare(b.Behind.Value, a.Behind.Value))
	})
	if !r.Sure {
		r.Settle = g.settle(r.Take, open, r.Confidence)
	}
}

// pair finds the comparison of two options; sign is +1 where a is the better.
func (g GoalRanking) pair(a, b Option) (p GoalPair, sign float64) {
	for _, p := range g.Pairs {
		switch {
		case p.Better == a && p.Worse == b:
			return p, 1
		case p.Better == b && p.Worse == a:
			return p, -1
		}
	}
	return GoalPair{Why: "not compared"}, 1
}

// behind is the pair's other option against the one that sign is of, with the
// interval that is right for all pairs together.
func (p GoalPair) behind(sign, confidence float64) *estimate.Estimate {
	e := estimate.Estimate{Value: math.Pow(p.Ratio.Value, -sign), N: p.Ratio.N, Needed: p.Ratio.Needed, Method: p.Ratio.Method}
	if p.Low == nil {
		return &e
	}
	low, high := math.Pow(*p.Low, -sign), math.Pow(*p.High, -sign)
	e.Bound(math.Min(low, high), math.Max(low, high), confidence)
	return &e
}

// settle says how many blocks of the open pairs' options would separate them,
// if difference and spread are what they seem: n = ((t(1−α/2m) + t(power)) s/d)².
func (g GoalRanking) settle(take Option, open []GoalPair, confidence float64) *Settle {
	out := &Settle{Options: []Option{take}}
	options := len(open) + 1
	m := float64(options * (options - 1) / 2)
	most := 0.0
	for _, p := range open {
		other := p.Worse
		if other == take {
			other = p.Better
		}
		out.Options = append(out.Options, other)
		x := p.difference
		switch {
		case p.Why != "" && x.known():
			out.Why = p.Why // link-bound
		case !x.known():
			out.Why = "a spread takes 2 blocks of each"
		default:
			most = math.Max(most, x.blocksToDistinguish(1-(1-confidence)/m))
		}
	}
	switch {
	case out.Why != "":
	case most > MostBlocks:
		out.Why = fmt.Sprintf("with this noise no campaign of up to %d blocks; a quieter machine needs fewer", MostBlocks)
	default:
		out.Blocks = int(most)
	}
	return out
}

// blocksToDistinguish is the number of blocks at which the mean would differ significantly from 0.
func (x across) blocksToDistinguish(confidence float64) float64 {
	s := x.se * math.Sqrt(x.blocks)
	n := math.Max(x.blocks, 2)
	for range 50 { // settles in a few steps
		t := estimate.TQuantile(n-1, 1-(1-confidence)/2) + estimate.TQuantile(n-1, estimate.Power)
		next := math.Max(2, math.Ceil(math.Pow(t*s/math.Abs(x.mean), 2)))
		if next == n || !(next < 1e9) {
			return next
		}
		n = next
	}
	return n
}
