//go:build linux

package traffic

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// restTime is how long the receiver of one stream rests, restLimit the longest
// rest where there are many.
const (
	restTime  = 100 * time.Microsecond
	restLimit = 2 * time.Millisecond
)

// restOf is how long, in nanoseconds, a receiver that has read all there was of a
// stream flat out lets more gather. One that waits inside the kernel is woken for
// each packet, by the sender, whose CPU is the one that is full
// (docs/traffic.md). Many streams rest longer, as each has less to read.
func restOf(cfg Config) int64 {
	return int64(min(restTime*time.Duration(cfg.Streams), restLimit))
}

const (
	// fullRest and emptyRest are how full a socket's buffer may become in a rest, as a
	// part of it (1/fullRest): beyond the first a rest is too long, below the other it may
	// be longer. A TCP receiver offers half of its buffer, or more, as its window.
	fullRest  = 4
	emptyRest = 16
	// restSteps is how often a rest may be halved before there is none.
	restSteps = 4
	// restlessReads is how often a receiver reads without a rest before it tries a short
	// one again.
	restlessReads = 1000
)

// rests are the rests of one receiver. In a rest nothing is read, so the bytes of a rest have
// to fit into the socket's buffer: a TCP sender would wait for its window to open, and
// datagrams would be lost. Where a buffer is small, the rests therefore become shorter until
// they take a quarter of it.
type rests struct {
	fd      int
	longest int64 // nanoseconds
	halved  int   // how often the longest was halved
	reads   int   // without a rest, since there is none
}

// length is how long the next rest is, nanoseconds; 0: there is none.
func (r *rests) length() int64 {
	if r.halved > restSteps {
		return 0
	}
	return r.longest >> r.halved
}

// rest lets more gather after a read at a time, and judges by the buffer whether that was
// too long.
func (r *rests) rest(now int64) {
	length := r.length()
	if length == 0 {
		if r.reads++; r.reads >= restlessReads {
			r.halved, r.reads = restSteps, 0
		}
		return
	}
	sleepUntil(now + length)
	if used, size, ok := receiveMemory(r.fd); ok {
		r.judge(used, size)
	}
}

// judge chooses the next rest by how much of a buffer is in use after one.
func (r *rests) judge(used, size uint32) {
	switch {
	case uint64(used)*fullRest >= uint64(size):
		r.halved++
	case uint64(used)*emptyRest <= uint64(size) && r.halved > 0:
		r.halved--
	}
}

// receiveMemory is how much of a socket's receive buffer is in use and how large it is, bytes
// of memory (SO_MEMINFO, socket(7)); false where the kernel does not say.
func receiveMemory(fd int) (used, size uint32, ok bool) {
	var info [unix.SK_MEMINFO_VARS]uint32
	length := uint32(unsafe.Sizeof(info))
	_, _, e := unix.RawSyscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_MEMINFO, uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&length)), 0)
	return info[unix.SK_MEMINFO_RMEM_ALLOC], info[unix.SK_MEMINFO_RCVBUF], e == 0 && length > unix.SK_MEMINFO_RCVBUF*4
}
