//go:build linux

package traffic

import (
	"errors"
	"fmt"
	"slices"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// rank is one rank of a job while it runs: one thread, one connection to each other
// rank. It waits as MPI's ranks do on CPUs that they share: for lookFor it looks again and
// again and gives its CPU to others in between, then it sleeps.
type rank struct {
	*run
	cfg    JobConfig
	script script
	fds    []int // by rank; its own is -1
	bufs   [3][]byte
	// sent and got are how much of each transfer of the present step is through.
	sent, got []int
	polls     []unix.PollFd
	// quiet is since when nothing moves, looked when that was last looked at; 0: it moves.
	quiet, looked int64
	// waits is since when the rank looks for what moves next; 0: it does not. It sleeps
	// once that took lookFor.
	waits  int64
	sleeps bool
	// sentBytes and gotBytes are of all operations so far.
	sentBytes, gotBytes int64
	// flowEnds, of the root of incast, is when each transfer of the step was through.
	flowEnds []int64
	signal   [2][signalBytes]byte // of a synchronisation: what is sent, what came
}

func newRank(r *run, cfg JobConfig, fds []int) *rank {
	k := &rank{run: r, cfg: cfg, script: scriptOf(cfg), fds: fds}
	for i, size := range k.script.sizes {
		k.bufs[i] = make([]byte, max(size, 1))
	}
	most := 1
	for _, s := range k.script.steps {
		most = max(most, len(s.send), len(s.recv))
	}
	k.sent, k.got, k.polls = make([]int, most), make([]int, most), make([]unix.PollFd, 0, 2*most)
	if cfg.Test == Incast && cfg.Rank == 0 {
		k.flowEnds = make([]int64, most)
	}
	fillInput(cfg, k.bufs[input][:k.script.sizes[input]])
	return k
}

// operate runs the rank's part of one operation.
func (k *rank) operate() error {
	for _, p := range k.script.own {
		copy(k.bufs[output][p.to:p.to+p.n], k.bufs[input][p.from:p.from+p.n])
	}
	for i := range k.script.steps {
		s := &k.script.steps[i]
		if err := k.exchange(s); err != nil {
			return err
		}
		if s.addN > 0 {
			add(k.bufs[output][s.addOff:s.addOff+s.addN], k.bufs[scratch][:s.addN])
		}
	}
	return nil
}

// add adds 32-bit integers. Both slices begin at a multiple of 4 in their buffers, which
// the allocator aligns.
func add(to, from []byte) {
	n := len(to) / reduceBytes
	a := unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(to))), n)
	b := unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(from))), n)
	for i := range a {
		a[i] += b[i]
	}
}

// exchange moves all transfers of a step, whichever can move first.
func (k *rank) exchange(s *step) error {
	clear(k.sent)
	clear(k.got)
	left := len(s.send) + len(s.recv)
	k.moved()
	for left > 0 {
		moved := false
		flags := k.waiting(left)
		for i := range s.send {
			t := &s.send[i]
			if k.sent[i] == t.n || t.after >= 0 && k.sent[t.after] < s.send[t.after].n {
				continue
			}
			n, errno := send(k.fds[t.peer], unsafe.Pointer(&k.bufs[t.buf][t.off+k.sent[i]]), t.n-k.sent[i], unix.MSG_NOSIGNAL|flags)
			if errno != 0 {
				if !temporary(errno) {
					return k.broken(t.peer, "send to", errno)
				}
				continue
			}
			moved = true
			k.sentBytes += int64(n)
			if k.sent[i] += n; k.sent[i] == t.n {
				left--
			}
		}
		for i := range s.recv {
			t := &s.recv[i]
			if k.got[i] == t.n || t.after >= 0 && k.got[t.after] < s.recv[t.after].n {
				continue
			}
			n, errno := recv(k.fds[t.peer], unsafe.Pointer(&k.bufs[t.buf][t.off+k.got[i]]), t.n-k.got[i], flags)
			if errno != 0 || n == 0 {
				if errno == 0 || !temporary(errno) {
					return k.broken(t.peer, "receive from", errno)
				}
				continue
			}
			moved = true
			k.gotBytes += int64(n)
			if k.got[i] += n; k.got[i] == t.n {
				left--
				if k.flowEnds != nil {
					k.flowEnds[i] = nanotime()
				}
			}
		}
		if moved {
			k.moved()
			continue
		}
		if err := k.wait(s, left); err != nil {
			return err
		}
	}
	return nil
}

// wait is called when nothing of a step moved, and returns when something may.
func (k *rank) wait(s *step, left int) error {
	if k.looksAgain() {
		return nil
	}
	if left > 1 {
		k.await(s)
	}
	if k.gaveUp() {
		return k.stalled(k.unfinished(s))
	}
	return nil
}

// lookFor is how long a rank looks for what comes before it sleeps: longer than a message
// takes, also where waking a CPU takes long, and too short to matter where something is wrong.
const lookFor = int64(time.Millisecond)

// moved ends a wait: the next one begins from zero.
func (k *rank) moved() { k.quiet, k.waits, k.sleeps = 0, 0, false }

// looksAgain is asked when nothing moved. It gives the CPU to whoever else wants it, and
// reports whether the rank is to look again before it sleeps.
func (k *rank) looksAgain() bool {
	now := nanotime()
	if k.waits == 0 {
		k.waits = now
	}
	if k.sleeps = now-k.waits >= lookFor; k.sleeps {
		return false
	}
	_, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) // it cannot fail
	return true
}

// waiting are the flags of a call: the last transfer of a step of a rank that sleeps waits in
// the kernel, for pollInterval at most; others return at once.
func (k *rank) waiting(left int) int {
	if k.sleeps && left == 1 {
		return 0
	}
	return unix.MSG_DONTWAIT
}

// await waits until any transfer of a step can move, for pollInterval at most.
func (k *rank) await(s *step) {
	k.polls = k.polls[:0]
	for i, t := range s.send {
		if k.sent[i] < t.n {
			k.polls = append(k.polls, unix.PollFd{Fd: int32(k.fds[t.peer]), Events: unix.POLLOUT})
		}
	}
	for i, t := range s.recv {
		if k.got[i] < t.n {
			k.polls = append(k.polls, unix.PollFd{Fd: int32(k.fds[t.peer]), Events: unix.POLLIN})
		}
	}
	limit := unix.NsecToTimespec(int64(pollInterval))
	// An error of poll is one of the next send or receive too.
	_, _, _ = unix.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&k.polls[0])), uintptr(len(k.polls)), uintptr(unsafe.Pointer(&limit)), 0, 0, 0)
}

// gaveUp is asked when nothing moved. It reports whether that is so for too long, or the
// job was cancelled. A thread that was itself held up has not waited for anybody.
func (k *rank) gaveUp() bool {
	now := nanotime()
	last := k.looked
	k.looked = now
	if k.quiet == 0 || now-last > heldUp {
		k.quiet = now
	}
	return k.stopped.Load() || now-k.quiet > int64(idleLimit)
}

// unfinished are the ranks that the rest of a step waits for.
func (k *rank) unfinished(s *step) []int {
	var peers []int
	for i, t := range s.send {
		if k.sent[i] < t.n {
			peers = append(peers, t.peer)
		}
	}
	for i, t := range s.recv {
		if k.got[i] < t.n {
			peers = append(peers, t.peer)
		}
	}
	slices.Sort(peers)
	return slices.Compact(peers)
}

// errJobStopped is why a rank ends that was cancelled; the run has the reason.
var errJobStopped = errors.New("the job was stopped")

// stalled is the error of a rank that waited for others too long.
func (k *rank) stalled(peers []int) error {
	if k.stopped.Load() {
		return errJobStopped
	}
	e := &JobError{WaitsFor: peers, Unacknowledged: k.unacknowledged()}
	e.Reason = fmt.Sprintf("rank %d: nothing came from or went to %s for %.3g s", k.cfg.Rank, ranksInWords(peers), idleLimit.Seconds())
	return e
}

// unacknowledged are the ranks whose machine does not acknowledge what was sent to it,
// even when it is sent again: a process that is stopped still does, a cut path does not.
func (k *rank) unacknowledged() []int {
	var peers []int
	for peer, fd := range k.fds {
		if fd < 0 {
			continue
		}
		info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
		if err == nil && info.Unacked > 0 && info.Retransmits > 0 {
			peers = append(peers, peer)
		}
	}
	return peers
}

// broken is the error of a connection that ended; errno 0 is that the other end closed it.
func (k *rank) broken(peer int, what string, errno unix.Errno) error {
	switch errno {
	case 0, unix.ECONNRESET, unix.EPIPE:
		return &JobError{Reason: fmt.Sprintf("rank %d: rank %d closed the connection", k.cfg.Rank, peer), Closed: []int{peer}}
	case unix.ETIMEDOUT, unix.EHOSTUNREACH, unix.ENETUNREACH:
		return &JobError{Reason: fmt.Sprintf("rank %d: %s rank %d: %v", k.cfg.Rank, what, peer, errno), Unacknowledged: []int{peer}}
	}
	return fmt.Errorf("rank %d: %s rank %d: %w", k.cfg.Rank, what, peer, errno)
}

// ranksInWords names ranks: "rank 3", "ranks 3, 5".
func ranksInWords(peers []int) string {
	if len(peers) == 1 {
		return fmt.Sprintf("rank %d", peers[0])
	}
	text := "ranks "
	for i, peer := range peers {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprint(peer)
	}
	return text
}
