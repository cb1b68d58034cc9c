package baremetal

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/cnibench/cnibench/internal/scratch"
)

// ClearScratch removes what killed owners left of their folders, and names it. Workers of an
// Ansible that was killed live on until their task is done, and make a missing folder again
// (ansible.executor.module_common makes ansiballz_cache). They are killed first: what they
// change on a host, the next command changes back.
func ClearScratch() ([]string, error) { return scratch.Clear(scratchPattern, endWorkers) }

// workersEnd is how long killed workers may take to be gone.
const workersEnd = 2 * time.Second

// homeOf is the variable by which Ansible's processes know their folder.
func homeOf(dir string) string { return "ANSIBLE_HOME=" + filepath.Join(dir, "home") }

// endWorkers kills the processes of an Ansible that was given a folder, until there is none.
// Those of other users cannot be seen, and a system without /proc shows none.
func endWorkers(dir string) error {
	for begin := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		pids, err := withVariable(homeOf(dir))
		if err != nil || len(pids) == 0 {
			return err
		}
		if time.Since(begin) > workersEnd {
			return fmt.Errorf("processes %v of a killed Ansible do not end", pids)
		}
		for _, pid := range pids {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				return fmt.Errorf("process %d of a killed Ansible: %w", pid, err)
			}
		}
	}
}

// withVariable gives the processes that have a variable in their environment.
func withVariable(variable string) ([]int, error) {
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, file := range files {
		environment, err := os.ReadFile(file)
		if err != nil {
			continue // another user's, or it has ended
		}
		for one := range bytes.SplitSeq(environment, []byte{0}) {
			if string(one) != variable {
				continue
			}
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			if err != nil {
				return nil, err
			}
			pids = append(pids, pid)
		}
	}
	return pids, nil
}
