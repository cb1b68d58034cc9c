package exec

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// attributes are how the kernel starts the program: in a process group of its own, and
// killed when the thread that started it ends.
func (c Cmd) attributes() (*syscall.SysProcAttr, error) {
	a := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if c.User != 0 {
		a.Credential = &syscall.Credential{Uid: c.User, Gid: c.User}
		if c.NetAdmin {
			a.AmbientCaps = []uintptr{unix.CAP_NET_ADMIN}
		}
	}
	if c.OwnPIDs {
		a.Cloneflags = unix.CLONE_NEWPID
	}
	if c.Cgroup != nil {
		a.UseCgroupFD, a.CgroupFD = true, int(c.Cgroup.Fd())
	}
	return a, nil
}

// outlive lets a program go on after the one that started it.
func outlive(a *syscall.SysProcAttr) { a.Setpgid, a.Setsid, a.Pdeathsig = false, true, 0 }

// setns moves the calling thread into the network namespace of a file.
func setns(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("network namespace: %w", err)
	}
	defer f.Close()
	if err := setnsTo(f); err != nil {
		return fmt.Errorf("enter network namespace %s: %w", path, err)
	}
	return nil
}

// setnsTo moves the calling thread into the network namespace of an open file.
func setnsTo(f *os.File) error { return unix.Setns(int(f.Fd()), unix.CLONE_NEWNET) }
