//go:build linux

package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// judgedTicks is the CPU time after which a process is judged, ticks of 10 ms. A rank
	// that gets a tenth of a CPU is judged once a second.
	judgedTicks = 10
	// waitingShare is the share of its CPU time that a process has in the kernel at least
	// while it waits: one part of so many.
	waitingShare = 5
	// firstTouch is how many new pages are work too: a process that fills memory for the
	// first time is mostly in the kernel.
	firstTouch = 1000
)

// jobWork finds out whether a job goes on at a place: a rank computes, or TCP sends data.
//
// MPIs poll while they wait, so that a rank which waits takes as much CPU time as one which
// computes. But a rank that polls TCP is in system calls much of the time, and one that
// computes hardly ever.
type jobWork struct {
	proc string
	sent uint64           // segments with data, at the last look
	ran  map[int]procStat // each process as it was when it was last judged
}

// goesOn reports whether anything was done since the last look; processes are those of the
// job as they are now.
func (w *jobWork) goesOn(processes []procStat) bool {
	works := false
	ran := map[int]procStat{}
	for _, p := range processes {
		before, seen := w.ran[p.pid]
		user, system := p.user-before.user, p.system-before.system
		switch {
		case !seen || p.user < before.user || p.system < before.system: // it has just begun
			works, ran[p.pid] = true, p
		case user+system < judgedTicks:
			ran[p.pid] = before
		default:
			works = works || waitingShare*system < user+system || p.faults-before.faults >= firstTouch
			ran[p.pid] = p
		}
	}
	w.ran = ran
	sent, err := segmentsSent(w.proc)
	works = works || err != nil || sent != w.sent // a kernel that does not count ends no job
	w.sent = sent
	return works
}

// segmentsSent is how many segments with new data TCP has sent in this network namespace.
// Acknowledgements, keepalives and repetitions are not among them.
func segmentsSent(proc string) (uint64, error) {
	const counter = "TCPOrigDataSent"
	text, err := os.ReadFile(filepath.Join(proc, "self/net/netstat"))
	if err != nil {
		return 0, err
	}
	lines := strings.Split(string(text), "\n")
	for i := 0; i+1 < len(lines); i += 2 { // names, then their values
		values := strings.Fields(lines[i+1])
		if at := slices.Index(strings.Fields(lines[i]), counter); at >= 0 && at < len(values) {
			return strconv.ParseUint(values[at], 10, 64)
		}
	}
	return 0, fmt.Errorf("/proc/net/netstat has no %s", counter)
}

// quiet is for how long all jobs at this place have done nothing; 0 where there is none.
func (s *server) quiet() QuietResult {
	s.mu.Lock()
	defer s.mu.Unlock()
	var looks []int32
	for t := range s.jobs {
		looks = append(looks, t.quiet.Load())
	}
	if len(looks) == 0 {
		return QuietResult{}
	}
	return QuietResult{For: time.Duration(slices.Min(looks)) * lookEvery}
}
