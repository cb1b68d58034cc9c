package bench

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/workload"
)

// explainShare is the part of a time budget that explaining windows after those of the first
// block may take, with these.
const explainShare = 1. / 3

// explainTime is what the explaining window of one sample takes, with what begins and ends it.
func explainTime(s campaign.Sampling) time.Duration {
	return explainWarmup(s) + s.Explain() + 2*Overhead
}

func explainWarmup(s campaign.Sampling) time.Duration { return min(s.Warmup(), s.Explain()/2) }

// explains reports whether the samples of a block have explaining windows.
func (r *run) explains(block int) bool {
	every := max(1, r.Sampling.ExplainEvery)
	return r.Sampling.Explain() > 0 && !r.noProbes() && (block-1)%every == 0 && (block-1)/every < r.mostExplained
}

// boundExplaining keeps explaining windows within their share of the time budget: they tell
// where a cost arises, and the other blocks tell what it is. The first block always has them.
func (r *run) boundExplaining() {
	r.mostExplained = math.MaxInt
	cells := 0
	for _, c := range r.Plan.Cells {
		if !r.unsupported[c] && r.of.has(c) && SlicedTime(r.Sampling, c) > 0 {
			cells++
		}
	}
	if r.Sampling.MaxSeconds <= 0 || r.Sampling.Explain() <= 0 || cells == 0 {
		return
	}
	one := float64(cells) * explainTime(r.Sampling).Seconds()
	r.mostExplained = max(1, int(explainShare*r.Sampling.MaxSeconds/float64(r.of.number())/one))
}

// explainBatch reads the probes in a window of each sample's traffic apart from its
// slices. A window that fails leaves the sample without probes, and says so.
func (r *run) explainBatch(ctx context.Context, tries []*slicedTry) {
	for _, t := range tries {
		if t.err != nil || ctx.Err() != nil {
			continue
		}
		if err := r.explain(ctx, t); err != nil {
			t.sample.Warnings = append(t.sample.Warnings, "no probe was read: "+oneLine(err))
		}
	}
}

func (r *run) explain(ctx context.Context, t *slicedTry) error {
	s := &t.sample
	r.idle(ctx, s.Block, t.ends)
	p := workload.Params{Cell: s.Cell, Warmup: explainWarmup(r.Sampling), Window: r.Sampling.Explain(), Token: newToken(), SharedClock: t.ends.SharedClock}
	readAgain := r.watchNodes(ctx, s, t.ends)
	server, client, err := r.traffic(ctx, p, t.try)
	if rawErr := r.saveRaw(s, server, client); rawErr != nil {
		err = errors.Join(err, rawErr)
	}
	if err != nil {
		return err
	}
	m, err := t.work.Parse(p, server, client)
	if err != nil {
		return err
	}
	s.Explaining = &result.Explaining{MeasuredSeconds: m.MeasuredSeconds, Metrics: m.Metrics}
	r.probes(s, t.ends, client, server)
	readAgain()
	return nil
}
