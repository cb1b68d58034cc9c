package netns

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// iptSoGetInfo is IPT_SO_GET_INFO of linux/netfilter_ipv4/ip_tables.h.
const iptSoGetInfo = 64

// probeIPTablesInfo asks for the legacy filter table's head, struct
// ipt_getinfo: 32 bytes of name and 13 numbers.
func probeIPTablesInfo(fd int) error {
	var info [84]byte
	copy(info[:], "filter")
	size := uint32(len(info))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.IPPROTO_IP, iptSoGetInfo,
		uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 {
		return errno
	}
	return nil
}
