package cli_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/bench"
	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/cni"
	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/fault"
	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed"
	"github.com/cnibench/cnibench/internal/testbed/lab"
	"github.com/cnibench/cnibench/internal/workload"
)

// faultAfter is when in a sample the fault comes; the engine's traffic runs then.
const faultAfter = 1200 * time.Millisecond

// brokenLab is a real lab in which something is done in the middle of samples.
// It is up until the test ends, whatever the runs in it say.
type brokenLab struct {
	t *testing.T
	*lab.Lab
	runner *exec.Runner
	up     bool
	// do is done in the middle of each sample; what it gives is done before the
	// next one. Nil: nothing.
	do func(testbed.Ends) (undo func())

	mu   sync.Mutex
	undo func()
	at   time.Time // of the last fault
	over chan struct{}
	// armed reports that the next Ends are those of a sample.
	armed bool
	// looks reports that the next Ends are those of a look for tools.
	looks bool
	// at0 does it before the sample begins.
	at0 bool

	records []result.Sample
	took    []time.Duration // from the fault to the record
	struck  []result.Sample // the records of mustFail's first run
}

func newBrokenLab(t *testing.T) *brokenLab {
	t.Helper()
	labtest.Root(t)
	labtest.Feature(t, "veth", netns.Veth().Probe())
	b := &brokenLab{t: t, runner: exec.NewRunner()}
	b.Lab = lab.New(lab.Options{
		Runner: b.runner, Agent: []string{filepath.Join(built, "cnibench"), "agent"},
		CNIPath: cni.SearchPath(""), Verb: "test", Dir: filepath.Join(t.TempDir(), "labs"),
		SetsAlgorithm: workload.SetsCongestionControl,
	})
	t.Cleanup(func() {
		if err := b.Lab.Close(context.Background()); err != nil {
			t.Error(err)
		}
		b.runner.Close()
	})
	return b
}

// Build builds the lab for the first of the runs.
func (b *brokenLab) Build(ctx context.Context, cells []result.Cell) (map[result.Cell]string, error) {
	if b.up {
		return nil, nil
	}
	b.up = true
	return b.Lab.Build(ctx, cells)
}

// Close leaves the lab to the next run.
func (b *brokenLab) Close(context.Context) error {
	b.repair()
	return nil
}

// Ends repairs the last fault and plans the next one.
func (b *brokenLab) Ends(ctx context.Context, c result.Cell) (testbed.Ends, error) {
	b.repair()
	ends, err := b.Lab.Ends(ctx, c)
	if b.looks {
		b.looks = false
		return ends, err
	}
	if err != nil || b.do == nil || !b.armed {
		return ends, err
	}
	b.armed = false // the next ask may be for tools
	wait := faultAfter
	if c.Workload == "sockperf" {
		wait += 2 * time.Second // it starts late
	}
	over := make(chan struct{})
	b.over = over
	strike := func() {
		defer close(over)
		b.mu.Lock()
		b.at = time.Now()
		b.mu.Unlock()
		b.undo = b.do(ends)
	}
	if b.at0 {
		strike()
		return ends, nil
	}
	go func() {
		time.Sleep(wait)
		strike()
	}()
	return ends, nil
}

func (b *brokenLab) repair() {
	if b.over == nil {
		return
	}
	<-b.over
	b.over = nil
	if b.undo != nil {
		b.undo()
	}
	b.undo = nil
}

// Append keeps a record, and how long after the fault it came.
func (b *brokenLab) Append(s result.Sample) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.records, b.took = append(b.records, s), append(b.took, time.Since(b.at))
	b.armed = true
	// After a failed sample of a tool the ends are asked for once more, to look
	// whether the tool still runs.
	w, err := workload.Find(s.Cell.Workload)
	b.looks = err == nil && s.Status == result.StatusFailed && len(w.Spec().Needs) > 0
	return s.Validate()
}

// Begin comes before the first sample.
func (b *brokenLab) Begin(int, int) { b.armed = true }

func (b *brokenLab) SaveRaw(string, string, []string, string, string) error { return nil }
func (b *brokenLab) SaveStacks(string, string, string) error                { return nil }
func (b *brokenLab) WriteJSON(string, any) error                            { return nil }
func (b *brokenLab) Sampled(result.Sample, int)                             {}
func (b *brokenLab) Say(string, ...any)                                     {}

// run measures each cell once.
func (b *brokenLab) run(cells []result.Cell, seconds float64, do func(testbed.Ends) func()) []result.Sample {
	b.t.Helper()
	b.do, b.records, b.took = do, nil, nil
	_, err := bench.Run(b.t.Context(), bench.Options{
		Sampling: campaign.Sampling{Seconds: seconds, MinBlocks: 1, MaxBlocks: 1}, Testbed: b, Store: b, Observer: b,
		Plan: plan.Plan{Schema: plan.Schema, Seed: 1, Cells: cells, MinBlocks: 1, MaxBlocks: 1, SampleSeconds: seconds},
	})
	if err != nil {
		b.t.Fatalf("the campaign did not go on: %v", err)
	}
	if len(b.records) != len(cells) {
		b.t.Fatalf("%d records of %d cells", len(b.records), len(cells))
	}
	return b.records
}

// mustFail runs the cells with a fault in each, and once more without. tool is
// what a published tool may take beyond 5 s.
func (b *brokenLab) mustFail(cells []result.Cell, seconds float64, tool time.Duration, do func(testbed.Ends) func()) {
	b.t.Helper()
	b.struck = b.run(cells, seconds, do)
	for i, s := range b.struck {
		b.t.Logf("%-40s %5.2f s  %s %s", s.Cell.Traffic(), b.took[i].Seconds(), s.Status, s.Reason)
		if s.Status != result.StatusFailed || s.Reason == "" {
			b.t.Errorf("%s: %s %q %v", s.Cell.Traffic(), s.Status, s.Reason, s.Metrics)
		}
		if limit := 5*time.Second + tool; b.took[i] > limit {
			b.t.Errorf("%s: failed %v after the fault, want %v", s.Cell.Traffic(), b.took[i], limit)
		}
	}
	for _, s := range b.run(cells, 0.2, nil) {
		if s.Status != result.StatusOK {
			b.t.Errorf("%s: after the fault was repaired: %s", s.Cell.Traffic(), s.Reason)
		}
	}
}

func faultCell(workload, test, protocol string, change func(*result.Cell)) result.Cell {
	c := result.Cell{Network: "host", Path: result.PathHostToHost, Placement: result.InterHost, Link: "unshaped", Profile: lab.DefaultProfile,
		MTU: 1500, Workload: workload, Test: test, Protocol: protocol, MessageBytes: 64}
	if change != nil {
		change(&c)
	}
	return c
}

// nativeCells are the engine's traffics, slow ones, so that several labs can
// have their faults at once.
func nativeCells() []result.Cell {
	slow := func(c *result.Cell) { c.Streams, c.MessageBytes, c.RateBitsPerSecond = 2, 1472, 50e6 }
	back := func(c *result.Cell) { slow(c); c.Direction = "reverse" }
	one := func(c *result.Cell) { c.Streams = 1 }
	return []result.Cell{
		faultCell("tcp_stream", "", "", slow), faultCell("tcp_stream", "", "", back),
		faultCell("udp_stream", "", "", slow), faultCell("udp_stream", "", "", back),
		faultCell("tcp_rr", "", "", one), faultCell("udp_rr", "", "", one), faultCell("tcp_crr", "", "", one),
		faultCell("latency_under_load", "", "", slow),
	}
}

// pid is the process of an agent.
func (b *brokenLab) pid(p testbed.Place) int {
	var hello agent.HelloResult
	if err := p.Agent.Call(context.Background(), agent.MethodHello, agent.HelloParams{Protocol: agent.Protocol}, &hello); err != nil {
		b.t.Errorf("%s: %v", p.Name, err)
		return -1
	}
	return hello.PID
}

// ip runs ip in the namespace of an agent.
func (b *brokenLab) ip(pid int, args ...string) string {
	res, err := b.runner.Run(context.Background(), exec.Cmd{Argv: append([]string{"ip"}, args...), NetNS: fmt.Sprintf("/proc/%d/ns/net", pid)})
	if err != nil {
		b.t.Error(err)
	}
	return string(res.Stdout)
}

// device is the device with an address, and the address with its length.
func (b *brokenLab) device(pid int, address string) (name, prefix string) {
	for line := range strings.Lines(b.ip(pid, "-o", "-4", "addr", "show")) {
		f := strings.Fields(line)
		if len(f) > 3 && strings.HasPrefix(f[3], address+"/") {
			return f[1], f[3]
		}
	}
	b.t.Errorf("no device has %s", address)
	return "", ""
}

// faults are what can go wrong at the ends and between them.
func (b *brokenLab) faults() map[string]func(testbed.Ends) func() {
	return map[string]func(testbed.Ends) func(){
		"server agent killed": func(e testbed.Ends) func() { fault.Kill(b.t, b.pid(e.Server)); return nil },
		"client agent killed": func(e testbed.Ends) func() { fault.Kill(b.t, b.pid(e.Client)); return nil },
		"link down": func(e testbed.Ends) func() {
			pid := b.pid(e.Server)
			dev, _ := b.device(pid, e.ServerAddress.String())
			b.ip(pid, "link", "set", dev, "down")
			return func() { b.ip(pid, "link", "set", dev, "up") }
		},
		"address removed": func(e testbed.Ends) func() {
			pid := b.pid(e.Server)
			dev, prefix := b.device(pid, e.ServerAddress.String())
			b.ip(pid, "addr", "del", prefix, "dev", dev)
			return func() { b.ip(pid, "addr", "add", prefix, "dev", dev) }
		},
	}
}

// killTool kills what an agent has started, each in a group of its own.
func (b *brokenLab) killTool(agent int) {
	b.t.Helper()
	pids := b.children(agent)
	for _, pid := range pids {
		fault.Kill(b.t, -pid) // nginx's workers serve on without their master
	}
	if len(pids) == 0 {
		b.t.Errorf("agent %d has started nothing", agent)
	}
}

// children waits until an agent has started something, and gives that. It may be nothing:
// where the ends were asked for to look for tools.
func (b *brokenLab) children(agent int) []int {
	b.t.Helper()
	for begin := time.Now(); time.Since(begin) < 2*time.Second; time.Sleep(10 * time.Millisecond) {
		if pids := fault.Children(b.t, agent); len(pids) > 0 {
			return pids
		}
	}
	return nil
}

// dataPort is the port that an agent's engine serves on; 0 where there is none.
func dataPort(pid int, protocol string) (uint16, error) {
	for _, name := range []string{protocol + "6", protocol} {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, name))
		if err != nil {
			return 0, err
		}
		for line := range strings.Lines(string(text)) {
			f := strings.Fields(line)
			if len(f) < 4 || protocol == "tcp" && f[3] != "0A" {
				continue
			}
			if _, hex, ok := strings.Cut(f[1], ":"); ok {
				if port, err := strconv.ParseUint(hex, 16, 16); err == nil {
					return uint16(port), nil
				}
			}
		}
	}
	return 0, nil
}
