package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/cnibench/cnibench/internal/agent"
)

// stalledFor is how long no rank of a job of MPI may compute or send. The agents look once a
// second and are asked once a second, and a launcher has two seconds to end: together less
// than the 15 s in which a sample of MPI must fail.
const stalledFor = 10 * time.Second

// errStalled is why a job was ended that hangs.
var errStalled = fmt.Errorf("no rank computed or sent for %v", stalledFor)

// watchStalled closes a channel once no place of the job has done anything for stalledFor;
// stop ends the watch.
func (j *mpiJob) watchStalled(ctx context.Context) (stalled <-chan struct{}, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	found, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(aliveEvery):
			}
			if j.quiet(ctx) {
				close(found)
				return
			}
		}
	}()
	return found, func() {
		cancel()
		<-over
	}
}

// quiet reports whether all places have been quiet for stalledFor. One place that works is
// enough for a job to go on: the others may wait for its ranks. An agent that does not
// answer is the concern of watchAlive.
func (j *mpiJob) quiet(ctx context.Context) bool {
	for _, p := range j.places {
		var q agent.QuietResult
		if err := p.Agent.Ask(ctx, agent.MethodQuiet, &q); err != nil || q.For < stalledFor {
			return false
		}
	}
	return true
}
