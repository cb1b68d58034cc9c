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

// TestScheduling: ends of round trips on chosen CPUs keep the kernel's policy, all others work
// in batches. Where the scheduler chooses the CPUs, nothing changes.
func TestScheduling(t *testing.T) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		t.Fatal(err)
	}
	cpu := 0
	for !set.IsSet(cpu) {
		cpu++
	}
	for _, c := range []struct {
		test string
		cpus []int
		want uint32
	}{
		{TCPRR, []int{cpu}, unix.SCHED_NORMAL},
		{UDPRR, []int{cpu}, unix.SCHED_NORMAL},
		{LatencyUnderLoad, []int{cpu}, unix.SCHED_NORMAL},
		{TCPCRR, []int{cpu}, unix.SCHED_BATCH},
		{TCPStream, []int{cpu}, unix.SCHED_BATCH},
		{UDPStream, []int{cpu}, unix.SCHED_BATCH},
		{TCPStream, nil, unix.SCHED_NORMAL},
	} {
		var attr *unix.SchedAttr
		done := make(chan error)
		go func() {
			r := &run{cfg: Config{Test: c.test}, cpus: c.cpus}
			err := r.own(0)
			if err == nil {
				attr, err = unix.SchedGetAttr(0, 0)
			}
			done <- err
		}()
		if err := <-done; err != nil || attr.Policy != c.want {
			t.Errorf("%s on CPUs %v: policy %v, want %d (%v)", c.test, c.cpus, attr, c.want, err)
		}
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
	wideWindow(fd, windowBytes)
	first, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF)
	if err != nil || first < windowBytes {
		t.Skipf("a buffer of %d bytes is not wide (%v)", first, err)
	}
	if err := withoutRights(func() error { wideWindow(fd, windowBytes); return nil }); err != nil {
		t.Fatal(err)
	}
	if now, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF); err != nil || now != first {
		t.Errorf("the buffer has %d bytes, had %d (%v)", now, first, err)
	}
}

// TestANarrowWindowIsLeftToTheKernel: where a socket may not have the buffer that is wanted, it
// asks for none, because the kernel widens no buffer that was asked for.
func TestANarrowWindowIsLeftToTheKernel(t *testing.T) {
	const tooWide = 1 << 30
	if allowed := allowedBuffer(tooWide); allowed == 0 || allowed >= tooWide {
		t.Skipf("this machine allows a receive buffer of %d bytes", allowed)
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := withoutRights(func() error { wideWindow(fd, tooWide); return nil }); err != nil {
		t.Fatal(err)
	}
	const bufLock, receiveLocked = 72, 2 // SO_BUF_LOCK and SOCK_RCVBUF_LOCK, socket(7)
	locks, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, bufLock)
	if err != nil {
		t.Skipf("kernel has no SO_BUF_LOCK: %v", err) // before 5.14
	}
	if locks&receiveLocked != 0 {
		t.Error("the kernel may not widen the receive buffer any more")
	}
}
