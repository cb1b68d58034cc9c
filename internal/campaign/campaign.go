// Package campaign is the YAML that a person writes: strictly parsed, every
// error with its line and column.
package campaign

import "time"

// Campaign is one campaign file.
type Campaign struct {
	Name      string     `json:"name"`
	Testbed   string     `json:"testbed"`
	Networks  []Network  `json:"networks"`
	Links     []string   `json:"links"`
	Profiles  []string   `json:"profiles"`
	Paths     []Path     `json:"paths"`
	Workloads []Workload `json:"workloads"`
	MTU       []int      `json:"mtu"`
	Families  []string   `json:"families"`
	Sampling  Sampling   `json:"sampling"`
}

// Network is a network's name, or a mapping with a conflist of the user's own.
// A conflist may differ per node: Conflists[i] is that of node i+1.
type Network struct {
	Name      string   `json:"name"`
	Conflist  string   `json:"conflist,omitempty"`
	Conflists []string `json:"conflists,omitempty"`
}

// Path is from where to where.
type Path struct {
	From      string `json:"from"`      // pod, host
	To        string `json:"to"`        // pod, host
	Placement string `json:"placement"` // intra-host, inter-host
}

// Workload is a traffic and the values of its factors; every combination is a cell.
type Workload struct {
	Name              string    `json:"name"`
	Test              []string  `json:"test,omitempty"`
	Protocol          []string  `json:"protocol,omitempty"`
	MessageBytes      []int     `json:"message_bytes,omitempty"`
	ResponseBytes     []int     `json:"response_bytes,omitempty"`
	Streams           []int     `json:"streams,omitempty"`
	Direction         []string  `json:"direction,omitempty"`
	RateBitsPerSecond []float64 `json:"rate_bits_per_second,omitempty"`
	RatePerSecond     []float64 `json:"rate_per_second,omitempty"`
	Burst             []int     `json:"burst,omitempty"`
	UDPGSO            []bool    `json:"udp_gso,omitempty"`
	ZeroCopy          []bool    `json:"zero_copy,omitempty"`
	PinCPUs           []bool    `json:"pin_cpus,omitempty"`
}

// Sampling is how much is measured.
type Sampling struct {
	Seconds                 float64 `json:"seconds"`
	WarmupSeconds           float64 `json:"warmup_seconds"`
	MinBlocks               int     `json:"min_blocks"`
	MaxBlocks               int     `json:"max_blocks"`
	MaxSeconds              float64 `json:"max_seconds,omitempty"` // time budget of the whole; 0: none
	TargetRelativeHalfwidth float64 `json:"target_relative_halfwidth"`
	Confidence              float64 `json:"confidence"`
	Retries                 int     `json:"retries"`
}

// Window and Warmup are the lengths of a sample as durations.
func (s Sampling) Window() time.Duration { return time.Duration(s.Seconds * float64(time.Second)) }

// Warmup is what is sent before the window and not counted.
func (s Sampling) Warmup() time.Duration {
	return time.Duration(s.WarmupSeconds * float64(time.Second))
}
