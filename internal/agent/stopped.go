//go:build linux

package agent

import (
	"fmt"
	"time"
)

const (
	// lookEvery is how often the processes of a launcher or daemon of ranks are looked
	// at, and stoppedFor how long one may be stopped: together less than the 15 s in which
	// a sample of MPI must fail.
	lookEvery  = time.Second
	stoppedFor = 3 * time.Second
	// familyEvery is how many looks have the same processes: all of /proc is read to
	// find them.
	familyEvery = 5
)

// watchRanks counts the looks in which a program of ranks does nothing (tool.quiet), and ends
// it once one of its processes has been stopped (SIGSTOP) for stoppedFor: all other ranks
// of an MPI would wait for it without a limit.
func (t *tool) watchRanks(proc string) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	var watched []int
	since := map[int]time.Time{} // by process that is stopped
	work := jobWork{proc: proc}
	for look := 0; ; look++ {
		select {
		case <-tick.C:
		case <-t.exited:
			return
		}
		if look%familyEvery == 0 {
			watched = family(allProcesses(proc), t.process.PID())
		}
		var now []procStat
		for _, pid := range watched {
			p, ok := processOf(proc, pid)
			if ok {
				now = append(now, p)
			}
			if !ok || p.state != 'T' {
				delete(since, pid)
				continue
			}
			if since[pid].IsZero() {
				since[pid] = time.Now()
			}
			if time.Since(since[pid]) >= stoppedFor {
				why := fmt.Sprintf("its process %s (%d) was stopped", p.name, pid)
				t.stopped.Store(&why)
				t.kill()
				return
			}
		}
		if work.goesOn(now) {
			t.quiet.Store(0)
		} else {
			t.quiet.Add(1)
		}
	}
}

// family are a process and all that descend from it.
func family(all []procStat, root int) []int {
	children := map[int][]int{}
	for _, p := range all {
		children[p.parent] = append(children[p.parent], p.pid)
	}
	out := []int{root}
	for i := 0; i < len(out) && len(out) <= len(all); i++ { // a pid may be used again meanwhile
		out = append(out, children[out[i]]...)
	}
	return out
}
