package dataplane

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// PlaceProcesses moves all threads of processes to some CPUs; to all that this process may use
// where there are none. A process that has ended is no error.
func PlaceProcesses(pids, cpus []int) error {
	var set unix.CPUSet
	if len(cpus) == 0 {
		if err := unix.SchedGetaffinity(0, &set); err != nil {
			return err
		}
	}
	for _, cpu := range cpus {
		set.Set(cpu)
	}
	for _, pid := range pids {
		threads, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(pid), "task"))
		if errors.Is(err, fs.ErrNotExist) {
			continue // it has ended since
		}
		if err != nil {
			return err
		}
		for _, thread := range threads {
			tid, err := strconv.Atoi(thread.Name())
			if err != nil {
				return err
			}
			if err := unix.SchedSetaffinity(tid, &set); err != nil && !errors.Is(err, unix.ESRCH) {
				return err
			}
		}
	}
	return nil
}
