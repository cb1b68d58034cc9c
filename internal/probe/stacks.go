//go:build linux

package probe

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/unit"
)

const (
	// stackFrequency is how often each CPU's stack is taken, per second: no
	// divisor or multiple of the kernel's own ticks, and rarely enough to cost
	// little (experiments/probes measures that).
	stackFrequency = 499
	// drainEvery is how often the ring buffers are read inside a window.
	drainEvery = 250 * time.Millisecond
	// mostLost is the share of samples that may be lost before what is left
	// proves nothing.
	mostLost = 0.02
)

// Stacks samples what the kernel does, on all CPUs: the call chain of what runs,
// some hundred times a second. Each sample is attributed to a component of a
// packet's way (components.txt): component_<name>_cpu_seconds. Together they are
// the CPU time in the window that is not idle, as the kernel accounts for it
// (/proc/stat); the samples show how it is shared. Samples are of the CPU's cycles
// where it counts them, which sees code that runs with interrupts off as well;
// else of the kernel's clock. The stacks themselves are in Folded.
type Stacks struct {
	roots   Roots
	rings   []*ring
	err     error
	byClock bool // the event is the clock: weights are nanoseconds
	cpu     *CPU // for the time that is shared out

	mu   sync.Mutex
	seen map[key]uint64 // weight of each stack
	// own are the tasks of the measurement that were there before the window and
	// after; nil where the kernel does not record it. forks is who started whom inside.
	own   map[uint32]bool
	forks map[uint32]uint32
	// taken and lost count samples.
	taken, lost uint64
	broken      error
	folded      string

	stop, stopped chan struct{}
}

// key is a task and its stack.
type key struct {
	pid   uint32
	stack string
}

// OpenStacks opens the sampling. What cannot be opened is reported by Start.
func OpenStacks(roots Roots) *Stacks {
	if roots.Symbols == nil {
		roots.Symbols = NewSymbols(roots)
	}
	s := &Stacks{roots: roots, cpu: NewCPU(roots)}
	// Reading the names takes long: not inside a window.
	if s.err = roots.Symbols.Load(); s.err != nil {
		return s
	}
	_, cpus, err := onlineCPUs(roots)
	if err != nil {
		s.err = err
		return s
	}
	s.own = map[uint32]bool{}
	s.learnOwn() // not inside a window either: a lab has hundreds of threads
	for _, e := range []struct {
		sampling
		clock bool
	}{
		{sampling{unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_CPU_CYCLES}, false},
		{sampling{unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_CPU_CLOCK}, true},
	} {
		s.byClock = e.clock
		if s.err = s.open(e.sampling, cpus); s.err == nil {
			return s
		}
	}
	return s
}

func (s *Stacks) open(e sampling, cpus []int) error {
	for _, cpu := range cpus {
		r, err := openRing(e, cpu, stackFrequency)
		if err != nil {
			return errors.Join(absentf("kernel stacks: CPU %d: %w%s", cpu, err, cure(err)), s.closeRings())
		}
		s.rings = append(s.rings, r)
	}
	return nil
}

// Name is the probe's name.
func (s *Stacks) Name() string { return StacksName }

// Event says what samples are taken of, for doctor.
func (s *Stacks) Event() string {
	if s.byClock {
		return "the kernel's clock: what runs with interrupts off is seen only after"
	}
	return "the CPU's cycles"
}

// Start begins sampling.
func (s *Stacks) Start() error {
	if s.err != nil {
		return s.err
	}
	s.seen, s.forks = map[key]uint64{}, map[uint32]uint32{}
	s.taken, s.lost, s.broken, s.folded = 0, 0, nil, ""
	if err := s.cpu.Start(); err != nil {
		return err
	}
	for _, r := range s.rings {
		if err := r.start(); err != nil {
			return errors.Join(fmt.Errorf("begin to sample: %w", err), s.halt())
		}
	}
	s.stop, s.stopped = make(chan struct{}), make(chan struct{})
	go s.drainUntil(s.stop, s.stopped)
	return nil
}

func (s *Stacks) halt() error {
	var errs []error
	for _, r := range s.rings {
		errs = append(errs, r.stop())
	}
	return errors.Join(errs...)
}

func (s *Stacks) drainUntil(stop <-chan struct{}, stopped chan<- struct{}) {
	defer close(stopped)
	tick := time.NewTicker(drainEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.drain()
		case <-stop:
			return
		}
	}
}

func (s *Stacks) drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.rings {
		err := r.drain(func(record []byte) {
			sample, lost, ok, err := parseRecord(record)
			if s.lost += lost; err != nil {
				s.broken = err
			}
			if ok {
				s.taken++
				s.seen[key{sample.pid, string(sample.stack)}] += sample.weight
			}
			if child, parent, ok := parseFork(record); ok {
				s.forks[child] = parent
			}
		})
		if err != nil {
			s.broken = err
		}
	}
}

// Stop ends sampling and attributes what was seen.
func (s *Stacks) Stop() (map[string]float64, error) {
	if s.stop == nil {
		return nil, errors.New("the first edge was not read")
	}
	err := s.halt()
	busy, cpuErr := s.cpu.Stop()
	close(s.stop)
	<-s.stopped
	s.stop = nil
	s.drain()
	s.learnOwn()
	if err := errors.Join(err, s.broken); err != nil {
		return nil, fmt.Errorf("kernel stacks: %w", err)
	}
	if s.taken == 0 {
		return nil, absentf("kernel stacks: the event opens, but no sample came (a virtual machine without a real PMU or clock)")
	}
	if share := float64(s.lost) / float64(s.taken+s.lost); share > mostLost {
		return nil, fmt.Errorf("kernel stacks: %.1f %% of the samples were lost: too many processes run for this program to read them", 100*share)
	}
	if cpuErr != nil {
		return nil, fmt.Errorf("kernel stacks: the CPU time in the window: %w", cpuErr)
	}
	return s.attribute(busySeconds(busy))
}

// busySeconds is the time of a window that was not idle.
func busySeconds(cpu map[string]float64) float64 {
	var seconds float64
	for _, mode := range []string{"user", "nice", "system", "irq", "softirq"} {
		seconds += cpu["cpu_"+mode+"_seconds"]
	}
	return seconds
}

// attribute shares the busy time out by samples, and writes the stacks down.
func (s *Stacks) attribute(busySeconds float64) (map[string]float64, error) {
	rules, err := NewRules()
	if err != nil {
		return nil, err
	}
	weights, lines, all := map[string]float64{}, map[string]float64{}, 0.0
	for k, weight := range s.seen {
		stack, err := s.roots.Symbols.Resolve(addresses([]byte(k.stack)))
		if err != nil {
			return nil, err
		}
		c, line := s.classify(rules, k.pid, stack)
		if c == idleComponent {
			continue
		}
		weights[c] += float64(weight)
		lines[line] += float64(weight)
		all += float64(weight)
	}
	if all == 0 || busySeconds <= 0 {
		return nil, fmt.Errorf("kernel stacks: %d samples and %.2f s of CPU time are too few to share out: measure longer (sampling.seconds)", s.taken, busySeconds)
	}
	scale := busySeconds / all
	values := map[string]float64{"stack_samples": float64(s.taken), "stack_samples_lost": float64(s.lost)}
	for _, c := range unit.Components() {
		values[unit.ComponentSeconds(c.Name)] = weights[c.Name] * scale
	}
	if s.own == nil {
		delete(values, unit.ComponentSeconds(unit.ElsewhereComponent)) // cannot be separated
	}
	for line := range lines {
		lines[line] *= scale
	}
	s.folded = fold(lines)
	return values, nil
}

// classify returns the component of a task's stack, and the stack as text.
func (s *Stacks) classify(rules *Rules, pid uint32, stack []string) (component, line string) {
	c := unit.UserComponent
	if len(stack) > 0 {
		c = rules.Attribute(stack)
	}
	if c == idleComponent {
		return c, ""
	}
	if !s.isOwn(rules, pid, c, stack) {
		return unit.ElsewhereComponent, mark(unit.ElsewhereComponent)
	}
	if c == unit.UserComponent {
		return c, mark(unit.UserComponent)
	}
	for i, f := range stack {
		stack[i] = strings.ReplaceAll(cmp.Or(f, "[unknown]"), ";", ",")
	}
	slices.Reverse(stack)
	return c, strings.Join(stack, ";")
}

// fold writes stacks as flame graphs are made from: "outer;inner 1234", a line
// each, the CPU time in microseconds behind it.
func fold(lines map[string]float64) string {
	var out strings.Builder
	for _, line := range slices.Sorted(maps.Keys(lines)) {
		if us := int64(lines[line]*1e6 + 0.5); us > 0 {
			fmt.Fprintf(&out, "%s %d\n", line, us)
		}
	}
	return out.String()
}

// Folded is the stacks of the last window, without idle ones: "outer;inner 1234"
// with the CPU time in microseconds. What the ends did in user space and what
// other programs did is one line each.
func (s *Stacks) Folded() string { return s.folded }

// learnOwn adds the tasks that belong to the measurement: this process's parent,
// which started both ends where they are on one machine, and all below it. On a
// kernel that does not record who started whom, all tasks do. What one of them
// started that has ended since is known by the kernel's records of it.
func (s *Stacks) learnOwn() {
	root := os.Getppid()
	if root <= 1 {
		root = os.Getpid()
	}
	pids, err := family(s.roots, root)
	if err != nil {
		s.own = nil
	}
	for _, pid := range pids {
		if s.own != nil {
			s.own[uint32(pid)] = true
		}
	}
	for grown := s.own != nil; grown; {
		grown = false
		for child, parent := range s.forks {
			if s.own[parent] && !s.own[child] {
				s.own[child], grown = true, true
			}
		}
	}
}

// isOwn reports whether a stack belongs to the measurement: all that its tasks do and, of
// others, what interrupts them and what threads of the kernel do for the network
// (WireGuard's, NAPI's). Of a task's own system calls nothing is, nor the softirqs
// that they raise: on a machine that others use these are others' packets.
func (s *Stacks) isOwn(rules *Rules, pid uint32, component string, stack []string) bool {
	switch {
	case s.own == nil || s.own[pid]:
		return true
	case rules.systemCall(stack):
		return false
	case slices.ContainsFunc(stack, inSoftirq):
		return true
	}
	switch component {
	case unit.UserComponent, socketComponent, schedulingComponent, memoryComponent, unit.OtherComponent:
		return false
	}
	return true
}

// Close ends the sampling.
func (s *Stacks) Close() error {
	var err error
	if s.stop != nil {
		err = s.halt()
		close(s.stop)
		<-s.stopped
		s.stop = nil
	}
	return errors.Join(err, s.closeRings())
}

func (s *Stacks) closeRings() error {
	var errs []error
	for _, r := range s.rings {
		errs = append(errs, r.close())
	}
	s.rings = nil
	return errors.Join(errs...)
}
