package result

import "fmt"

// Job is what each rank of a sample with many ends measured.
type Job struct {
	// SlowestRank was the slowest in most of the operations.
	SlowestRank int `json:"slowest_rank"`
	// Operation has the time of the slowest rank of each operation.
	Operation Histogram `json:"operation"`
	// Flows has the completion times of all flows of incast and outcast.
	Flows *Histogram `json:"flows,omitempty"`
	// Ranks are all of them, in their order.
	Ranks []Rank `json:"ranks"`
}

// Rank is one rank of a job.
type Rank struct {
	// Rank counts from 0.
	Rank int `json:"rank"`
	// Place and Node are where it ran, CPUs those that its thread was seen on.
	Place string `json:"place"`
	Node  string `json:"node"`
	CPUs  []int  `json:"cpus,omitempty"`
	// Times are those of its own part of an operation, by the names of unit.Metrics;
	// absent where its part has no end that it sees.
	Times map[string]float64 `json:"times,omitempty"`
	// Histogram is their distribution.
	Histogram *Histogram `json:"histogram,omitempty"`
	// SlowestIn is the number of operations in which it was the slowest rank.
	SlowestIn int64 `json:"slowest_in"`
	// SentBytes and ReceivedBytes are payload of the measured operations.
	SentBytes     int64 `json:"sent_bytes"`
	ReceivedBytes int64 `json:"received_bytes"`
	// Conditions are those in force, as in Sample.
	Conditions map[string]string `json:"conditions,omitempty"`
}

// validate returns an error for a job that cannot be.
func (j *Job) validate() error {
	if len(j.Ranks) < 2 || j.SlowestRank < 0 || j.SlowestRank >= len(j.Ranks) {
		return fmt.Errorf("job: rank %d is the slowest of %d", j.SlowestRank, len(j.Ranks))
	}
	for i, r := range j.Ranks {
		if r.Rank != i || r.SlowestIn < 0 || r.SentBytes < 0 || r.ReceivedBytes < 0 {
			return fmt.Errorf("job: rank %d at place %d, or a count below 0", r.Rank, i)
		}
		for name, v := range r.Times {
			if !(v >= 0 && v <= maxSeconds) {
				return fmt.Errorf("job: %s of rank %d is %v", name, i, v)
			}
		}
	}
	return nil
}

// maxSeconds is longer than any operation: a year.
const maxSeconds = 366 * 24 * 3600

// HasManyEnds reports whether a cell's workload has ranks in place of two ends.
func (c Cell) HasManyEnds() bool { return c.Ranks > 0 }
