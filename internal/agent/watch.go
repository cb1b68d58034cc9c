//go:build linux

package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/probe"
	"github.com/cnibench/cnibench/internal/workload"
)

// watch reads every probe at both edges of one measured window.
type watch struct {
	mu     sync.Mutex
	probes []probe.Probe // those whose first edge was read
	list   []probe.Probe
	began  time.Time
	edge   time.Duration // CPU time of the first edges; 0: not known
	values map[string]float64
	doubts []string
	absent []string // what this machine does not have
	stacks string   // as probe.Stacks writes them
}

// watch opens the probes but for those named; close ends them.
func (s *server) watch(without []string) *watch {
	return &watch{list: probe.List(s.roots, without), values: map[string]float64{}}
}

// close ends what the probes hold open.
func (w *watch) close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var errs []error
	for _, p := range w.list {
		if c, ok := p.(io.Closer); ok {
			errs = append(errs, c.Close())
		}
	}
	w.list, w.probes = nil, nil
	return errors.Join(errs...)
}

// start reads the first edge.
func (w *watch) start() {
	w.mu.Lock()
	defer w.mu.Unlock()
	runtime.LockOSThread() // so that the clock before and after is of one thread
	defer runtime.UnlockOSThread()
	w.began = time.Now()
	before, errBefore := threadTime()
	for _, p := range w.list {
		if err := p.Start(); err != nil {
			w.doubt(p, err)
			continue
		}
		w.probes = append(w.probes, p)
	}
	if after, err := threadTime(); err == nil && errBefore == nil {
		w.edge = after - before
	}
}

// threadTime is the CPU time of the calling thread.
func threadTime() (time.Duration, error) {
	var t unix.Timespec
	err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t)
	return time.Duration(t.Nano()), err
}

// stop reads the second edge.
func (w *watch) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.probes) > 0 {
		w.values[probe.WindowSeconds] = time.Since(w.began).Seconds()
		if w.edge > 0 {
			w.values[probe.FirstEdgeSeconds] = w.edge.Seconds()
		}
	}
	for _, p := range w.probes {
		values, err := p.Stop()
		if err != nil {
			w.doubt(p, err)
		}
		maps.Copy(w.values, values)
		if f, ok := p.(interface{ Folded() string }); ok {
			w.stacks = f.Folded()
		}
	}
	w.probes = nil
}

// doubt keeps why a value is absent. What this machine does not have is no
// doubt about a sample: the idle measurement reports it, once a campaign.
func (w *watch) doubt(p probe.Probe, err error) {
	missing, wrong := probe.Reasons(err)
	for _, e := range missing {
		w.absent = append(w.absent, fmt.Sprintf("probe %s: %v", p.Name(), e))
	}
	for _, e := range wrong {
		w.doubts = append(w.doubts, fmt.Sprintf("probe %s: %v", p.Name(), e))
	}
}

// idle reads the probes over a time in which nothing is measured.
func (s *server) idle(ctx context.Context, p IdleParams) (r IdleResult, err error) {
	w := s.watch(p.WithoutProbes)
	defer func() { err = errors.Join(err, w.close()) }()
	w.start()
	select {
	case <-time.After(p.Window):
	case <-ctx.Done():
		return IdleResult{}, context.Cause(ctx)
	}
	w.stop()
	w.values[probe.LoopSeconds] = probe.Loop() // after the window: its own time is not in it
	return IdleResult{Probes: w.values, Doubts: w.doubts, Absent: slices.Compact(w.absent)}, nil
}

// over reads the edges of a tool's window, which lies offset after now. A tool
// that ends before its window does leaves nothing measured.
func (w *watch) over(offset, window time.Duration, exited <-chan struct{}) {
	if window <= 0 {
		return
	}
	start := time.Now()
	select {
	case <-exited:
		return
	case <-time.After(offset):
		w.start()
	}
	select {
	case <-exited:
	case <-time.After(time.Until(start.Add(offset + window))):
		w.stop()
	}
}

// into hands what was read to an output.
func (w *watch) into(out *workload.Output) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.values) > 0 {
		out.Probes = maps.Clone(w.values)
	}
	out.Stacks = w.stacks
	out.Doubts = append(out.Doubts, w.doubts...)
}
