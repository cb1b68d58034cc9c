package processes

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/netns"
)

// KillCgroups ends every process in the cgroups of a lab, frozen ones too, and
// gives how many there were. A container's processes are in no namespace that
// has a name, but they are in its cluster's cgroup.
func KillCgroups(prefix string) (int, error) {
	trees, err := cgroupTrees(prefix)
	if err != nil {
		return 0, err
	}
	killed := map[int]bool{}
	for try := 0; ; try++ {
		pids := pidsIn(trees)
		if len(pids) == 0 {
			return len(killed), nil
		}
		if try == 500 {
			return len(killed), fmt.Errorf("processes in the lab's cgroups do not end: %v", pids)
		}
		for _, pid := range pids {
			if err := syscall.Kill(pid, syscall.SIGKILL); err == nil {
				killed[pid] = true
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// cgroupTrees are the folders of a lab's cgroups at the top of every hierarchy,
// those of version 1 too: container runtimes make theirs in all.
func cgroupTrees(prefix string) ([]string, error) {
	roots, err := netns.CgroupRoots()
	if err != nil {
		return nil, err
	}
	var trees []string
	for _, root := range roots {
		entries, err := os.ReadDir(root)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if e.IsDir() && strings.HasPrefix(e.Name(), prefix) {
				trees = append(trees, filepath.Join(root, e.Name()))
			}
		}
	}
	return trees, nil
}

// pidsIn lists the processes in trees of cgroups, never this one.
func pidsIn(trees []string) []int {
	var pids []int
	for _, dir := range subfolders(trees) {
		list, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		if err != nil {
			continue // gone meanwhile
		}
		for _, field := range strings.Fields(string(list)) {
			pid, err := strconv.Atoi(field)
			if err == nil && pid > 0 && pid != os.Getpid() && !slices.Contains(pids, pid) {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// subfolders are trees and all folders in them, each before what is in it.
func subfolders(trees []string) []string {
	var all []string
	for _, tree := range trees {
		_ = filepath.WalkDir(tree, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				all = append(all, path)
			}
			return nil // what is gone meanwhile need not be listed
		})
	}
	return all
}

// RemoveCgroups takes away the cgroups of a lab, whose programs have ended. The
// kernel needs a moment to see that.
func RemoveCgroups(prefix string) error {
	trees, err := cgroupTrees(prefix)
	if err != nil {
		return err
	}
	var errs []error
	all := subfolders(trees)
	slices.Reverse(all)
	for _, dir := range all {
		for try := 0; ; try++ {
			err := os.Remove(dir)
			if err == nil || errors.Is(err, fs.ErrNotExist) {
				break
			}
			if !errors.Is(err, unix.EBUSY) || try == 200 {
				errs = append(errs, fmt.Errorf("cgroup: %w", err))
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	return errors.Join(errs...)
}
