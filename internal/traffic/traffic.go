// Package traffic is the native traffic engine: raw system calls on locked
// threads, no allocation in a hot loop, the receiver's count as the result.
//
// A run has two halves. Listen opens the data port at one place; Drive runs at
// the other and connects to it. Control never goes over the data ports: the
// two halves get their Config, and give their Report, through their agents.
package traffic

import "time"

// The native tests.
const (
	TCPStream        = "tcp_stream"
	UDPStream        = "udp_stream"
	TCPRR            = "tcp_rr"
	UDPRR            = "udp_rr"
	TCPCRR           = "tcp_crr"
	LatencyUnderLoad = "latency_under_load"
)

// Config is what both halves of a run are given.
type Config struct {
	// Test is one of the native tests.
	Test string `json:"test"`
	// Token is 16 random bytes in hex; the first bytes of every data connection
	// (and of every datagram flow). A stranger that does not know it is refused
	// and counted.
	Token string `json:"token"`
	// MessageBytes is what one send hands over, or the size of a request.
	MessageBytes int `json:"message_bytes"`
	// ResponseBytes is the size of a response; 0 means as the request.
	ResponseBytes int `json:"response_bytes,omitempty"`
	// Port is what the serving half opens; 0 means a free one.
	Port uint16 `json:"port,omitempty"`
	// Streams is the number of connections or flows, 1 to 256.
	Streams int `json:"streams"`
	// BackgroundStreams is the number of TCP connections next to them that carry
	// BackgroundRate each, client to server, and are not in what is measured.
	BackgroundStreams int `json:"background_streams,omitempty"`
	// Warmup is sent and not counted; Window is measured.
	Warmup time.Duration `json:"warmup_nanoseconds"`
	Window time.Duration `json:"window_nanoseconds"`
	// Direction: "" client to server, "reverse", "bidirectional".
	Direction string `json:"direction,omitempty"`
	// RateBitsPerSecond paces a stream, all streams together; 0 is flat out.
	RateBitsPerSecond float64 `json:"rate_bits_per_second,omitempty"`
	// RatePerSecond makes an RR test an open loop, all streams together;
	// latency is then measured from the intended send time.
	RatePerSecond float64 `json:"rate_per_second,omitempty"`
	// Burst is how many transactions are under way at once on one stream.
	Burst    int  `json:"burst,omitempty"`
	UDPGSO   bool `json:"udp_gso,omitempty"`
	ZeroCopy bool `json:"zero_copy,omitempty"`
	// CPUs pins this half's threads, in turn, to these CPUs; nil leaves them to
	// Placement.
	CPUs []int `json:"cpus,omitempty"`
	// Placement has each half choose its CPUs (see ChooseCPUs); CPUsFree leaves them to
	// the scheduler.
	Placement string `json:"placement,omitempty"`
	// CongestionControl is set on the TCP sockets of both halves; "" leaves them as
	// the system has them.
	CongestionControl string `json:"congestion_control,omitempty"`
	// Sliced has the run come in slices: the driving half follows turns, and Window
	// and Warmup bound the length of one.
	Sliced bool `json:"sliced,omitempty"`
	// Mark, for tcp_crr, is 1 to 127 where the client may reach one server and then another,
	// as by a service whose endpoint changes. A serving half begins its responses with its
	// Mark. The driving half notes when the marks change, and is through when a server that
	// was asked to finish has answered. 0: one server serves the client.
	Mark byte `json:"mark,omitempty"`
	// SharedClock reports that both halves read one clock (one kernel), so that
	// one-way delay can be measured.
	SharedClock bool `json:"shared_clock,omitempty"`
}

// Report is what one half counted inside its measured window. Pointers and
// maps are nil where nothing was measured.
type Report struct {
	// WindowSeconds is the length of this half's window on its own clock.
	WindowSeconds float64 `json:"window_seconds"`
	// Bytes and Packets are payload that this half received (a receiver) in its
	// window; SentBytes and SentPackets what it handed to the kernel in it.
	Bytes       *int64 `json:"bytes,omitempty"`
	Packets     *int64 `json:"packets,omitempty"`
	SentBytes   *int64 `json:"sent_bytes,omitempty"`
	SentPackets *int64 `json:"sent_packets,omitempty"`
	// BackgroundBytes is what background streams brought in the window.
	BackgroundBytes *int64 `json:"background_bytes,omitempty"`
	// Transactions completed in the window, and lost ones (UDP).
	Transactions     *int64 `json:"transactions,omitempty"`
	TransactionsLost *int64 `json:"transactions_lost,omitempty"`
	// Datagram bookkeeping of a receiver, over those that were sent inside the
	// sender's window (each datagram says so): Arrived is how many different
	// ones came, so that the other half's SentPackets - Arrived are lost. Below
	// 8 bytes a datagram has no number, below 24 no time: what needs them is
	// then nil, and Arrived counts a duplicate as another.
	Arrived       *int64   `json:"arrived,omitempty"`
	Reordered     *int64   `json:"reordered,omitempty"`
	Duplicated    *int64   `json:"duplicated,omitempty"`
	JitterSeconds *float64 `json:"jitter_seconds,omitempty"`
	// Latency is the HDR histogram (V2 compressed, base64) of round trips in
	// nanoseconds, all streams merged; OneWay that of one-way delays.
	Latency *Histogram `json:"latency,omitempty"`
	OneWay  *Histogram `json:"one_way,omitempty"`
	// Connect is how long the first packet of each connection of tcp_crr waited for its
	// answer: from connect(2) until the connection was established.
	Connect *Histogram `json:"connect,omitempty"`
	// Switches are when another server answered than before (Config.Mark), the first of them
	// included.
	Switches []Switch `json:"switches,omitempty"`
	// SeriesBitsPerSecond is the received rate for each SeriesInterval.
	SeriesInterval      time.Duration `json:"series_interval_nanoseconds,omitempty"`
	SeriesBitsPerSecond []float64     `json:"series_bits_per_second,omitempty"`
	// TCP is TCP_INFO at the end, summed (retransmits) or averaged over streams.
	TCP *TCPInfo `json:"tcp,omitempty"`
	// Slices are what each slice of a sliced run counted, and MissedSlices how many
	// of its turns were left out, as they could not begin in time.
	Slices       []Slice `json:"slices,omitempty"`
	MissedSlices int     `json:"missed_slices,omitempty"`
	// Conditions are those in force, as read back: see ConditionCongestionControl.
	Conditions map[string]string `json:"conditions,omitempty"`
	// CPUs are those that this half's threads were seen on.
	CPUs []int `json:"cpus,omitempty"`
	// Strangers is how many connections or datagrams came without the token.
	Strangers int64 `json:"strangers"`
	// Warnings: cause and cure, one line each.
	Warnings []string `json:"warnings,omitempty"`
}

// Switch is a connection that another server answered than the one before it.
type Switch struct {
	// At is when the connection was established, on the driving half's monotonic clock.
	At int64 `json:"at_nanoseconds"`
	// Mark is that of the server that answered.
	Mark byte `json:"mark"`
}

// Histogram is an encoded HDR histogram with the exact moments that its
// buckets would round.
type Histogram struct {
	Count             int64   `json:"count"`
	HDRBase64         string  `json:"hdr_v2_base64"`
	MeanNanoseconds   float64 `json:"mean_nanoseconds"`
	StddevNanoseconds float64 `json:"stddev_nanoseconds"`
	MinNanoseconds    int64   `json:"min_nanoseconds"`
	MaxNanoseconds    int64   `json:"max_nanoseconds"`
}

// TCPInfo is what TCP_INFO said of the sending sockets at the end.
type TCPInfo struct {
	Retransmits             int64   `json:"retransmits"`
	CwndPackets             float64 `json:"cwnd_packets"`
	RTTSeconds              float64 `json:"rtt_seconds"`
	MSSBytes                float64 `json:"mss_bytes"`
	PacingRateBitsPerSecond float64 `json:"pacing_rate_bits_per_second,omitempty"`
}

// Hooks are called by a half. Each may be nil.
type Hooks struct {
	// WindowStart and WindowEnd are the edges of the measured window, so that a probe can be
	// read there.
	WindowStart, WindowEnd func()
	// Switched is called for each of the Switches that a report has, when it happens. It
	// must not wait.
	Switched func()
}
