//go:build !linux

package exec

import (
	"errors"
	"os"
	"syscall"
)

// errNeedsLinux is the error of what other systems do not have: network namespaces,
// cgroups, other users' programs, and CPUs that a program is limited to.
var errNeedsLinux = errors.New("unsupported: needs Linux")

// attributes are how the system starts the program: in a process group of its own.
func (c Cmd) attributes() (*syscall.SysProcAttr, error) {
	if c.User != 0 || c.NetAdmin || c.OwnPIDs || c.Cgroup != nil {
		return nil, errNeedsLinux
	}
	return &syscall.SysProcAttr{Setpgid: true}, nil
}

// outlive lets a program go on after the one that started it.
func outlive(a *syscall.SysProcAttr) { a.Setpgid, a.Setsid = false, true }

func setns(string) error { return errNeedsLinux }

func setnsTo(*os.File) error { return errNeedsLinux }

// onCPUs starts a program on all CPUs.
func onCPUs(cpus []int, start func() error) error {
	if cpus != nil {
		return errNeedsLinux
	}
	return start()
}
