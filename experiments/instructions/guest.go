package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/cni"
	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed/lab"
)

// plan is what the program in the virtual machine is to do.
type plan struct {
	Settings []setting
	Agents   []agents
	Samples  int // of each traffic
	Packets  int // or transactions, of each sample
	// Backports: on the kernel of Debian's backports in place of Debian's own.
	Backports bool
	// Probes counts what the probes cost, after the settings; nil does not.
	Probes *probePlan
	// Alone lets nothing else run but the kernel's interrupts while packets are
	// counted, until a packet must be waited for: Go's own threads would be
	// counted too. It is for the virtual machine: a machine that others use
	// would stop.
	Alone bool
}

// setting is one lab that is built: a network, and what is added to it.
type setting struct {
	Network  string
	Rules    rules
	Services services
	Traffic  []traffic
}

// traffic is what is counted in a lab. Those of one setting take turns.
type traffic struct {
	Workload     string // "udp_stream", "tcp_rr", "udp_flows"
	Placement    string
	TwicePercent int // so many packets of a hundred are sent twice
}

// line is what the program says, in JSON: first how long the known loop took,
// then the counts.
type line struct {
	Loop    *loop        `json:",omitempty"`
	Count   *count       `json:",omitempty"`
	Probed  *probed      `json:",omitempty"`
	Reading *ruleReading `json:",omitempty"`
}

// loop is a run of countdown.
type loop struct{ Turns, Nanoseconds int64 }

// count is that of one traffic of a setting. A setting that failed has one with
// its reason.
type count struct {
	Network  string
	Nodes    string `json:",omitempty"` // whose; "": the lab's
	Rules    rules
	Services services
	Traffic  traffic
	Samples  []sample `json:",omitempty"`
	Failed   string   `json:",omitempty"`
}

// sample is one counted window. In the virtual machine a nanosecond is an
// instruction, but for those in which the CPU was idle.
type sample struct{ Nanoseconds, IdleNanoseconds, Packets int64 }

// perPacket is what one packet, or transaction, took.
func (s sample) perPacket() float64 {
	return float64(s.Nanoseconds-s.IdleNanoseconds) / float64(s.Packets)
}

// knownLoops is how often the known loop runs, each time a million turns longer.
const knownLoops = 10

// carryOut does a plan in labs of this kernel and writes counts.
func carryOut(ctx context.Context, p plan, w io.Writer) error {
	// A thread of its own with blocking system calls, and no garbage collector
	// in between, as in the traffic engine.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	if p.Alone {
		if err := makeAlone(); err != nil {
			return err
		}
	}
	out := json.NewEncoder(w)
	for i := range int64(knownLoops) {
		l, err := loop{Turns: (1 + i) * 1_000_000}, error(nil)
		l.Nanoseconds, err = clocked(p.Alone, func() error { countdown(l.Turns); return nil })
		if err == nil {
			err = out.Encode(line{Loop: &l})
		}
		if err != nil {
			return err
		}
	}
	say := func(counts []count) error {
		for _, c := range counts {
			if err := out.Encode(line{Count: &c}); err != nil {
				return err
			}
		}
		runtime.GC() // it was off while packets were counted
		return nil
	}
	for _, s := range p.Settings {
		counts, err := s.carryOut(ctx, p)
		if err != nil {
			counts = []count{{Network: s.Network, Rules: s.Rules, Services: s.Services, Failed: err.Error()}}
		}
		if err := say(counts); err != nil {
			return err
		}
	}
	for _, a := range p.Agents {
		counts, err := a.carryOut(ctx, p)
		if err != nil {
			counts = append(counts, count{Network: a.CNI, Nodes: onKubernetes, Failed: err.Error()})
		}
		if err := say(counts); err != nil {
			return err
		}
	}
	if p.Probes == nil {
		return nil
	}
	return countProbes(ctx, *p.Probes, func(l line) error { return out.Encode(l) })
}

// carryOut builds a setting's lab and counts its traffic there.
func (s setting) carryOut(ctx context.Context, p plan) (counts []count, err error) {
	r := exec.NewRunner()
	defer r.Close()
	err = s.built(ctx, r, func(l *lab.Lab) error {
		if err := s.Rules.add(ctx, r, l, s.Traffic[0].cell(s)); err != nil {
			return err
		}
		counts, err = s.counted(p, l)
		return err
	})
	for i := range counts {
		counts[i].Network, counts[i].Rules, counts[i].Services = s.Network, s.Rules, s.Services
	}
	return counts, err
}

// counted counts the setting's traffic in its lab.
func (s setting) counted(p plan, l *lab.Lab) ([]count, error) {
	return countAll(p, s.Traffic, func(t traffic) (ends, error) {
		sites, err := l.Sites(t.cell(s))
		return ends(sites), err
	})
}

// built calls f while the setting's lab is up.
func (s setting) built(ctx context.Context, r *exec.Runner, f func(*lab.Lab) error) (err error) {
	l := lab.New(lab.Options{Runner: r, CNIPath: cni.SearchPath(""), Verb: "bench-instructions"})
	var cells []result.Cell
	for _, t := range s.Traffic {
		cells = append(cells, t.cell(s))
	}
	unsupported, err := l.Build(ctx, cells)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close(context.WithoutCancel(ctx))) }()
	for _, c := range cells {
		if reason, not := unsupported[c]; not {
			return errors.New(reason)
		}
	}
	return f(l)
}

// countAll counts some traffic, each between the ends that at gives for it.
func countAll(p plan, all []traffic, at func(traffic) (ends, error)) (counts []count, err error) {
	var pairs []pair
	defer func() {
		for _, p := range pairs {
			err = errors.Join(err, p.close())
		}
	}()
	for _, t := range all {
		e, err := at(t)
		if err != nil {
			return nil, err
		}
		open := e.datagrams
		switch t.Workload {
		case "tcp_rr":
			open = e.connection
		case udpFlows:
			open = e.manyFlows
		}
		pair, err := open()
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", t.Workload, t.Placement, err)
		}
		pairs = append(pairs, pair)
		counts = append(counts, count{Traffic: t})
	}
	return counts, takeTurns(counts, pairs, p)
}

// takeTurns counts the samples of all traffics, after some packets that fill
// neighbours, connections and caches.
func takeTurns(counts []count, pairs []pair, p plan) error {
	for round := range 1 + p.Samples {
		for i := range counts {
			t := counts[i].Traffic
			n := p.Packets
			if round == 0 {
				n = min(n, 500)
			}
			got, err := window(pairs[i], t, n, p.Alone)
			if err != nil {
				return fmt.Errorf("%s %s: %w", t.Workload, t.Placement, err)
			}
			if round > 0 {
				counts[i].Samples = append(counts[i].Samples, got)
			}
		}
	}
	return nil
}

// window counts n packets.
func window(p pair, t traffic, n int, alone bool) (got sample, err error) {
	if p.flows != nil {
		if p.clients, err = p.flows.open(n); err != nil {
			return got, err
		}
		defer func() { err = errors.Join(err, closeAll(p.clients)) }()
	}
	idle, err := idleNanoseconds()
	if err != nil {
		return got, err
	}
	got.Packets = int64(n)
	got.Nanoseconds, err = clocked(alone, func() error { return p.run(t.Workload, n, t.TwicePercent) })
	if err != nil {
		return got, err
	}
	after, err := idleNanoseconds()
	got.IdleNanoseconds = after - idle
	return got, err
}

// clocked runs f, alone or not, and gives the time that it took.
func clocked(alone bool, f func() error) (nanoseconds int64, err error) {
	if alone {
		if err := schedule(0, unix.SCHED_FIFO, 1); err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, schedule(0, unix.SCHED_NORMAL, 0)) }()
	}
	begin := monotonic()
	err = f()
	return monotonic() - begin, err
}

// schedule sets how a thread is scheduled; 0 is this one.
func schedule(thread int, policy, priority uint32) error {
	err := unix.SchedSetAttr(thread, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: policy, Priority: priority}, 0)
	if err != nil {
		return fmt.Errorf("scheduling: %w", err)
	}
	return nil
}

// makeAlone lets threads of SCHED_FIFO have the CPU for as long as they want, but
// for ksoftirqd. The kernel wakes that when packets keep coming in, and leaves all
// further ones to it until it sleeps again. If it came after the thread that waits
// for the packets, it never would: each packet would cost two changes of threads
// from some moment on.
func makeAlone() error {
	if err := os.WriteFile("/proc/sys/kernel/sched_rt_runtime_us", []byte("-1"), 0o644); err != nil {
		return err
	}
	names, err := filepath.Glob("/proc/[0-9]*/comm")
	if err != nil {
		return err
	}
	for _, path := range names {
		name, err := os.ReadFile(path)
		if err != nil || !strings.HasPrefix(string(name), "ksoftirqd/") {
			continue // another, or it has ended meanwhile
		}
		thread, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			return err
		}
		if err := schedule(thread, unix.SCHED_FIFO, 2); err != nil {
			return err
		}
	}
	return nil
}

// monotonic is the clock that counts instructions.
func monotonic() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		return 0 // there is no kernel without it
	}
	return t.Nano()
}

var idleTime = regexp.MustCompile(`(?m)^\s*\.idle_sleeptime\s*: (\d+) nsecs$`)

// idleNanoseconds is how long all CPUs together have been idle: /proc/stat has
// no more than hundredths of a second.
func idleNanoseconds() (int64, error) {
	b, err := os.ReadFile("/proc/timer_list")
	if err != nil {
		return 0, err
	}
	all := idleTime.FindAllSubmatch(b, -1)
	if len(all) == 0 {
		return 0, errors.New("/proc/timer_list tells no idle_sleeptime")
	}
	sum := int64(0)
	for _, m := range all {
		n, err := strconv.ParseInt(string(m[1]), 10, 64)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

// cell is what the traffic of a setting is in a campaign.
func (t traffic) cell(s setting) result.Cell {
	c := result.Cell{
		Network: s.Network, Path: result.PathPodToPod, Placement: t.Placement, Link: "unshaped", Profile: lab.DefaultProfile,
		MTU: 1500, Workload: t.Workload, MessageBytes: messageBytes, Streams: 1,
	}
	if s.Network == result.HostNetwork {
		return c.Baseline()
	}
	if s.Services.Count > 0 {
		c.Path, c.ServiceProxy, c.Services = result.PathPodToClusterIP, s.Services.Proxy, s.Services.Count
	}
	return c
}
