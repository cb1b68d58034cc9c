package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"github.com/cnibench/cnibench/internal/netns"
)

// A pod's processes are six cgroups deep, in every hierarchy, and each sleep and each
// wake-up enters and leaves every level. The lab's agents are put as deep here, so that
// the networks alone can differ.

// deepVerb makes this program an agent in a cgroup as deep as a pod's: deep NAME PROGRAM.
const deepVerb = "deep"

// levels are the cgroups of a pod in a lab's Kubernetes: the cluster, the node's pods,
// kubepods, the class, the pod, the container.
func levels() []string { return []string{"pods-node", "kubepods", "besteffort"} }

// deep puts this process into cgroups of its own below the folder name, and becomes the
// program's agent.
func deep(name, program string) error {
	roots, err := netns.CgroupRoots()
	if err != nil {
		return err
	}
	own := strconv.Itoa(os.Getpid())
	for _, root := range roots {
		dir := filepath.Join(root, name)
		for _, level := range append(levels(), "pod-"+own, "container") {
			if err := makeLevel(dir); err != nil {
				return err
			}
			dir = filepath.Join(dir, level)
		}
		if err := makeLevel(dir); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(own), 0o644); err != nil {
			return err
		}
	}
	return syscall.Exec(program, []string{program, "agent"}, os.Environ())
}

// makeLevel makes a cgroup that may use what the one above it may.
func makeLevel(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		above, err := os.ReadFile(filepath.Join(filepath.Dir(dir), file))
		if errors.Is(err, fs.ErrNotExist) {
			continue // another hierarchy's
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, file), above, 0o644)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// removeDeep removes the cgroups of agents that have ended.
func removeDeep(name string) error {
	roots, err := netns.CgroupRoots()
	errs := []error{err}
	for _, root := range roots {
		var dirs []string
		err := filepath.WalkDir(filepath.Join(root, name), func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				dirs = append(dirs, path)
			}
			return err
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
		for _, dir := range slices.Backward(dirs) {
			errs = append(errs, os.Remove(dir))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("cgroups of the benchmark: %w", err)
	}
	return nil
}
