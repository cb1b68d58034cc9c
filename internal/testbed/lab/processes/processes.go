// Package processes finds and ends the processes that are in namespaces and cgroups of a
// lab, whoever started them.
package processes

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/cnibench/cnibench/internal/netns"
)

// KillInside ends every process that is in one of the namespaces and waits
// until none is left, or two seconds. It gives how many it killed.
func KillInside(namespaces []netns.NS) (int, error) {
	inside := map[string]bool{}
	for _, ns := range namespaces {
		if inode, err := ns.Inode(); err == nil { // one that is gone has no process
			inside["net:["+strconv.FormatUint(inode, 10)+"]"] = true
		}
	}
	killed := map[int]bool{}
	for try := 0; ; try++ {
		pids, err := In(inside)
		if err != nil {
			return len(killed), err
		}
		if len(pids) == 0 {
			return len(killed), nil
		}
		if try == 200 {
			return len(killed), errors.New("processes in the lab's namespaces do not end")
		}
		for _, pid := range pids {
			if err := syscall.Kill(pid, syscall.SIGKILL); err == nil {
				killed[pid] = true
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// In lists the processes in the namespaces, never this one.
func In(inside map[string]bool) ([]int, error) {
	var pids []int
	err := Each(func(pid int, namespace string) {
		if inside[namespace] {
			pids = append(pids, pid)
		}
	})
	return pids, err
}

// Each gives every process but this one, with its network namespace as
// /proc has it.
func Each(take func(pid int, namespace string)) error {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return err
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		// A process that ended meanwhile, or a zombie, has none.
		at, err := os.Readlink(filepath.Join("/proc", e.Name(), "ns/net"))
		if err == nil {
			take(pid, at)
		}
	}
	return nil
}
