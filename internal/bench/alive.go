package bench

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/testbed"
)

const (
	// aliveEvery is how often agents are asked for a sign of life while they
	// measure, aliveWait how long the answer may take: together less than the 5 s in
	// which a sample whose end has stopped must fail.
	aliveEvery = time.Second
	aliveWait  = 2 * time.Second
)

// watchAlive ends agents that do not answer while they measure, as a stopped
// process or a dead machine never would: their calls then fail at once, and the
// testbed starts others. stop ends the watch.
func (r *run) watchAlive(ctx context.Context, places ...testbed.Place) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	seen := map[*agent.Client]bool{}
	for _, p := range places {
		if p.Agent == nil || seen[p.Agent] {
			continue
		}
		seen[p.Agent] = true
		watching.Go(func() {
			for alive(ctx, p.Agent) {
				select {
				case <-ctx.Done():
					return
				case <-time.After(aliveEvery):
				}
			}
		})
	}
	return func() {
		cancel()
		watching.Wait()
	}
}

// alive asks one agent; one that does not answer is ended.
func alive(ctx context.Context, a *agent.Client) bool {
	short, cancel := context.WithTimeoutCause(ctx, aliveWait, errors.New("no sign of life"))
	defer cancel()
	err := a.Ask(short, agent.MethodClock, nil)
	if err != nil && ctx.Err() == nil && short.Err() != nil {
		a.Abandon()
	}
	return err == nil
}
