// Package netns is the only package that uses network namespaces and, with package
// network, to netlink.
package netns

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Dir is where named namespaces are, as for iproute2.
const Dir = "/run/netns"

// NS is a named network namespace: Path is a file that holds it,
// /run/netns/cnb-….
type NS struct {
	Name string
	Path string
}

// Named is the namespace of that name, whether it exists or not.
func Named(name string) NS { return NS{Name: name, Path: filepath.Join(Dir, name)} }

// New makes a namespace of that name, with its loopback device up. Nothing is
// left where it fails.
func New(name string) (NS, error) {
	ns := Named(name)
	if err := create(ns.Path); err != nil {
		return NS{}, fmt.Errorf("network namespace %s: %w", name, err)
	}
	err := errors.New("its thread ended early")
	onThread(func() bool {
		err = hold(ns.Path)
		return false // the thread is in the new namespace: it must die
	})
	if err != nil {
		if errors.Is(err, unix.EPERM) {
			err = fmt.Errorf("%w (needs root: run it with sudo)", err)
		}
		return NS{}, errors.Join(fmt.Errorf("network namespace %s: %w", name, err), ns.Delete())
	}
	return ns, nil
}

// create makes the file that the namespace is to be mounted on. Another
// program may take an empty Dir away at the same moment, hence the retry.
func create(path string) error {
	for try := 0; ; try++ {
		if err := os.MkdirAll(Dir, 0o755); err != nil {
			return err
		}
		f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDONLY, 0o444)
		if err == nil {
			return f.Close()
		}
		if !errors.Is(err, fs.ErrNotExist) || try == 3 {
			return err
		}
	}
}

func hold(path string) error {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("unshare: %w", err)
	}
	if err := loopbackUp(); err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	// A bind mount on the file alone; iproute2's own way, a shared bind mount of
	// the whole folder on itself, would stay behind in the machine's mounts.
	if err := unix.Mount("/proc/thread-self/ns/net", path, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount: %w", err)
	}
	return nil
}

func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	req, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	req.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, req)
}

// Delete takes the namespace's name away. The kernel destroys the namespace
// and its devices when the last process in it has ended. One that does not exist
// is no error.
func (n NS) Delete() error {
	err := unix.Unmount(n.Path, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
	// EINVAL: the file exists but no mount on it, as when its maker was killed.
	if err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("network namespace %s: unmount: %w", n.Name, err)
	}
	for try := 0; ; try++ {
		err := os.Remove(n.Path)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if !errors.Is(err, unix.EBUSY) || try == 50 {
			return fmt.Errorf("network namespace %s: %w", n.Name, err)
		}
		// The mount is taken down a moment after umount2 with MNT_DETACH.
		time.Sleep(time.Millisecond)
	}
}

// Inode identifies the namespace among processes: it is what
// /proc/PID/ns/net points at.
func (n NS) Inode() (uint64, error) {
	var st unix.Stat_t
	if err := unix.Stat(n.Path, &st); err != nil {
		return 0, fmt.Errorf("network namespace %s: %w", n.Name, err)
	}
	return st.Ino, nil
}

// List gives the namespaces whose names begin with prefix.
func List(prefix string) ([]NS, error) {
	entries, err := os.ReadDir(Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []NS
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) {
			list = append(list, Named(e.Name()))
		}
	}
	return list, nil
}

// Do runs f on a thread that is in the namespace. Sockets that f opens stay in
// it afterwards. f must not start goroutines that need the namespace.
func Do(n NS, f func() error) error {
	target, err := os.Open(n.Path)
	if err != nil {
		return fmt.Errorf("network namespace %s: %w", n.Name, err)
	}
	defer target.Close()
	err = errors.New("the function ended its goroutine")
	onThread(func() bool {
		home, openErr := os.Open("/proc/thread-self/ns/net")
		if openErr != nil {
			err = openErr
			return true
		}
		defer home.Close()
		if setErr := unix.Setns(int(target.Fd()), unix.CLONE_NEWNET); setErr != nil {
			err = fmt.Errorf("enter network namespace %s: %w", n.Name, setErr)
			return true
		}
		err = f()
		if back := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); back != nil {
			err = errors.Join(err, fmt.Errorf("return from network namespace %s: %w", n.Name, back))
			return false
		}
		return true
	})
	return err
}

// throwaway runs f in a new namespace that has no name and ends with f.
func throwaway(f func() error) error {
	err := errors.New("the function ended its goroutine")
	onThread(func() bool {
		if err = unix.Unshare(unix.CLONE_NEWNET); err == nil {
			err = f()
		}
		return false
	})
	return err
}

// onThread runs f on a thread of its own and waits for it. The thread goes
// back to the runtime where f gives true; otherwise it dies, so that no other
// goroutine ever runs in the wrong namespace.
//
// The process's first thread is never used: the runtime cannot end it, and
// /proc/PID/ns/net, by which others see where this process is, is that
// thread's.
func onThread(f func() bool) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			onThread(f) // while this one is held, it gets another
			runtime.UnlockOSThread()
			return
		}
		if f() {
			runtime.UnlockOSThread()
		}
	}()
	<-done
}
