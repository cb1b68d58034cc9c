//go:build linux

package traffic

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// withoutRights runs f on a thread without capabilities, which ends with it.
func withoutRights(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var none [2]unix.CapUserData
		err := unix.Capset(&header, &none[0])
		if err == nil {
			err = f()
		}
		done <- err
	}()
	return <-done
}

// TestBatchesWithoutRights: a pinned half under nice(1) that may not be less nice has the
// policy all the same.
func TestBatchesWithoutRights(t *testing.T) {
	const nice = 15
	var attr *unix.SchedAttr
	err := withoutRights(func() error {
		if err := unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), nice); err != nil {
			return err
		}
		if err := inBatches(); err != nil {
			return err
		}
		var err error
		attr, err = unix.SchedGetAttr(0, 0)
		return err
	})
	if err != nil || attr.Policy != unix.SCHED_BATCH || attr.Nice != nice {
		t.Errorf("%+v (%v), want the policy %d and nice %d", attr, err, unix.SCHED_BATCH, nice)
	}
}

// TestAWideWindowIsKept: a socket that has a wide receive buffer by its namespace's
// net.ipv4.tcp_rmem gets no narrower one where it may not ask for one beyond
// net.core.rmem_max.
func TestAWideWindowIsKept(t *testing.T) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	wideWindow(fd)
	first, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF)
	if err != nil || first < windowBytes {
		t.Skipf("a buffer of %d bytes is not wide (%v)", first, err)
	}
	if err := withoutRights(func() error { wideWindow(fd); return nil }); err != nil {
		t.Fatal(err)
	}
	if now, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF); err != nil || now != first {
		t.Errorf("the buffer has %d bytes, had %d (%v)", now, first, err)
	}
}
