//go:build linux

package traffic

import (
	"encoding/binary"
	"unsafe"

	"golang.org/x/sys/unix"
)

// datagramBuffer holds one datagram that the shared socket received. It is reused for the
// next: strangers may send many, and the garbage collector does not run during a sample.
type datagramBuffer struct {
	buf  [2 * controlBytes]byte
	oob  [256]byte
	from unix.RawSockaddrAny
	iov  unix.Iovec
	hdr  unix.Msghdr
}

// receive reads the next datagram and returns its length, cut to the size of the buffer.
func (k *datagramBuffer) receive(fd int) (int, unix.Errno) {
	k.iov.Base = &k.buf[0]
	k.iov.SetLen(len(k.buf))
	k.hdr = unix.Msghdr{Name: (*byte)(unsafe.Pointer(&k.from)), Namelen: unix.SizeofSockaddrAny, Iov: &k.iov, Control: &k.oob[0]}
	k.hdr.SetIovlen(1)
	k.hdr.SetControllen(len(k.oob))
	n, _, errno := unix.Syscall(unix.SYS_RECVMSG, uintptr(fd), uintptr(unsafe.Pointer(&k.hdr)), 0)
	return int(n), errno
}

// sender is the address that the last datagram came from.
func (k *datagramBuffer) sender() unix.Sockaddr {
	if k.from.Addr.Family == unix.AF_INET {
		a := (*unix.RawSockaddrInet4)(unsafe.Pointer(&k.from))
		return &unix.SockaddrInet4{Port: portOf(a.Port), Addr: a.Addr}
	}
	a := (*unix.RawSockaddrInet6)(unsafe.Pointer(&k.from))
	return &unix.SockaddrInet6{Port: portOf(a.Port), ZoneId: a.Scope_id, Addr: a.Addr}
}

// portOf reads a port that is in network order.
func portOf(raw uint16) int {
	return int(binary.BigEndian.Uint16(binary.NativeEndian.AppendUint16(nil, raw)))
}

// countDropped counts the datagrams that the kernel dropped because the shared socket's
// buffer was full. The run's own go to the sockets of their flows, so these are strangers'.
// Without a number from the kernel the count stays as it is.
func (h *udpListener) countDropped() {
	var info [unix.SK_MEMINFO_VARS]uint32
	size := uint32(unsafe.Sizeof(info))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(h.fd), unix.SOL_SOCKET, unix.SO_MEMINFO, uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0)
	if errno == 0 && size == uint32(unsafe.Sizeof(info)) {
		h.r.strangers.Add(int64(info[unix.SK_MEMINFO_DROPS]))
	}
}
