package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed"
)

// hostile is an agent that greets and shows signs of life as it should, and answers
// anything else with what it likes. It writes until it is killed.
type hostile struct {
	client *agent.Client
	sent   atomic.Int64 // bytes that were read of it
}

func newHostile(t *testing.T, misbehave func(id int64, method string, write func([]byte) error)) *hostile {
	t.Helper()
	h := &hostile{}
	requestsR, requestsW := io.Pipe()
	answersR, answersW := io.Pipe()
	var mu sync.Mutex
	write := func(p []byte) error {
		mu.Lock()
		defer mu.Unlock()
		n, err := answersW.Write(p)
		h.sent.Add(int64(n))
		return err
	}
	var writing sync.WaitGroup
	over := make(chan struct{})
	go func() {
		defer close(over)
		defer writing.Wait()
		in := json.NewDecoder(requestsR)
		for {
			var req agent.Request
			if err := in.Decode(&req); err != nil {
				answersW.Close()
				return
			}
			var result any
			switch req.Method {
			case agent.MethodHello:
				result = agent.HelloResult{Protocol: agent.Protocol, Version: "hostile"}
			case agent.MethodClock:
				result = agent.ClockResult{Now: 1}
			case agent.MethodIdle:
				result = agent.IdleResult{}
			default:
				writing.Go(func() { misbehave(req.ID, req.Method, write) })
				continue
			}
			raw, err := json.Marshal(result)
			if err != nil {
				t.Error(err)
				return
			}
			line, err := json.Marshal(agent.Response{ID: req.ID, Result: raw})
			if err != nil {
				t.Error(err)
				return
			}
			writing.Go(func() { _ = write(append(line, '\n')) }) // it may be killed already
		}
	}()
	kill := func() error { return errors.Join(requestsR.Close(), answersR.Close()) }
	c, err := agent.NewClient(t.Context(), agent.Transport{Stdin: requestsW, Stdout: answersR, Kill: kill})
	if err != nil {
		t.Fatal(err)
	}
	h.client = c
	t.Cleanup(func() {
		_ = kill()
		c.Close()
		<-over
	})
	return h
}

// answerLine is a line to a request, with a result.
func answerLine(t *testing.T, id int64, result string) []byte {
	t.Helper()
	line, err := json.Marshal(agent.Response{ID: id, Result: json.RawMessage(result)})
	if err != nil {
		t.Error(err)
	}
	return append(line, '\n')
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
	const tenGB = 10_000_000_000
	chunk := bytes.Repeat([]byte("x"), 1<<20)
	for _, c := range []struct {
		name   string
		reason string // of the samples
		act    func(id int64, method string, write func([]byte) error)
		most   int64 // bytes that are read of what it sends
	}{
		{"lies about its session", "the agent's answer", func(id int64, _ string, write func([]byte) error) {
			_ = write(answerLine(t, id, `{"session":7,"port":"http"}`))
		}, 1 << 20},
		{"answers what nobody can read", "not an answer", func(_ int64, _ string, write func([]byte) error) {
			_ = write([]byte("\x1b]0;owned\a I am no JSON\n"))
		}, 1 << 20},
		{"answers 10 GB", "the agent is gone", func(id int64, _ string, write func([]byte) error) {
			for n := 0; n < tenGB; n += len(chunk) {
				if write(chunk) != nil {
					return
				}
			}
		}, 64 << 20},
		{"floods with answers to nobody", "an answer to nothing that it was asked", func(_ int64, _ string, write func([]byte) error) {
			line := answerLine(t, -1, `"`+strings.Repeat("x", 1<<20)+`"`)
			for n := 0; n < tenGB; n += len(line) {
				if write(line) != nil {
					return
				}
			}
		}, 64 << 20},
		{"never answers", "", func(int64, string, func([]byte) error) {}, 1 << 20},
	} {
		for _, kind := range []string{"sliced", "one long window"} {
			t.Run(c.name+", "+kind, func(t *testing.T) {
				bed, store := newLoopback(t), &memory{}
				bad := newHostile(t, c.act)
				bed.endsOf = func(cell result.Cell, e testbed.Ends) testbed.Ends {
					if cell.Network == "macvlan" {
						e.Server.Agent = bad.client
					}
					return e
				}
				o := options(t, bed, store)
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
				bad.client.Abandon()
				if n := bad.sent.Load(); n > c.most {
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
