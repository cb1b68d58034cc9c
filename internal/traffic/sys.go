//go:build linux

package traffic

import (
	"errors"
	"fmt"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The system calls of the hot loops. They are raw: the Go scheduler is not informed
// of them, so that nothing comes between the kernel and the loop. That is right
// here only: each runs on a thread of its own, is bounded by pollInterval (a
// socket's timeout, or tick), and there are more Ps than such threads (see room).

func send(fd int, p unsafe.Pointer, n, flags int) (int, unix.Errno) {
	r, _, e := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(p), uintptr(n), uintptr(flags), 0, 0)
	return int(r), e
}

func recv(fd int, p unsafe.Pointer, n, flags int) (int, unix.Errno) {
	r, _, e := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(p), uintptr(n), uintptr(flags), 0, 0)
	return int(r), e
}

// mmsghdr is struct mmsghdr (sendmmsg(2)).
type mmsghdr struct {
	hdr unix.Msghdr
	n   uint32
	_   [4]byte
}

func sendmmsg(fd int, msgs *mmsghdr, n, flags int) (int, unix.Errno) {
	r, _, e := unix.RawSyscall6(unix.SYS_SENDMMSG, uintptr(fd), uintptr(unsafe.Pointer(msgs)), uintptr(n), uintptr(flags), 0, 0)
	return int(r), e
}

func recvmmsg(fd int, msgs *mmsghdr, n, flags int) (int, unix.Errno) {
	r, _, e := unix.RawSyscall6(unix.SYS_RECVMMSG, uintptr(fd), uintptr(unsafe.Pointer(msgs)), uintptr(n), uintptr(flags), 0, 0)
	return int(r), e
}

// sleepUntil sleeps until a time of nanotime, at most pollInterval.
func sleepUntil(t int64) {
	if late := nanotime() + int64(pollInterval); t > late {
		t = late
	}
	ts := unix.NsecToTimespec(t)
	// An interrupted sleep is a short one: the caller's loop looks at the clock.
	_, _, _ = unix.RawSyscall6(unix.SYS_CLOCK_NANOSLEEP, unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
}

// temporary reports that a call ended without anything being wrong: a timeout of
// the socket, or a signal.
func temporary(e unix.Errno) bool { return e == unix.EAGAIN || e == unix.EINTR }

// room makes sure that there is a P for each thread of a hot loop and more:
// a raw system call keeps its P, and an agent may hold both halves of a run.
func room(threads int) {
	if n := 2*threads + 8; runtime.GOMAXPROCS(0) < n {
		runtime.GOMAXPROCS(n)
	}
}

// own makes the calling goroutine the only one of its thread, pins that to one of the
// run's CPUs and makes its sleeps exact. The thread ends with the goroutine.
//
// Round trips keep the kernel's policy for everyone: a woken end preempts the other one,
// which has nothing to do but to wait. In batches the other end goes to sleep first, and has
// to be woken again: 5 % of a round trip's time by TCP and 8 % by UDP (Linux 6.18). Beside
// streams in batches, a round trip waits for the scheduler's next tick at each end: 4 ms.
func (r *run) own(index int) error {
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("timer slack: %w", err)
	}
	if len(r.cpus) == 0 {
		return nil
	}
	var set unix.CPUSet
	cpu := r.cpus[index%len(r.cpus)]
	set.Set(cpu)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("pin to CPU %d: %w", cpu, err)
	}
	if r.cfg.Test == TCPRR || r.cfg.Test == UDPRR || r.cfg.Test == LatencyUnderLoad {
		return nil
	}
	return inBatches()
}

// batchSlice is how long the scheduler lets one end of a shared CPU work, where it
// takes wishes (Linux 6.12 and later), nanoseconds.
const batchSlice = 1_000_000

// setScheduling is sched_setattr(2) of the calling thread; older kernels take no wish.
func setScheduling(attr unix.SchedAttr) error {
	err := unix.SchedSetAttr(0, &attr, 0)
	if errors.Is(err, unix.EINVAL) {
		attr.Runtime = 0
		err = unix.SchedSetAttr(0, &attr, 0)
	}
	return err
}

// inBatches has the calling thread preempt nobody when it is woken (SCHED_BATCH).
// Both ends of a stream on one CPU then work in turns of about a millisecond.
// Otherwise the scheduler decides at each packet whether to switch, now so and now
// so: streams of 1,472 bytes came in two speeds, a third apart.
func inBatches() error {
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_BATCH, Runtime: batchSlice}
	err := setScheduling(attr)
	if errors.Is(err, unix.EPERM) {
		// A program under nice(1) needs a right to be less nice (CAP_SYS_NICE): it stays
		// as nice as it is.
		if now, errNow := unix.SchedGetAttr(0, 0); errNow == nil {
			attr.Nice = now.Nice
			err = setScheduling(attr)
		}
	}
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSYS) {
		return nil // a sandbox: the thread stays as it is
	}
	if err != nil {
		return fmt.Errorf("SCHED_BATCH: %w", err)
	}
	return nil
}

// usable keeps those of the wanted CPUs that this process may run on.
func usable(wanted []int) ([]int, error) {
	if len(wanted) == 0 {
		return nil, nil
	}
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("which CPUs may be used: %w", err)
	}
	var have []int
	for _, c := range wanted {
		if set.IsSet(c) {
			have = append(have, c)
		}
	}
	if len(have) == 0 {
		return nil, fmt.Errorf("pin_cpus: this end may run on none of the CPUs %v: leave pin_cpus out on this machine", wanted)
	}
	return have, nil
}

// timeouts bounds every blocking call on a socket.
func timeouts(fd int) error { return timeoutOf(fd, pollInterval) }

// timeoutOf bounds every blocking call on a socket by a duration.
func timeoutOf(fd int, d time.Duration) error {
	tv := unix.NsecToTimeval(int64(d))
	for _, o := range []struct {
		name   string
		option uintptr
	}{{"SO_RCVTIMEO", unix.SO_RCVTIMEO}, {"SO_SNDTIMEO", unix.SO_SNDTIMEO}} {
		if _, _, e := unix.RawSyscall6(unix.SYS_SETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, o.option, uintptr(unsafe.Pointer(&tv)), unsafe.Sizeof(tv), 0); e != 0 {
			return fmt.Errorf("%s: %w", o.name, e)
		}
	}
	return nil
}

// connect is connect(2) without informing the Go scheduler: that a connection is waited for
// would make it move other goroutines, and each transaction of tcp_crr waits for one.
func connect(fd int, address []byte) unix.Errno {
	_, _, e := unix.RawSyscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&address[0])), uintptr(len(address)))
	return e
}

// closeNow is close(2) in the same way, of a socket whose other end has closed already or
// is a stranger.
func closeNow(fd int) {
	_, _, _ = unix.RawSyscall(unix.SYS_CLOSE, uintptr(fd), 0, 0)
}

// wideWindow gives a sliced stream all of its receive window from the beginning. The
// kernel would widen it over the first tenths of a second; while it is too small the
// sender's queue fills and leaves in larger segments, which cost a third per byte.
func wideWindow(fd, wanted int) {
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, wanted) == nil {
		return
	}
	// Without the right to, net.core.rmem_max bounds the buffer. One that was asked for is
	// never widened by the kernel, so a narrower one than wanted would bound the stream:
	// 416 KiB, which many machines allow, carry 7 Gbit/s at most where a round trip takes
	// 0.5 ms. Such a socket is left to the kernel, and so is one that is wide already, by
	// net.ipv4.tcp_rmem. The record has the buffer in force.
	now, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF)
	if (err != nil || now < wanted) && allowedBuffer(wanted) >= wanted {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, wanted)
	}
}

// allowedBuffer is the receive buffer that a socket gets which asks for one, bytes; 0: none.
func allowedBuffer(wanted int) int {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0
	}
	defer unix.Close(fd) // it was never connected
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, wanted)
	got, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF)
	if err != nil {
		return 0
	}
	return got
}

// windowBytes is the receive buffer of a sliced stream: more than two ends on one CPU
// have under way in a turn of some milliseconds.
const windowBytes = 8 << 20

// tuneTCP prepares a data connection. Messages of round trips are not held
// back by Nagle's algorithm; those of a stream are, as iperf3's and netperf's.
func tuneTCP(fd int, cfg Config, what role) error {
	noDelay := 0
	if what == roundTrips {
		noDelay = 1
	}
	// The kernel takes a window that stays shut for a path that is cut. That of a
	// stream flat out may only have a receiver without CPU; its sender has a heartbeat.
	userTimeout := int(idleLimit / time.Millisecond)
	if (what == upload || what == download) && cfg.RateBitsPerSecond == 0 {
		userTimeout = 0
	}
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, noDelay); err != nil {
		return fmt.Errorf("TCP_NODELAY: %w", err)
	}
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, userTimeout); err != nil {
		return fmt.Errorf("TCP_USER_TIMEOUT: %w", err)
	}
	if cfg.Sliced && what != roundTrips {
		wideWindow(fd, windowBytes)
	}
	if cfg.CongestionControl != "" {
		if err := setAlgorithm(fd, cfg.CongestionControl); err != nil {
			return err
		}
	}
	if what == roundTrips || cfg.Sliced {
		return nil // tick, or the end of the run, bounds its calls
	}
	return timeouts(fd)
}

// abort closes a connection and throws away what is still to be sent.
func abort(fd int) error {
	if err := unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1}); err != nil {
		return err
	}
	return unix.Close(fd)
}
