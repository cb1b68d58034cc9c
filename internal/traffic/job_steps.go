//go:build linux

package traffic

// buffer is one of a rank's three: what it has, what it gets, and room for what is to be
// added to that.
type buffer uint8

const (
	input buffer = iota
	output
	scratch
)

// transfer is a part of a step: bytes of a buffer that go to another rank, or come from it.
type transfer struct {
	peer   int
	buf    buffer
	off, n int
	// after is an earlier transfer of the same list with the same peer, as bytes of one
	// connection come in order; -1: there is none.
	after int
}

// step is what a rank sends and receives at the same time. Afterwards the first addN
// bytes of scratch are added to output from addOff on, as 32-bit integers.
type step struct {
	send, recv   []transfer
	addOff, addN int
}

// part is bytes that a rank has already: they go from its input to its output.
type part struct{ from, to, n int }

// script is one rank's part of one operation.
type script struct {
	sizes [3]int // of the buffers, bytes
	own   []part
	steps []step
}

// scriptOf is that of a rank. cfg is valid.
func scriptOf(cfg JobConfig) script {
	s := script{}
	m, n := cfg.MessageBytes, cfg.Ranks
	switch cfg.Test {
	case AllToAll:
		s.sizes = [3]int{m * n, m * n, 0}
		s.own = []part{{cfg.Rank * m, cfg.Rank * m, m}}
		if cfg.Algorithm == Linear {
			s.linear(cfg.Rank, n, m)
		} else {
			s.pairwise(cfg.Rank, n, m)
		}
	case AllGather:
		s.sizes = [3]int{m, m * n, 0}
		s.own = []part{{0, cfg.Rank * m, m}}
		if cfg.Algorithm == Ring {
			s.gatherRing(cfg.Rank, n, func(i int) (off, size int) { return i * m, m }, 0)
		} else {
			s.gatherDoubling(cfg.Rank, n, m)
		}
	case AllReduce:
		s.sizes = [3]int{m, m, m}
		s.own = []part{{0, 0, m}}
		if cfg.Algorithm == Ring {
			s.reduceRing(cfg.Rank, n, m)
		} else {
			s.reduceDoubling(cfg.Rank, n, m)
		}
	case Barrier:
		s.sizes = [3]int{1, 1, 0}
		s.barrier(cfg.Rank, n, cfg.Algorithm == RecursiveDoubling)
	case Incast, Outcast:
		s.sizes = [3]int{m * n, m * n, 0}
		s.fan(cfg.Rank, n, m, cfg.Test == Incast)
	case HaloExchange:
		s.sizes = [3]int{haloSides * m, haloSides * m, 0}
		s.halo(cfg.Rank, n, m)
	}
	for i := range s.steps {
		inOrder(s.steps[i].send)
		inOrder(s.steps[i].recv)
	}
	return s
}

// inOrder notes which transfers wait for an earlier one with the same peer.
func inOrder(list []transfer) {
	last := map[int]int{}
	for i := range list {
		list[i].after = -1
		if at, seen := last[list[i].peer]; seen {
			list[i].after = at
		}
		last[list[i].peer] = i
	}
}

// exchange adds a step of one transfer each way; transfers of no bytes are left out.
func (s *script) exchange(send, recv transfer) *step {
	st := step{}
	if send.n > 0 {
		st.send = []transfer{send}
	}
	if recv.n > 0 {
		st.recv = []transfer{recv}
	}
	s.steps = append(s.steps, st)
	return &s.steps[len(s.steps)-1]
}

// pairwise is all_to_all in n-1 steps: in step k each rank sends to the one k after it
// and receives from the one k before it.
func (s *script) pairwise(rank, n, m int) {
	for k := 1; k < n; k++ {
		to, from := (rank+k)%n, (rank-k+n)%n
		s.exchange(transfer{peer: to, buf: input, off: to * m, n: m}, transfer{peer: from, buf: output, off: from * m, n: m})
	}
}

// linear is all_to_all in one step: each rank sends to all others, beginning with the one
// after it, and receives from all.
func (s *script) linear(rank, n, m int) {
	st := step{}
	for k := 1; k < n; k++ {
		to, from := (rank+k)%n, (rank-k+n)%n
		st.send = append(st.send, transfer{peer: to, buf: input, off: to * m, n: m})
		st.recv = append(st.recv, transfer{peer: from, buf: output, off: from * m, n: m})
	}
	s.steps = append(s.steps, st)
}

// gatherRing passes blocks of the output round the ring in n-1 steps. A rank begins with
// the block of its own number plus first.
func (s *script) gatherRing(rank, n int, block func(int) (off, size int), first int) {
	right, left := (rank+1)%n, (rank-1+n)%n
	for k := range n - 1 {
		sendOff, sendN := block((rank + first - k + 2*n) % n)
		recvOff, recvN := block((rank + first - k - 1 + 2*n) % n)
		s.exchange(transfer{peer: right, buf: output, off: sendOff, n: sendN}, transfer{peer: left, buf: output, off: recvOff, n: recvN})
	}
}

// gatherDoubling is all_gather in log2(n) steps: partners exchange all that they have.
func (s *script) gatherDoubling(rank, n, m int) {
	for mask := 1; mask < n; mask *= 2 {
		peer := rank ^ mask
		mine, theirs := rank/mask*mask, peer/mask*mask
		s.exchange(transfer{peer: peer, buf: output, off: mine * m, n: mask * m}, transfer{peer: peer, buf: output, off: theirs * m, n: mask * m})
	}
}

// reduceRing is all_reduce in 2(n-1) steps: each rank first gets the sum of one of n
// chunks (reduce-scatter), then all chunks go round the ring.
func (s *script) reduceRing(rank, n, m int) {
	elements := m / reduceBytes
	chunk := func(i int) (off, size int) {
		begin, end := elements*i/n, elements*(i+1)/n
		return begin * reduceBytes, (end - begin) * reduceBytes
	}
	right, left := (rank+1)%n, (rank-1+n)%n
	for k := range n - 1 {
		sendOff, sendN := chunk((rank - k + n) % n)
		recvOff, recvN := chunk((rank - k - 1 + n) % n)
		st := s.exchange(transfer{peer: right, buf: output, off: sendOff, n: sendN}, transfer{peer: left, buf: scratch, n: recvN})
		st.addOff, st.addN = recvOff, recvN
	}
	s.gatherRing(rank, n, chunk, 1)
}

// reduceDoubling is all_reduce in log2(n) steps: partners exchange their sums.
func (s *script) reduceDoubling(rank, n, m int) {
	for mask := 1; mask < n; mask *= 2 {
		peer := rank ^ mask
		st := s.exchange(transfer{peer: peer, buf: output, n: m}, transfer{peer: peer, buf: scratch, n: m})
		st.addN = m
	}
}

// barrier sends one byte in each of log2(n) steps, rounded up: nobody is through before
// all have begun.
func (s *script) barrier(rank, n int, doubling bool) {
	for distance := 1; distance < n; distance *= 2 {
		to, from := (rank+distance)%n, (rank-distance+n)%n
		if doubling {
			to, from = rank^distance, rank^distance
		}
		s.exchange(transfer{peer: to, buf: input, n: 1}, transfer{peer: from, buf: output, n: 1})
	}
}

// fan is one step between rank 0, the root, and all others: to the root, or from it.
func (s *script) fan(rank, n, m int, toRoot bool) {
	st := step{}
	if rank > 0 {
		if toRoot {
			st.send = []transfer{{peer: 0, buf: input, off: rank * m, n: m}}
		} else {
			st.recv = []transfer{{peer: 0, buf: output, off: rank * m, n: m}}
		}
		s.steps = append(s.steps, st)
		return
	}
	for peer := 1; peer < n; peer++ {
		if toRoot {
			st.recv = append(st.recv, transfer{peer: peer, buf: output, off: peer * m, n: m})
		} else {
			st.send = append(st.send, transfer{peer: peer, buf: input, off: peer * m, n: m})
		}
	}
	s.steps = append(s.steps, st)
}

// haloSides are north, south, west and east; the opposite of a side is its number with
// the lowest bit changed.
const haloSides = 4

// halo is one step with the four neighbours in a grid whose edges are joined. A side on
// which a rank is its own neighbour is copied.
func (s *script) halo(rank, n, m int) {
	st := step{}
	sides := neighbours(rank, n)
	for side, peer := range sides {
		if peer == rank {
			s.own = append(s.own, part{(side ^ 1) * m, side * m, m})
			continue
		}
		st.send = append(st.send, transfer{peer: peer, buf: input, off: side * m, n: m})
	}
	// In the order in which neighbours send: what comes from a side was sent towards the
	// opposite one.
	for sent := range sides {
		side := sent ^ 1
		if sides[side] != rank {
			st.recv = append(st.recv, transfer{peer: sides[side], buf: output, off: side * m, n: m})
		}
	}
	s.steps = append(s.steps, st)
}

// JobGrid is the grid of halo_exchange: as near to a square as the number of ranks
// allows.
func JobGrid(ranks int) (rows, columns int) {
	rows = 1
	for r := 1; r*r <= ranks; r++ {
		if ranks%r == 0 {
			rows = r
		}
	}
	return rows, ranks / rows
}

func neighbours(rank, n int) [haloSides]int {
	rows, columns := JobGrid(n)
	row, column := rank/columns, rank%columns
	at := func(r, c int) int { return (r+rows)%rows*columns + (c+columns)%columns }
	return [haloSides]int{at(row-1, column), at(row+1, column), at(row, column-1), at(row, column+1)}
}

// JobSentBytes is what a rank sends in one operation by the algorithm's definition,
// payload bytes.
func JobSentBytes(cfg JobConfig) int64 {
	var sum int64
	for _, st := range scriptOf(cfg).steps {
		for _, t := range st.send {
			sum += int64(t.n)
		}
	}
	return sum
}
