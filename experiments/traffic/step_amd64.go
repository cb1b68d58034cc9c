package main

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// stepThrough lets a thread of another process execute n instructions, one at a time. It
// tells how many it did, and how many datagrams, messages or connections the system calls
// among them moved: the calls that are the test's own, work. What the kernel does in a call
// is no step. The other threads of the process do not run meanwhile: Go's own would find the thread slow and have it make
// room for others every few instructions.
func stepThrough(pid, thread, n int, work moves) (steps int, done int64, err error) {
	runtime.LockOSThread() // a tracer is a thread
	defer runtime.UnlockOSThread()
	threads, err := ticks(pid)
	if err != nil {
		return 0, 0, err
	}
	for id := range threads {
		if err := hold(id); err != nil {
			return 0, 0, err
		}
		defer func() { err = errors.Join(err, unix.PtraceDetach(id)) }()
	}
	return walk(thread, n, work)
}

// hold stops a thread.
func hold(thread int) error {
	err := unix.PtraceSeize(thread)
	if err == nil {
		err = unix.PtraceInterrupt(thread)
	}
	if err != nil {
		return fmt.Errorf("ptrace of thread %d: %w", thread, err)
	}
	return await(thread)
}

// walk does the steps of stepThrough.
func walk(thread, n int, work moves) (steps int, done int64, err error) {
	var last int64
	var begun bool // counting begins and ends right after a call that moved something
	for i := 0; ; i++ {
		var regs unix.PtraceRegs
		if err := unix.PtraceGetRegs(thread, &regs); err != nil {
			return 0, 0, fmt.Errorf("ptrace: %w", err)
		}
		var code [2]byte
		if _, err := unix.PtracePeekText(thread, uintptr(regs.Rip), code[:]); err != nil {
			return 0, 0, fmt.Errorf("ptrace: %w", err)
		}
		if err := unix.PtraceSingleStep(thread); err != nil {
			return 0, 0, fmt.Errorf("ptrace: %w", err)
		}
		if err := await(thread); err != nil {
			return 0, 0, err
		}
		if begun {
			steps++
		}
		if code != [2]byte{0x0f, 0x05} { // the instruction syscall
			continue
		}
		number := regs.Rax
		if err := unix.PtraceGetRegs(thread, &regs); err != nil {
			return 0, 0, fmt.Errorf("ptrace: %w", err)
		}
		moved := work.by(number, int64(regs.Rax))
		if moved == 0 {
			continue
		}
		// What a call received is worked on after it, what it sends before it.
		before := last
		if last = moved; !begun {
			begun = true
			continue
		}
		if number == unix.SYS_RECVMMSG {
			moved = before
		}
		done += moved
		if i >= n {
			return steps, done, nil
		}
	}
}

// by is how many datagrams, transactions or connections a system call stands for. The
// engine has other calls: the receiver of a stream sends a sign of life twice a second.
func (m moves) by(number uint64, result int64) int64 {
	switch {
	case result <= 0:
		return 0
	case m == batches && (number == unix.SYS_SENDMMSG || number == unix.SYS_RECVMMSG):
		return result
	case m == transactions && number == unix.SYS_SENDTO:
		return 1 // each end sends once in a transaction
	}
	return 0
}

// await waits until a thread has stopped, which it does at once unless its call waits.
// Signals are not delivered while it is counted: those here interrupt calls that wait.
func await(thread int) error {
	const patience = 5 * time.Second
	var status unix.WaitStatus
	for begin := time.Now(); time.Since(begin) < patience; {
		got, err := unix.Wait4(thread, &status, unix.WALL|unix.WNOHANG, nil)
		switch {
		case err == unix.EINTR, err == nil && got == 0:
			continue
		case err != nil:
			return fmt.Errorf("wait for thread %d: %w", thread, err)
		case !status.Stopped():
			return fmt.Errorf("thread %d ended while it was counted", thread)
		}
		return nil
	}
	return fmt.Errorf("thread %d waits in a system call that does not end while the others do not run", thread)
}
