package fault

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/labtest"
)

// memoryLimit is what the programs of OutOfMemory's cgroup may use together, bytes.
const memoryLimit = 32 << 20

// OutOfMemory has the kernel kill a process for lack of memory: it puts the process into a
// memory cgroup of its own with a program that takes more than there is. It returns when
// the process has ended and the cgroup is gone. A test asks NeedsMemory before.
func OutOfMemory(t testing.TB, pid int) {
	t.Helper()
	if pid <= 1 {
		t.Errorf("%d is no process of a test", pid)
		return
	}
	base, limits, err := memoryController()
	if err != nil {
		t.Error(err)
		return
	}
	dir := filepath.Join(base, fmt.Sprintf("cnb-memory-%d", pid))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Error(err)
		return
	}
	defer removeCgroup(t, dir)
	for _, limit := range limits {
		err := os.WriteFile(filepath.Join(dir, limit.file), []byte(limit.value), 0o644)
		if err != nil && (limit.needed || !errors.Is(err, fs.ErrNotExist)) {
			t.Error(err)
			return
		}
	}
	// The kernel takes this one first.
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), []byte("1000"), 0o644); err != nil {
		t.Errorf("process %d: %v", pid, err)
		return
	}
	if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o644); err != nil {
		t.Error(err)
		return
	}
	r := exec.NewRunner()
	defer r.Close()
	for begin := time.Now(); ; {
		// tail keeps what is no line until it has an end, and each keeps a third of the
		// limit for a second. The kernel takes the process with the highest sum of its
		// pages and its oom_score_adj, and 1000 there is the whole limit: a single tail
		// that fills it would weigh as much as the process that this is about.
		_, _ = r.Run(t.Context(), exec.Cmd{Argv: []string{"sh", "-c", `echo $$ >"$1/cgroup.procs" || exit
			for i in 1 2 3 4; do { head -c "$2" /dev/zero; sleep 1; } | tail >/dev/null & done; wait`,
			"sh", dir, strconv.Itoa(memoryLimit / 3)}})
		if state := stateOf(pid); state == "" || state == "Z" || state == "X" {
			return
		}
		if time.Since(begin) > patience || t.Context().Err() != nil {
			t.Errorf("the kernel did not kill process %d within %v", pid, patience)
			return
		}
	}
}

// limit is a file of a cgroup and what is written into it.
type limit struct {
	file, value string
	needed      bool
}

// NeedsMemory skips a test where the kernel has no memory cgroups.
func NeedsMemory(t testing.TB) {
	t.Helper()
	labtest.Root(t)
	_, _, err := memoryController()
	labtest.Feature(t, "memory cgroup", err)
}

// memoryController is the folder in which cgroups with a limit of memory are made, of
// either version, and how their memory is limited. The error says why there is none.
func memoryController() (base string, limits []limit, err error) {
	const v1, v2 = "/sys/fs/cgroup/memory", "/sys/fs/cgroup"
	most := strconv.Itoa(memoryLimit)
	if _, err := os.Stat(filepath.Join(v1, "memory.limit_in_bytes")); err == nil {
		return v1, []limit{{"memory.limit_in_bytes", most, true}, {"memory.memsw.limit_in_bytes", most, false}}, nil
	}
	controllers, err := os.ReadFile(filepath.Join(v2, "cgroup.subtree_control"))
	if err != nil || !strings.Contains(string(controllers), "memory") {
		return "", nil, errors.New("neither a memory cgroup of version 1, nor one of version 2 that passes memory on to others")
	}
	return v2, []limit{{"memory.max", most, true}, {"memory.swap.max", "0", false}}, nil
}

// removeCgroup removes a cgroup whose processes are ending.
func removeCgroup(t testing.TB, dir string) {
	t.Helper()
	for begin := time.Now(); ; time.Sleep(time.Millisecond) {
		err := os.Remove(dir)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return
		}
		if time.Since(begin) > patience {
			procs, _ := os.ReadFile(filepath.Join(dir, "cgroup.procs")) // for the message alone
			t.Errorf("%v; processes in it: %q", err, strings.Fields(string(procs)))
			return
		}
	}
}
