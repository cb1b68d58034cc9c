//go:build linux

package traffic

import (
	"errors"
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// tickSignal interrupts a blocking call of a hot loop: a real-time signal that
// nothing else here uses. Go's own handler takes it and does nothing with it.
const tickSignal = 61

// What timer_create(2) and rt_sigaction(2) take, as amd64 and arm64 have it.
type (
	sigevent struct {
		value  uint64
		signal int32
		notify int32
		thread int32
		_      [44]byte
	}
	sigaction struct {
		handler  uintptr
		flags    uint64
		restorer uintptr
		mask     uint64
	}
)

const (
	sigevThreadID = 4          // SIGEV_THREAD_ID
	saRestart     = 0x10000000 // SA_RESTART
)

// tick ends every blocking call of the calling thread after pollInterval at most
// (EINTR), until stop is called. A timeout of the socket would do so too, but
// arms and takes down a timer in each call: 2 % of a round trip's instructions.
func tick() (stop func() error, err error) {
	t, err := newTicker()
	if err != nil {
		return nil, err
	}
	if err := t.set(pollInterval); err != nil {
		return nil, errors.Join(err, t.close())
	}
	return t.close, nil
}

// ticker is the timer of one thread that does so. It is set while the thread is in
// calls that the Go scheduler does not know of.
type ticker struct{ timer int32 }

// newTicker makes one for the calling thread; it is not set yet.
func newTicker() (*ticker, error) {
	// Go's handlers restart the call that was interrupted; this one must not.
	var action sigaction
	if _, _, e := unix.RawSyscall6(unix.SYS_RT_SIGACTION, tickSignal, 0, uintptr(unsafe.Pointer(&action)), unsafe.Sizeof(action.mask), 0, 0); e != 0 {
		return nil, fmt.Errorf("rt_sigaction: %w", e)
	}
	if action.handler <= 1 { // SIG_DFL would end this program, SIG_IGN interrupts nothing
		return nil, fmt.Errorf("signal %d has no handler", tickSignal)
	}
	action.flags &^= saRestart
	if _, _, e := unix.RawSyscall6(unix.SYS_RT_SIGACTION, tickSignal, uintptr(unsafe.Pointer(&action)), 0, unsafe.Sizeof(action.mask), 0, 0); e != 0 {
		return nil, fmt.Errorf("rt_sigaction: %w", e)
	}
	event := sigevent{signal: tickSignal, notify: sigevThreadID, thread: int32(unix.Gettid())}
	var timer int32
	if _, _, e := unix.RawSyscall(unix.SYS_TIMER_CREATE, unix.CLOCK_MONOTONIC, uintptr(unsafe.Pointer(&event)), uintptr(unsafe.Pointer(&timer))); e != 0 {
		return nil, fmt.Errorf("timer_create: %w", e)
	}
	return &ticker{timer}, nil
}

// set has the ticks come at an interval from now on; 0 ends them.
func (t *ticker) set(interval time.Duration) error {
	every := unix.NsecToTimespec(int64(interval))
	spec := struct{ interval, value unix.Timespec }{every, every}
	if _, _, e := unix.RawSyscall6(unix.SYS_TIMER_SETTIME, uintptr(t.timer), 0, uintptr(unsafe.Pointer(&spec)), 0, 0, 0); e != 0 {
		return fmt.Errorf("timer_settime: %w", e)
	}
	return nil
}

func (t *ticker) close() error {
	if _, _, e := unix.RawSyscall(unix.SYS_TIMER_DELETE, uintptr(t.timer), 0, 0); e != 0 {
		return fmt.Errorf("timer_delete: %w", e)
	}
	return nil
}
