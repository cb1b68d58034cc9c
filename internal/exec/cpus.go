//go:build linux

package exec

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// onCPUs starts a program that may run on some CPUs alone: it takes over what the
// calling thread may use.
func onCPUs(cpus []int, start func() error) error {
	if cpus == nil {
		return start()
	}
	var own, wanted unix.CPUSet
	if err := unix.SchedGetaffinity(0, &own); err != nil {
		return fmt.Errorf("which CPUs may be used: %w", err)
	}
	for _, cpu := range cpus {
		wanted.Set(cpu)
	}
	if err := unix.SchedSetaffinity(0, &wanted); err != nil {
		return fmt.Errorf("run on the CPUs %v: %w", cpus, err)
	}
	err := start()
	return errors.Join(err, unix.SchedSetaffinity(0, &own))
}
