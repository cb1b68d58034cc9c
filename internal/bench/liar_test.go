package bench

import (
	"bytes"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/fault"
	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed"
)

// newHostile is an agent that greets and shows signs of life as it should, and answers
// anything else with what it likes. It writes until it is killed.
func newHostile(t *testing.T, misbehave func(r fault.Request, write func([]byte) error)) (*agent.Client, *fault.Peer) {
	t.Helper()
	p := fault.NewPeer(t, map[string]any{
		agent.MethodHello: agent.HelloResult{Protocol: agent.Protocol, Version: "hostile"},
		agent.MethodClock: agent.ClockResult{Now: 1},
		agent.MethodIdle:  agent.IdleResult{},
	}, misbehave)
	c, err := agent.NewClient(t.Context(), agent.Transport{Stdin: p.Stdin, Stdout: p.Stdout, Kill: p.Kill})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.Kill()
		c.Close()
	})
	return c, p
}

// peak is how much heap and stack this process used while f ran, at the most and beyond
// what it used before, bytes. Garbage that is not collected yet counts.
func peak(f func()) uint64 {
	read := func() uint64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapInuse + m.StackInuse
	}
	runtime.GC()
	before, most := read(), uint64(0)
	over, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			most = max(most, read())
			select {
			case <-over:
				return
			case <-tick.C:
			}
		}
	}()
	f()
	close(over)
	<-watched
	return most - min(most, before)
}

// An agent that lies, floods its output, answers 10 GB or never answers fails its
// samples with the reason, in bounded time and memory, and no other sample.
func TestHostileAgentsFailTheirSamplesAlone(t *testing.T) {
	labtest.Slow(t)
	const tenGB = 10_000_000_000
	chunk := bytes.Repeat([]byte("x"), 1<<20)
	for _, c := range []struct {
		name   string
		reason string // of the samples
		act    func(r fault.Request, write func([]byte) error)
		most   int64 // bytes that are read of what it sends
	}{
		{"lies about its session", "the agent's answer", func(r fault.Request, write func([]byte) error) {
			_ = write(fault.Answer(t, r.ID, []byte(`{"session":7,"port":"http"}`)))
		}, 1 << 20},
		{"answers what nobody can read", "not an answer", func(_ fault.Request, write func([]byte) error) {
			_ = write([]byte("\x1b]0;owned\a I am no JSON\n"))
		}, 1 << 20},
		{"answers 10 GB", "the agent is gone", func(_ fault.Request, write func([]byte) error) {
			for n := 0; n < tenGB; n += len(chunk) {
				if write(chunk) != nil {
					return
				}
			}
		}, 64 << 20},
		{"floods with answers to nobody", "an answer to nothing that it was asked", func(_ fault.Request, write func([]byte) error) {
			line := fault.Answer(t, -1, []byte(`"`+strings.Repeat("x", 1<<20)+`"`))
			for n := 0; n < tenGB; n += len(line) {
				if write(line) != nil {
					return
				}
			}
		}, 64 << 20},
		{"never answers", "", func(fault.Request, func([]byte) error) {}, 1 << 20},
	} {
		for _, kind := range []string{"sliced", "one long window"} {
			t.Run(c.name+", "+kind, func(t *testing.T) {
				fake, store := newLoopback(t), &memory{}
				client, bad := newHostile(t, c.act)
				fake.endsOf = func(cell result.Cell, e testbed.Ends) testbed.Ends {
					if cell.Network == "macvlan" {
						e.Server.Agent = client
					}
					return e
				}
				o := options(t, fake, store)
				if kind == "sliced" {
					o = sliced(o)
					o.Sampling.ExplainSeconds = 0
				}
				o.Plan.MaxBlocks, o.Plan.MinBlocks, o.Sampling.Retries = 1, 1, 0
				o.Sampling.Seconds = 0.3
				o.WithoutProbes = []string{"cpu", "process", "counters", "stacks", "netfilter", "memory"}
				begin := time.Now()
				used := peak(func() {
					if _, err := Run(t.Context(), o); err != nil {
						t.Error(err)
					}
				})
				if took := time.Since(begin); took > time.Minute {
					t.Errorf("it took %v", took)
				}
				if used > 512<<20 {
					t.Errorf("it took %d MiB of memory", used>>20)
				}
				checkHostile(t, store.records, c.reason)
				client.Abandon()
				if n := bad.Sent(); n > c.most {
					t.Errorf("%d bytes were read", n)
				}
			})
		}
	}
}

// checkHostile wants the samples of macvlan failed for a reason, and that of no other
// sample in the agent: a busy machine may leave one without a slice.
func checkHostile(t *testing.T, records []result.Sample, reason string) {
	t.Helper()
	if len(records) != 3 {
		t.Errorf("%d records, want 3: %v", len(records), ids(records))
	}
	for _, s := range records {
		bad := s.Cell.Network == "macvlan"
		if bad && s.Status != result.StatusFailed || !bad && (strings.Contains(s.Reason, "agent") || strings.Contains(s.Reason, "no end after")) {
			t.Errorf("%s is %s: %s", s.Cell.Network, s.Status, s.Reason)
		}
		if bad && (strings.TrimSpace(s.Reason) == "" || !strings.Contains(s.Reason, reason) || strings.ContainsAny(s.Reason, "\x1b\a")) {
			t.Errorf("reason %q, want %q", s.Reason, reason)
		}
		if bad {
			t.Logf("%s", s.Reason)
		}
	}
}
