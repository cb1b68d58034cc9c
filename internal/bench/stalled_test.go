package bench

import (
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/fault"
	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/testbed"
)

// quietPlace is a place whose ranks have done nothing for a while.
func quietPlace(t *testing.T, length time.Duration) testbed.Place {
	t.Helper()
	p := fault.NewPeer(t, map[string]any{
		agent.MethodHello: agent.HelloResult{Protocol: agent.Protocol},
		agent.MethodQuiet: agent.QuietResult{For: length},
	}, func(fault.Request, func([]byte) error) {})
	c, err := agent.NewClient(t.Context(), agent.Transport{Stdin: p.Stdin, Stdout: p.Stdout, Kill: p.Kill})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.Kill() // it runs until then
		c.Close()
	})
	return testbed.Place{Agent: c}
}

// A job hangs once no place of it has done anything for long enough; one that works, or that
// cannot say, keeps it going.
func TestStalledJob(t *testing.T) {
	labtest.Slow(t)
	quiet, works := quietPlace(t, stalledFor), quietPlace(t, stalledFor-time.Second)
	gone := quietPlace(t, stalledFor)
	gone.Agent.Abandon()
	for name, k := range map[string]struct {
		places []testbed.Place
		want   bool
	}{
		"all are quiet": {[]testbed.Place{quiet, quiet}, true},
		"one works":     {[]testbed.Place{quiet, works}, false},
		"one is gone":   {[]testbed.Place{quiet, gone}, false},
	} {
		j := &mpiJob{places: k.places}
		if got := j.quiet(t.Context()); got != k.want {
			t.Errorf("%s: quiet: %v", name, got)
		}
	}
	j := &mpiJob{places: []testbed.Place{quiet}}
	stalled, stop := j.watchStalled(t.Context())
	defer stop()
	select {
	case <-stalled:
	case <-time.After(20 * time.Second):
		t.Error("a job that hangs was not noticed")
	}
}
