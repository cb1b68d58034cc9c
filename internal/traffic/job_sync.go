//go:build linux

package traffic

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Between two operations all ranks synchronise, so that none begins before all are
// through: a dissemination barrier whose messages carry what rank 0 decides to do next,
// and the slowest rank of the operation before. The larger of two signals goes on in each
// step, so that in the end all ranks have the largest.

// signalBytes is the size of a message of a synchronisation: a time of 8 bytes, a rank of
// 4, a phase of 1, the number of the synchronisation of 3.
const signalBytes = 16

// phase is what the next operation is for.
type phase byte

const (
	undecided phase = iota // by all ranks but 0
	warming
	measuring
	through
)

// agreed is what all ranks know after a synchronisation.
type agreed struct {
	next phase
	// slowest took took nanoseconds for the operation before.
	slowest int
	took    int64
}

// merge takes the decision and the slower rank of two; of equal ones the lower rank.
func (a *agreed) merge(b agreed) {
	a.next = max(a.next, b.next)
	if b.took > a.took || b.took == a.took && b.slowest < a.slowest {
		a.took, a.slowest = b.took, b.slowest
	}
}

// synchronise agrees with all ranks; number counts the synchronisations of a job.
func (k *rank) synchronise(a agreed, number uint32) (agreed, error) {
	n := k.cfg.Ranks
	for distance := 1; distance < n; distance *= 2 {
		to, from := (k.cfg.Rank+distance)%n, (k.cfg.Rank-distance+n)%n
		a.encode(&k.signal[0], number)
		if err := k.all(to, k.signal[0][:], true); err != nil {
			return a, err
		}
		if err := k.all(from, k.signal[1][:], false); err != nil {
			return a, err
		}
		b, theirs := decodeAgreed(&k.signal[1])
		if theirs != number&signalNumbers || b.slowest >= n {
			return a, fmt.Errorf("rank %d: rank %d is at synchronisation %d, and this one at %d", k.cfg.Rank, from, theirs, number&signalNumbers)
		}
		a.merge(b)
	}
	return a, nil
}

const signalNumbers = 1<<24 - 1

func (a agreed) encode(to *[signalBytes]byte, number uint32) {
	binary.LittleEndian.PutUint64(to[0:], uint64(a.took))
	binary.LittleEndian.PutUint32(to[8:], uint32(a.slowest))
	binary.LittleEndian.PutUint32(to[12:], uint32(a.next)<<24|number&signalNumbers)
}

func decodeAgreed(from *[signalBytes]byte) (a agreed, number uint32) {
	last := binary.LittleEndian.Uint32(from[12:])
	a = agreed{next: phase(last >> 24), slowest: int(binary.LittleEndian.Uint32(from[8:])), took: int64(binary.LittleEndian.Uint64(from[0:]))}
	return a, last & signalNumbers
}

// all sends all of some bytes to a rank, or receives them.
func (k *rank) all(peer int, p []byte, sending bool) error {
	k.moved()
	for done := 0; done < len(p); {
		var n int
		var errno unix.Errno
		what, flags := "receive from", k.waiting(1)
		if sending {
			what = "send to"
			n, errno = send(k.fds[peer], unsafe.Pointer(&p[done]), len(p)-done, unix.MSG_NOSIGNAL|flags)
		} else {
			n, errno = recv(k.fds[peer], unsafe.Pointer(&p[done]), len(p)-done, flags)
		}
		switch {
		case errno == 0 && n > 0:
			done += n
			k.moved()
		case errno == 0 || !temporary(errno):
			return k.broken(peer, what, errno)
		case k.looksAgain():
		case k.gaveUp():
			return k.stalled([]int{peer})
		}
	}
	return nil
}
