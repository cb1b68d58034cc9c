package bench

import (
	"bufio"
	"context"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed"
)

// stoppable is an agent that can be stopped as by SIGSTOP: it then answers nothing,
// and only killing it ends its output.
type stoppable struct {
	client  *agent.Client
	stopped atomic.Bool
	killed  chan struct{}
	// since and ended are when it was stopped, and killed.
	since, ended atomic.Int64
}

func newStoppable(t *testing.T) *stoppable {
	t.Helper()
	s := &stoppable{killed: make(chan struct{})}
	toR, toW := io.Pipe()
	answersR, answersW := io.Pipe()
	outR, outW := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() {
		defer close(over)
		agent.Serve(ctx, toR, answersW)
		answersW.Close()
	}()
	go func() { // what it answers, until it is stopped
		in := bufio.NewReader(answersR)
		for {
			line, err := in.ReadBytes('\n')
			if err != nil {
				outW.Close()
				return
			}
			if !s.stopped.Load() {
				_, _ = outW.Write(line)
			}
		}
	}()
	var once sync.Once
	kill := func() error {
		once.Do(func() { s.ended.Store(time.Now().UnixNano()); close(s.killed); cancel(); outW.Close() })
		return nil
	}
	c, err := agent.NewClient(t.Context(), agent.Transport{Stdin: toW, Stdout: outR, Kill: kill})
	if err != nil {
		t.Fatal(err)
	}
	s.client = c
	t.Cleanup(func() {
		_ = kill()
		c.Close()
		<-over
	})
	return s
}

// A stopped agent fails its sample within 5 s, and is ended so that the testbed
// starts another.
func TestStoppedAgentFailsItsSampleSoon(t *testing.T) {
	labtest.Slow(t)
	for _, kind := range []string{"sliced", "one long window"} {
		t.Run(kind, func(t *testing.T) {
			fake, store := newLoopback(t), &memory{}
			stuck := newStoppable(t)
			fake.endsOf = func(c result.Cell, e testbed.Ends) testbed.Ends {
				if c.Network == "macvlan" && stuck.client.Alive() {
					e.Server.Agent = stuck.client
				}
				return e
			}
			o := options(t, fake, store)
			if kind == "sliced" {
				o = sliced(o)
				o.Sampling.ExplainSeconds = 0
			}
			o.Plan.MaxBlocks, o.Plan.MinBlocks, o.Sampling.Retries = 1, 1, 1
			o.WithoutProbes = []string{"cpu", "process", "counters", "stacks", "netfilter", "memory"}
			o.Sampling.Seconds = 0.5
			o.Observer = silent{stuck}
			if kind == "sliced" {
				o.Sampling.Slices = 100
			}
			time.AfterFunc(300*time.Millisecond, func() {
				stuck.since.Store(time.Now().UnixNano())
				stuck.stopped.Store(true)
			})
			if _, err := Run(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			select {
			case <-stuck.killed:
				// Asked every second, it has two to answer; a busy machine may add to that.
				if took := time.Duration(stuck.ended.Load() - stuck.since.Load()); took > 10*time.Second {
					t.Errorf("it was ended %v after it had stopped", took)
				}
			default:
				t.Error("the stopped agent was not ended")
			}
			for _, s := range store.records {
				if s.Cell.Network == "macvlan" && s.Status == result.StatusFailed {
					if strings.TrimSpace(s.Reason) == "" {
						t.Error("no reason")
					}
				}
			}
			if got := finals(store.records); len(got) != 3 {
				t.Errorf("%d samples came to an end, want 3: %v", len(got), got)
			}
		})
	}
}

// silent notes nothing.
type silent struct{ *stoppable }

func (silent) Begin(int, int)             {}
func (silent) Sampled(result.Sample, int) {}
func (silent) Say(string, ...any)         {}
