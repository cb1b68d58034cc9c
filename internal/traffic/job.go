package traffic

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// The tests with many ends: one operation has a part for each rank of a job.
const (
	AllToAll     = "all_to_all"
	AllGather    = "all_gather"
	AllReduce    = "all_reduce"
	Barrier      = "barrier"
	Incast       = "incast"
	Outcast      = "outcast"
	HaloExchange = "halo_exchange"
)

// The algorithms of operations (Thakur, Rabenseifner and Gropp, Optimization of
// Collective Communication Operations in MPICH, IJHPCA 19(1), 2005).
const (
	// Pairwise has each rank exchange with one other rank in each step.
	Pairwise = "pairwise"
	// Linear has each rank exchange with all others in one step, as MPI's libraries do with
	// short messages.
	Linear = "linear"
	// Ring has each rank send to the next one and receive from the one before.
	Ring = "ring"
	// RecursiveDoubling doubles the distance of partners in each step; it needs a power
	// of two of ranks.
	RecursiveDoubling = "recursive_doubling"
	// Dissemination is that of barriers for any number of ranks (Hensgen, Finkel and
	// Manber 1988).
	Dissemination = "dissemination"
)

const (
	// MaxRanks is the most that a job may have.
	MaxRanks = 256
	// maxJobBytes bounds what one rank holds for one operation, bytes.
	maxJobBytes = 64 << 20
	// reduceBytes is the size of an element of all_reduce, a 32-bit integer.
	reduceBytes = 4
)

// JobAlgorithms are the algorithms of a test with many ends, the default first; none
// where there is one way to do it. ok is false for other tests.
func JobAlgorithms(test string) (algorithms []string, ok bool) {
	switch test {
	case AllToAll:
		return []string{Pairwise, Linear}, true
	case AllGather, AllReduce:
		return []string{Ring, RecursiveDoubling}, true
	case Barrier:
		return []string{Dissemination, RecursiveDoubling}, true
	case Incast, Outcast, HaloExchange:
		return nil, true
	}
	return nil, false
}

// JobConfig is what one rank of a job is given.
type JobConfig struct {
	// Test is one of the tests with many ends, Algorithm how it is done: one of
	// JobAlgorithms, "" where that has none.
	Test      string `json:"test"`
	Algorithm string `json:"algorithm,omitempty"`
	// Token is as in Config: every connection between ranks begins with it.
	Token string `json:"token"`
	// Rank counts from 0 to Ranks - 1.
	Rank  int `json:"rank"`
	Ranks int `json:"ranks"`
	// MessageBytes is what a rank has for each other rank (all_to_all), for all
	// (all_gather), what all add up (all_reduce), the size of a flow (incast, outcast) or
	// of a halo (halo_exchange); 0 for a barrier.
	MessageBytes int `json:"message_bytes,omitempty"`
	// Warmup is operations that are not counted; Window is measured.
	Warmup time.Duration `json:"warmup_nanoseconds"`
	Window time.Duration `json:"window_nanoseconds"`
	// Placement chooses the rank's CPU, and LocalRank is its place among the ranks of
	// its machine, from 0: see chooseRankCPU.
	Placement string `json:"placement,omitempty"`
	LocalRank int    `json:"local_rank"`
	// CongestionControl is as in Config.
	CongestionControl string `json:"congestion_control,omitempty"`
}

// JobReport is what one rank counted in the measured operations.
type JobReport struct {
	// Operations is the number of operations; all ranks count the same.
	Operations int64 `json:"operations"`
	// WindowSeconds is the time from the beginning of the first measured operation to the
	// end of the last, with the synchronisation between them.
	WindowSeconds float64 `json:"window_seconds"`
	// Own has the times of the rank's part of each operation. It is nil for ranks whose
	// part has no end that they see: senders of incast, the root of outcast.
	Own *Histogram `json:"own,omitempty"`
	// Slowest, of rank 0, has the time of the slowest rank of each operation, and
	// SlowestIn in how many each rank was that one.
	Slowest   *Histogram `json:"slowest,omitempty"`
	SlowestIn []int64    `json:"slowest_in,omitempty"`
	// Flows, of the root of incast, has the completion times of each rank's flow; the
	// root's own is nil.
	Flows []*Histogram `json:"flows,omitempty"`
	// SentBytes and ReceivedBytes are payload of the measured operations, without the
	// synchronisation between them.
	SentBytes     int64 `json:"sent_bytes"`
	ReceivedBytes int64 `json:"received_bytes"`
	// CPUs are those that the rank's thread was seen on, AllowedCPUs how many it may use.
	CPUs        []int `json:"cpus,omitempty"`
	AllowedCPUs int   `json:"allowed_cpus"`
	// Conditions and Strangers are as in Report.
	Conditions map[string]string `json:"conditions,omitempty"`
	Strangers  int64             `json:"strangers"`
}

// JobError is why a rank could not go on, in a form that shows which other rank is the
// cause. The lists are of ranks.
type JobError struct {
	Reason string `json:"reason"`
	// WaitsFor are those that it waited for, Closed those that closed their connection,
	// Unacknowledged those whose machine no longer acknowledges what was sent.
	WaitsFor       []int `json:"waits_for,omitempty"`
	Closed         []int `json:"closed,omitempty"`
	Unacknowledged []int `json:"unacknowledged,omitempty"`
}

// Error is the reason.
func (e *JobError) Error() string { return e.Reason }

// Validate returns an error that says what cannot be run, and what could instead.
func (c JobConfig) Validate() error {
	algorithms, known := JobAlgorithms(c.Test)
	if !known {
		return fmt.Errorf("unknown test %q", c.Test)
	}
	if _, err := (Config{Token: c.Token}).token(); err != nil {
		return err
	}
	switch {
	case c.Ranks < 2 || c.Ranks > MaxRanks:
		return fmt.Errorf("%s: %d ranks: 2 to %d are possible", c.Test, c.Ranks, MaxRanks)
	case c.Rank < 0 || c.Rank >= c.Ranks || c.LocalRank < 0:
		return fmt.Errorf("rank %d of %d", c.Rank, c.Ranks)
	case c.Window <= 0 || c.Warmup < 0:
		return fmt.Errorf("a window of %v after %v: it must be longer than nothing", c.Window, c.Warmup)
	}
	if err := c.validateMessage(); err != nil {
		return err
	}
	switch {
	case len(algorithms) == 0 && c.Algorithm != "":
		return fmt.Errorf("%s takes no algorithm", c.Test)
	case len(algorithms) > 0 && !slices.Contains(algorithms, c.Algorithm):
		return fmt.Errorf("%s has no algorithm %q (known: %s)", c.Test, c.Algorithm, strings.Join(algorithms, ", "))
	case c.Algorithm == RecursiveDoubling && c.Ranks&(c.Ranks-1) != 0:
		return fmt.Errorf("%s by %s requires a power of two of ranks (2, 4, 8 …), found %d: choose %s", c.Test, c.Algorithm, c.Ranks, algorithms[0])
	}
	return nil
}

func (c JobConfig) validateMessage() error {
	switch {
	case c.Test == Barrier && c.MessageBytes != 0:
		return errors.New("a barrier has no messages: leave message_bytes out")
	case c.Test == Barrier:
		return nil
	case c.MessageBytes < 1 || c.MessageBytes > maxMessage:
		return fmt.Errorf("%s: a message of %d bytes: 1 to %d are possible", c.Test, c.MessageBytes, maxMessage)
	case c.MessageBytes*c.Ranks > maxJobBytes:
		return fmt.Errorf("%s: %d bytes for each of %d ranks: at most %d bytes together are possible", c.Test, c.MessageBytes, c.Ranks, maxJobBytes)
	case c.Test == AllReduce && c.MessageBytes%reduceBytes != 0:
		return fmt.Errorf("all_reduce adds 32-bit integers: message_bytes must be a multiple of %d, found %d", reduceBytes, c.MessageBytes)
	}
	return nil
}

// chooseRankCPU chooses the CPU of a rank among those that this process may use: for
// CPUsSame one for all ranks of a machine, for CPUsApart each its own, in turn from the
// last one, so that ranks share CPUs where they are more than these. nil leaves the rank
// to the scheduler.
func chooseRankCPU(placement string, local int, allowed []int) ([]int, error) {
	last := len(allowed) - 1
	switch {
	case placement == CPUsFree:
		return nil, nil
	case placement == CPUsSame:
		return []int{allowed[last]}, nil
	case placement == CPUsApart:
		return []int{allowed[last-local%len(allowed)]}, nil
	}
	return nil, fmt.Errorf("unknown placement %q (known: %s, %s, or none for the scheduler's choice)", placement, CPUsSame, CPUsApart)
}
