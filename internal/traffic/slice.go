package traffic

import "time"

// Turn is when one slice of a run comes, on the driving half's monotonic clock.
type Turn struct {
	// At is the beginning of the lead-in, after the start of the schedule.
	At time.Duration `json:"at_nanoseconds"`
	// LeadIn is sent and not counted, Length counted.
	LeadIn time.Duration `json:"lead_in_nanoseconds"`
	Length time.Duration `json:"length_nanoseconds"`
}

// Slice is what one slice counted, all streams together. What a test does not
// count is 0.
type Slice struct {
	// Turn is the index of its turn.
	Turn int `json:"turn"`
	// Begin and End are the counted part's, after the start of the schedule.
	Begin time.Duration `json:"begin_nanoseconds"`
	End   time.Duration `json:"end_nanoseconds"`
	// Transit is the part of that time that a byte spends on its way there and
	// the acknowledgement on its way back; it is no time of the traffic.
	Transit time.Duration `json:"transit_nanoseconds,omitempty"`
	// Bytes were consumed by the server, ReverseBytes by the client.
	Bytes        int64 `json:"bytes,omitempty"`
	ReverseBytes int64 `json:"reverse_bytes,omitempty"`
	// SentBytes and SentPackets were handed to the kernel, Packets consumed.
	SentBytes   int64 `json:"sent_bytes,omitempty"`
	SentPackets int64 `json:"sent_packets,omitempty"`
	Packets     int64 `json:"packets,omitempty"`
	Reordered   int64 `json:"reordered,omitempty"`
	Duplicated  int64 `json:"duplicated,omitempty"`
	// Transactions were completed, TransactionsLost given up.
	Transactions     int64 `json:"transactions,omitempty"`
	TransactionsLost int64 `json:"transactions_lost,omitempty"`
	Retransmits      int64 `json:"retransmits,omitempty"`
	// ClientCPU and ServerCPU are the CPU time of each end's threads in the
	// counted part, with that of the kernel's threads and of the programs that
	// carry their packets where those can be read.
	ClientCPU time.Duration `json:"client_cpu_nanoseconds"`
	ServerCPU time.Duration `json:"server_cpu_nanoseconds"`
}

// Seconds is the time that the counted work took.
func (s Slice) Seconds() float64 { return (s.End - s.Begin - s.Transit).Seconds() }

// add takes what another stream counted in the same slice.
func (s *Slice) add(o Slice) {
	if s.End == 0 {
		s.Begin, s.Turn = o.Begin, o.Turn
	}
	s.Begin, s.End = min(s.Begin, o.Begin), max(s.End, o.End)
	s.Transit = max(s.Transit, o.Transit)
	s.Bytes += o.Bytes
	s.ReverseBytes += o.ReverseBytes
	s.SentBytes += o.SentBytes
	s.SentPackets += o.SentPackets
	s.Packets += o.Packets
	s.Reordered += o.Reordered
	s.Duplicated += o.Duplicated
	s.Transactions += o.Transactions
	s.TransactionsLost += o.TransactionsLost
	s.Retransmits += o.Retransmits
	s.ClientCPU += o.ClientCPU
	s.ServerCPU += o.ServerCPU
}

// Sliceable reports whether a run can come in slices. Paced traffic, background
// streams and latency under load need a steady state that is longer than a slice.
func (c Config) Sliceable() bool {
	if c.RateBitsPerSecond > 0 || c.RatePerSecond > 0 || c.BackgroundStreams > 0 || c.ZeroCopy || c.Mark != 0 {
		return false
	}
	switch c.Test {
	case TCPStream, TCPRR, UDPRR, TCPCRR:
		return c.Test != UDPRR || c.burst() == 1
	case UDPStream:
		return c.Direction == Forward
	}
	return false
}
