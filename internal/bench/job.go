package bench

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/plain"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed"
	"github.com/cnibench/cnibench/internal/traffic"
	"github.com/cnibench/cnibench/internal/workload"
)

// job is one attempt at a sample of a workload with many ends.
type job struct {
	work     workload.ManyEnds
	params   workload.Params
	ranks    []testbed.Rank
	sessions []agent.ServeResult
	answers  []agent.RankResult
	errs     []error // of ranks
}

// rankError is what one rank ended with, for those who look for the rank that is the
// cause; Waiting is nil where that is the rank itself.
type rankError struct {
	rank    int
	err     error
	waiting *traffic.JobError
}

// job measures a sample whose ends are ranks. No probe is read: what a machine counts is
// that of all ranks on it, and of none alone.
func (r *run) job(ctx context.Context, s *result.Sample, w workload.ManyEnds) error {
	ranks, err := r.ranksOf(ctx, s.Cell)
	if err != nil {
		return err
	}
	j := &job{
		work: w, ranks: ranks, sessions: make([]agent.ServeResult, len(ranks)), answers: make([]agent.RankResult, len(ranks)), errs: make([]error, len(ranks)),
		params: workload.Params{Cell: s.Cell, Warmup: r.Sampling.Warmup(), Window: r.Sampling.Window(), Token: agent.NewToken()},
	}
	if err := r.runJob(ctx, j); err != nil {
		return err
	}
	var outputs []workload.RankOutput
	for i, a := range j.answers {
		if a.Report == nil {
			return fmt.Errorf("rank %d at %s gave no report", i, ranks[i].Name)
		}
		outputs = append(outputs, workload.RankOutput{JobReport: *a.Report, Place: ranks[i].Name, Node: ranks[i].Node, Machine: machine(ranks[i].Place)})
	}
	m, err := w.ParseRanks(j.params, outputs)
	if err != nil {
		return err
	}
	s.MeasuredSeconds, s.Metrics, s.Job, s.Warnings = &m.MeasuredSeconds, m.Metrics, m.Job, m.Warnings
	for _, place := range ranks {
		for _, d := range place.Doubts {
			if !slices.Contains(s.Warnings, d) {
				s.Warnings = append(s.Warnings, d)
			}
		}
	}
	for _, o := range outputs {
		s.Warnings = append(s.Warnings, jobDoubts(s, o.Conditions)...)
	}
	return nil
}

// jobDoubts are warnings about the conditions of one rank, each once in a sample.
func jobDoubts(s *result.Sample, conditions map[string]string) []string {
	one := result.Sample{Cell: s.Cell, Conditions: map[string]map[string]string{result.ClientNode: conditions}}
	one.Cell.CPUs = "" // ParseRanks warns of shared CPUs
	return slices.DeleteFunc(doubtsOf(&one), func(d string) bool { return slices.Contains(s.Warnings, d) })
}

// runJob runs all ranks. Whatever happens, none is left running.
func (r *run) runJob(ctx context.Context, j *job) (err error) {
	bound := j.params.Warmup + j.params.Window + patience
	ctx, cancel := context.WithTimeoutCause(ctx, bound, fmt.Errorf("no end after %v", bound))
	defer cancel()
	places := make([]testbed.Place, len(j.ranks))
	for i, rank := range j.ranks {
		places[i] = rank.Place
	}
	defer r.watchAlive(ctx, places...)()
	defer func() {
		if err != nil {
			j.abandon(ctx)
		}
	}()
	local := map[string]int{} // ranks so far, by machine
	configs := make([]traffic.JobConfig, len(j.ranks))
	for i, rank := range j.ranks {
		id := machine(rank.Place)
		if configs[i], err = j.work.Rank(j.params, i, local[id]); err != nil {
			return err
		}
		local[id]++
	}
	j.all(ctx, func(ctx context.Context, i int) error {
		return j.ranks[i].Agent.Call(ctx, agent.MethodJoin, agent.JoinParams{Job: configs[i]}, &j.sessions[i])
	})
	if err := j.err(); err != nil {
		return err
	}
	addresses := make([]string, len(j.ranks))
	for i, rank := range j.ranks {
		addresses[i] = netip.AddrPortFrom(rank.Address, j.sessions[i].Port).String()
	}
	j.all(ctx, func(ctx context.Context, i int) error {
		err := j.ranks[i].Agent.Call(ctx, agent.MethodRank, agent.RankParams{Session: j.sessions[i].Session, Ranks: addresses}, &j.answers[i])
		plain.Clean(&j.answers[i]) // it may be somebody else's agent
		if failed := j.answers[i].Failed; err == nil && failed != nil {
			err = failed
		}
		return err
	})
	return j.err()
}

// errOthers is why a rank was ended that had nothing wrong.
var errOthers = errors.New("ended, as another rank had failed")

// all calls f for all ranks at the same time. When one fails the others have failureGrace to
// fail too, because their reports identify the rank that is the cause; then they are ended.
func (j *job) all(ctx context.Context, f func(ctx context.Context, i int) error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wait sync.WaitGroup
	var first sync.Once
	var timer *time.Timer
	for i := range j.ranks {
		wait.Go(func() {
			if j.errs[i] = f(ctx, i); j.errs[i] != nil {
				first.Do(func() { timer = time.AfterFunc(failureGrace, func() { cancel(errOthers) }) })
			}
		})
	}
	wait.Wait()
	if timer != nil {
		timer.Stop()
	}
}

// abandon ends what is left of all ranks. An agent that does not answer is replaced when
// the next sample asks for its place.
func (j *job) abandon(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), failureGrace)
	defer cancel()
	var wait sync.WaitGroup
	for i, rank := range j.ranks {
		if session := j.sessions[i].Session; session != "" && rank.Agent.Alive() {
			wait.Go(func() {
				_ = rank.Agent.Call(ctx, agent.MethodAbandon, agent.FinishParams{Session: session}, nil) // see above
			})
		}
	}
	wait.Wait()
}

// err is why the job failed, with the rank that is the cause first; nil where it did not.
func (j *job) err() error {
	var all []rankError
	for i, err := range j.errs {
		if err == nil || errors.Is(err, errOthers) {
			continue
		}
		e := rankError{rank: i, err: err}
		errors.As(err, &e.waiting)
		all = append(all, e)
	}
	if len(all) == 0 {
		for _, err := range j.errs {
			if err != nil {
				return err
			}
		}
		return nil
	}
	return j.blame(all)
}

// blame names the ranks that are the cause: those that failed for a reason of their own
// (an agent that is gone or gives no sign of life), else those whose machines others
// cannot reach, else those that others wait for.
func (j *job) blame(all []rankError) error {
	for _, e := range all {
		if e.waiting == nil {
			return fmt.Errorf("%s: %w", j.name(e.rank), e.err)
		}
	}
	if cut := j.cutOff(all); len(cut) > 0 {
		return fmt.Errorf("%s: cut off, as data to or from there is not acknowledged (%w)", j.names(cut), all[0].err)
	}
	if closed := mostNamed(all, func(e *traffic.JobError) []int { return e.Closed }); len(closed) > 0 {
		return fmt.Errorf("%s: closed the connections to other ranks (%w)", j.names(closed), all[0].err)
	}
	waited := mostNamed(all, func(e *traffic.JobError) []int { return e.WaitsFor })
	return fmt.Errorf("%s: other ranks wait for it (%w)", j.names(waited), all[0].err)
}

// cutOff are the ranks on the node that most of the broken paths lead to. A path has two
// ends, either of which may be the one that is cut, and all ranks of a node share its
// link. Where nodes have the same number of broken paths, all of them are named.
func (j *job) cutOff(all []rankError) []int {
	type path struct{ a, b int }
	broken := map[path]bool{}
	for _, e := range all {
		for _, other := range e.waiting.Unacknowledged {
			if other >= 0 && other < len(j.ranks) {
				broken[path{min(e.rank, other), max(e.rank, other)}] = true
			}
		}
	}
	count, most := map[string]int{}, 0
	for p := range broken {
		for _, end := range []int{p.a, p.b} {
			node := j.ranks[end].Node
			count[node]++
			most = max(most, count[node])
		}
	}
	var out []int
	for p := range broken {
		for _, end := range []int{p.a, p.b} {
			if count[j.ranks[end].Node] == most && !slices.Contains(out, end) {
				out = append(out, end)
			}
		}
	}
	slices.Sort(out)
	return out
}

// mostNamed are the ranks that other ranks name most often.
func mostNamed(all []rankError, named func(*traffic.JobError) []int) []int {
	count, most := map[int]int{}, 0
	for _, e := range all {
		for _, other := range named(e.waiting) {
			count[other]++
			most = max(most, count[other])
		}
	}
	var out []int
	for rank, n := range count {
		if n == most {
			out = append(out, rank)
		}
	}
	slices.Sort(out)
	return out
}

// name is a rank in words: "rank 3 at bridge node2 pod2".
func (j *job) name(rank int) string {
	if rank < 0 || rank >= len(j.ranks) {
		return fmt.Sprintf("rank %d", rank)
	}
	return fmt.Sprintf("rank %d at %s", rank, j.ranks[rank].Name)
}

func (j *job) names(ranks []int) string {
	var all []string
	for _, rank := range ranks {
		all = append(all, j.name(rank))
	}
	return strings.Join(all, ", ")
}
