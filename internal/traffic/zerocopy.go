//go:build linux

package traffic

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// zeroCopy sends with MSG_ZEROCOPY and takes the kernel's completions
// (Documentation/networking/msg_zerocopy.rst). The payload never changes, so a
// buffer may be sent again before its completion; completions are read to free
// the socket's option memory and to learn whether the kernel copied after all.
type zeroCopy struct {
	fd            int
	sends         int64
	done, copied  int64
	msg           unix.Msghdr
	control       [128]byte
	sinceLastReap int
}

const reapEvery = 32

func newZeroCopy(fd int) (*zeroCopy, error) {
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ZEROCOPY, 1); err != nil {
		return nil, fmt.Errorf("zero_copy: SO_ZEROCOPY: %w: leave zero_copy out on this kernel", err)
	}
	return &zeroCopy{fd: fd}, nil
}

func (z *zeroCopy) send(p unsafe.Pointer, n int) (int, unix.Errno) {
	sent, errno := send(z.fd, p, n, unix.MSG_NOSIGNAL|unix.MSG_ZEROCOPY)
	if errno == 0 {
		z.sends++
	}
	if z.sinceLastReap++; z.sinceLastReap >= reapEvery || errno == unix.ENOBUFS {
		z.sinceLastReap = 0
		z.reap()
	}
	if errno == unix.ENOBUFS {
		// The option memory is full until completions come.
		sleepUntil(nanotime() + paceQuantum)
		return 0, unix.EAGAIN
	}
	return sent, errno
}

// reap reads the completions that have arrived.
func (z *zeroCopy) reap() {
	for {
		z.msg.Control = &z.control[0]
		z.msg.SetControllen(len(z.control))
		_, _, errno := unix.RawSyscall6(unix.SYS_RECVMSG, uintptr(z.fd), uintptr(unsafe.Pointer(&z.msg)), unix.MSG_ERRQUEUE|unix.MSG_DONTWAIT, 0, 0, 0)
		if errno != 0 || int(z.msg.Controllen) < unix.SizeofCmsghdr+int(unsafe.Sizeof(unix.SockExtendedErr{})) {
			return
		}
		ext := (*unix.SockExtendedErr)(unsafe.Pointer(&z.control[unix.SizeofCmsghdr]))
		if ext.Origin != unix.SO_EE_ORIGIN_ZEROCOPY {
			continue
		}
		n := int64(ext.Data-ext.Info) + 1
		z.done += n
		if ext.Code&unix.SO_EE_CODE_ZEROCOPY_COPIED != 0 {
			z.copied += n
		}
	}
}

func (z *zeroCopy) report(t *tally) {
	if z.copied > 0 {
		t.warn("zero_copy: the kernel copied all the same (as it must on loopback and into another namespace): compare without zero_copy")
	}
}
