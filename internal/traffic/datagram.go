//go:build linux

package traffic

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// A datagram begins with as much of this header as it has room for, in
// little-endian order:
//
//	0  word: number << 2 | flags
//	8  when it was sent, nanoseconds of the sender's clock
//	16 the first 8 bytes of the run's token
//
// One shorter than a word has its flags (and the low bits of its number) alone.
const (
	headerBytes = 24

	flagWindow  = 1 // sent inside the sender's window
	flagControl = 2 // not data, but control (see below)
	flagBits    = 2
)

// putHeader writes as much of the header as fits. The token is put once, by
// putToken.
func putHeader(p []byte, word uint64, now int64) {
	switch {
	case len(p) >= headerBytes:
		binary.LittleEndian.PutUint64(p, word)
		binary.LittleEndian.PutUint64(p[wordBytes:], uint64(now))
	case len(p) >= wordBytes:
		binary.LittleEndian.PutUint64(p, word)
	default:
		p[0] = byte(word)
	}
}

func putToken(p []byte, token *[tokenBytes]byte) {
	if len(p) >= headerBytes {
		copy(p[2*wordBytes:headerBytes], token[:])
	}
}

// hasToken reports whether a datagram carries the run's token, as far as it has room.
func hasToken(p []byte, token uint64) bool {
	return len(p) < headerBytes || binary.LittleEndian.Uint64(p[2*wordBytes:]) == token
}

func word(p []byte) uint64 {
	if len(p) >= wordBytes {
		return binary.LittleEndian.Uint64(p)
	}
	return uint64(p[0])
}

func sentAt(p []byte) int64 { return int64(binary.LittleEndian.Uint64(p[wordBytes:])) }

// Control datagrams set a flow up and end it. They may be lost: each is sent
// again until it is answered, or until the time is over.
const (
	controlBytes = 32

	helloControl = 1 // client to server: the flow's index in roles
	ackControl   = 2 // server to client: all flows have come
	goControl    = 3 // receiver to sender: begin
	aliveControl = 4 // receiver to sender: still here
	stopControl  = 5 // receiver to sender: seen enough
	endControl   = 6 // sender to receiver: that was the last
)

type control [controlBytes]byte

func (r *run) control(kind byte, index int) control {
	var c control
	c[0] = flagControl | kind<<flagBits
	copy(c[wordBytes:], r.token[:])
	binary.LittleEndian.PutUint32(c[wordBytes+tokenBytes:], uint32(index))
	return c
}

// readControl gives the kind of a control datagram of this run; 0 for any other.
func (r *run) readControl(p []byte) (kind byte, index int) {
	if len(p) != controlBytes || p[0]&flagControl == 0 || [tokenBytes]byte(p[wordBytes:wordBytes+tokenBytes]) != r.token {
		return 0, 0
	}
	return p[0] >> flagBits, int(binary.LittleEndian.Uint32(p[wordBytes+tokenBytes:]))
}

// seen distinguishes new datagrams from duplicates and late ones, over at least the last
// seenBits numbers. It forgets 64 numbers at a time, so that the next number, which nearly
// every datagram has, costs one write.
type seen struct {
	next uint64 // one more than the highest number
	top  uint64 // the highest number / 64
	bits [seenWords]uint64
}

const (
	seenWords = 1 << 10
	seenBits  = (seenWords - 1) * 64
)

// mark takes a number. A number too far back to remember counts as late, not
// as a duplicate.
func (s *seen) mark(n uint64) (late, duplicate bool) {
	w, bit := n/64, uint64(1)<<(n%64)
	if n >= s.next {
		if w != s.top {
			s.forget(w)
		}
		s.next = n + 1
		s.bits[w%seenWords] |= bit
		return false, false
	}
	if s.top-w >= seenWords {
		return true, false
	}
	duplicate = s.bits[w%seenWords]&bit != 0
	s.bits[w%seenWords] |= bit
	return !duplicate, duplicate
}

// forget makes room for numbers up to those of word w, the new top.
func (s *seen) forget(w uint64) {
	if w-s.top >= seenWords {
		s.bits = [seenWords]uint64{}
	} else {
		for k := s.top + 1; k <= w; k++ {
			s.bits[k%seenWords] = 0
		}
	}
	s.top = w
}

// tuneUDP prepares a flow's socket: room for bursts, beyond the limit of
// ordinary users where the kernel lets us.
func tuneUDP(fd int) error {
	for _, o := range []struct{ force, plain int }{{unix.SO_RCVBUFFORCE, unix.SO_RCVBUF}, {unix.SO_SNDBUFFORCE, unix.SO_SNDBUF}} {
		if unix.SetsockoptInt(fd, unix.SOL_SOCKET, o.force, DatagramBuffer) == nil {
			continue
		}
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, o.plain, DatagramBuffer); err != nil {
			return err
		}
	}
	return timeouts(fd)
}
