package bench

import (
	"context"
	"errors"
	"time"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/workload"
)

// explainTime is what the explaining window of one sample takes, with what begins and ends it.
func explainTime(s campaign.Sampling) time.Duration {
	return explainWarmup(s) + s.Explain() + 2*Overhead
}

func explainWarmup(s campaign.Sampling) time.Duration { return min(s.Warmup(), s.Explain()/2) }

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
	p := workload.Params{Cell: s.Cell, Warmup: explainWarmup(r.Sampling), Window: r.Sampling.Explain(), Token: agent.NewToken(), SharedClock: t.ends.SharedClock}
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
