package agent

import (
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/cnibench/cnibench/internal/probe"
	"github.com/cnibench/cnibench/internal/workload"
)

// watch reads every probe at both edges of one measured window.
type watch struct {
	mu     sync.Mutex
	probes []probe.Probe // those whose first edge was read
	list   []probe.Probe
	began  time.Time
	values map[string]float64
	doubts []string
}

func (s *server) watch() *watch {
	return &watch{list: probe.List(s.roots), values: map[string]float64{}}
}

// start reads the first edge.
func (w *watch) start() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.began = time.Now()
	for _, p := range w.list {
		if err := p.Start(); err != nil {
			w.doubts = append(w.doubts, fmt.Sprintf("probe %s: %v", p.Name(), err))
			continue
		}
		w.probes = append(w.probes, p)
	}
}

// stop reads the second edge.
func (w *watch) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.probes) > 0 {
		w.values[probe.WindowSeconds] = time.Since(w.began).Seconds()
	}
	for _, p := range w.probes {
		values, err := p.Stop()
		if err != nil {
			w.doubts = append(w.doubts, fmt.Sprintf("probe %s: %v", p.Name(), err))
		}
		maps.Copy(w.values, values)
	}
	w.probes = nil
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
	out.Doubts = append(out.Doubts, w.doubts...)
}
