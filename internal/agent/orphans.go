//go:build linux

package agent

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// orphansGone is what the first process of a container does with processes that have lost
// their parent, which are its children then: those that it has seen before are killed. The
// ranks of an MPI leave the process group of their launcher, so that nothing else ends them
// where an agent may not give programs a PID namespace. It returns the orphans that it saw.
func orphansGone(proc string, pid int, before map[int]bool) map[int]bool {
	now := map[int]bool{}
	for _, p := range allProcesses(proc) {
		if p.parent != pid {
			continue
		}
		now[p.pid] = true
		if before[p.pid] {
			_ = syscall.Kill(p.pid, syscall.SIGKILL) // it may have ended just now
		}
	}
	return now
}

// isFirst reports whether this is the first process of a PID namespace, and /proc is that
// of the namespace.
func isFirst() bool {
	self, err := os.Readlink("/proc/self")
	return err == nil && os.Getpid() == 1 && self == "1"
}

// procStat is a line of /proc/PID/stat (proc_pid_stat(5)).
type procStat struct {
	pid, parent int
	name        string
	state       byte // 'R', 'S', 'T' …
	// user and system are its CPU time, ticks of 10 ms, and faults how many pages the kernel
	// has given it.
	user, system, faults uint64
}

// allProcesses are all that can be seen. One that ends meanwhile is left out.
func allProcesses(proc string) []procStat {
	files, _ := filepath.Glob(filepath.Join(proc, "[0-9]*")) // the pattern is well-formed
	var all []procStat
	for _, f := range files {
		pid, err := strconv.Atoi(filepath.Base(f))
		if err != nil {
			continue
		}
		if p, ok := processOf(proc, pid); ok {
			all = append(all, p)
		}
	}
	return all
}

// counted is a counter of the kernel.
func counted(text []byte) uint64 {
	n, _ := strconv.ParseUint(string(text), 10, 64) // it prints nothing else
	return n
}

// processOf reads one process; ok is false where it has ended.
func processOf(proc string, pid int) (p procStat, ok bool) {
	text, err := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "stat"))
	begin, end := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')') // a name may contain both
	if err != nil || begin < 0 || end < begin {
		return p, false
	}
	fields := bytes.Fields(text[end+1:])
	if len(fields) < 2 || len(fields[0]) != 1 {
		return p, false
	}
	parent, err := strconv.Atoi(string(fields[1]))
	p = procStat{pid: pid, parent: parent, name: string(text[begin+1 : end]), state: fields[0][0]}
	if len(fields) > 12 {
		p.faults, p.user, p.system = counted(fields[7]), counted(fields[11]), counted(fields[12])
	}
	return p, err == nil
}
