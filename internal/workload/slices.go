package workload

import (
	"errors"
	"fmt"
	"time"

	"github.com/cnibench/cnibench/internal/traffic"
)

// parseSlices adds up what the slices of a sample counted: its rates are all of the
// work over all of the time.
func (n native) parseSlices(p Params, server, client traffic.Report) (Measurement, error) {
	cfg := n.config(p, 0)
	m := parser{cfg: cfg, server: server, client: client, m: Measurement{Metrics: map[string]float64{}}}
	if len(client.Slices) == 0 {
		return Measurement{}, errors.New("no slice was left: each began too late, or shared its time with another cell's")
	}
	s := sumOf(client.Slices)
	m.m.MeasuredSeconds = s.seconds
	if s.seconds <= 0 {
		return Measurement{}, errors.New("the slices took no time: their counts cannot be right")
	}
	var err error
	if cfg.Test == traffic.TCPStream || cfg.Test == traffic.UDPStream {
		err = m.slicedStream(s)
	} else {
		err = m.slicedRoundTrips(s)
	}
	if err == nil {
		err = m.strangers(m.arrivedInSlices(s))
	}
	if err != nil {
		return Measurement{}, err
	}
	m.set("client_cpu_seconds", s.ClientCPU.Seconds())
	m.set("server_cpu_seconds", s.ServerCPU.Seconds())
	for _, slice := range client.Slices {
		rate := float64(slice.Transactions)
		if cfg.Test == traffic.TCPStream || cfg.Test == traffic.UDPStream {
			rate = 8 * float64(slice.Bytes)
		}
		m.m.SliceRates = append(m.m.SliceRates, rate/slice.Seconds())
	}
	m.end(Output{}, Output{})
	return m.m, nil
}

// sliceSum is what all slices counted together.
type sliceSum struct {
	traffic.Slice
	seconds float64
}

func sumOf(slices []traffic.Slice) sliceSum {
	var sum sliceSum
	for _, s := range slices {
		sum.seconds += s.Seconds()
		sum.Bytes += s.Bytes
		sum.ReverseBytes += s.ReverseBytes
		sum.SentBytes += s.SentBytes
		sum.SentPackets += s.SentPackets
		sum.Packets += s.Packets
		sum.Reordered += s.Reordered
		sum.Duplicated += s.Duplicated
		sum.Transactions += s.Transactions
		sum.TransactionsLost += s.TransactionsLost
		sum.Retransmits += s.Retransmits
		sum.ClientCPU += s.ClientCPU
		sum.ServerCPU += s.ServerCPU
	}
	return sum
}

// slicedStream takes what a stream has.
func (p *parser) slicedStream(s sliceSum) error {
	if s.Bytes == 0 {
		return errors.New("nothing was received in any slice")
	}
	p.set("throughput_bits_per_second", 8*float64(s.Bytes)/s.seconds)
	p.set("sent_throughput_bits_per_second", 8*float64(s.SentBytes)/s.seconds)
	if p.cfg.Direction == traffic.Bidirectional {
		p.set("reverse_throughput_bits_per_second", 8*float64(s.ReverseBytes)/s.seconds)
	}
	if p.cfg.Test == traffic.TCPStream {
		p.set("retransmits", float64(s.Retransmits))
		if t := p.client.TCP; t != nil {
			p.set("tcp_cwnd_packets", t.CwndPackets)
			p.set("tcp_rtt_seconds", t.RTTSeconds)
			p.set("tcp_mss_bytes", t.MSSBytes)
			if t.PacingRateBitsPerSecond > 0 {
				p.set("tcp_pacing_rate_bits_per_second", t.PacingRateBitsPerSecond)
			}
		}
		return nil
	}
	return p.slicedDatagrams(s)
}

func (p *parser) slicedDatagrams(s sliceSum) error {
	sent, received := float64(s.SentPackets), float64(s.Packets)
	p.set("packets_per_second", received/s.seconds)
	p.set("sent_packets_per_second", sent/s.seconds)
	p.set("packets_sent", sent)
	p.set("packets_received", received)
	different := received - float64(s.Duplicated)
	switch {
	case different > sent && p.cfg.MessageBytes >= minNumbered:
		return fmt.Errorf("%.0f different datagrams arrived of %.0f that were sent: the counts cannot be right", different, sent)
	case different > sent:
		p.warn("more datagrams arrived than were sent: the path duplicates, and these are too short to tell; use message_bytes of 8 or more")
	default:
		p.set("packets_lost", sent-different)
		p.set("loss_ratio", (sent-different)/sent)
	}
	if p.cfg.MessageBytes >= minNumbered {
		p.set("packets_reordered", float64(s.Reordered))
		p.set("packets_duplicated", float64(s.Duplicated))
	}
	if r := p.server; r.JitterSeconds != nil {
		p.set("jitter_seconds", *r.JitterSeconds)
	}
	if o := p.server.OneWay; o != nil {
		p.set("one_way_delay_mean_seconds", o.MeanNanoseconds/1e9)
		p.set("one_way_delay_min_seconds", float64(o.MinNanoseconds)/1e9)
		p.set("one_way_delay_max_seconds", float64(o.MaxNanoseconds)/1e9)
	}
	return nil
}

// minNumbered is the least datagram that has room for its number, bytes.
const minNumbered = 8

// slicedRoundTrips takes what round trips have.
func (p *parser) slicedRoundTrips(s sliceSum) error {
	if s.Transactions == 0 || p.client.Latency == nil {
		return errors.New("no round trip was over in any slice")
	}
	n, rate := float64(s.Transactions), float64(s.Transactions)/s.seconds
	p.set("transactions", n)
	p.set("transactions_per_second", rate)
	p.set("latency_mean_seconds", p.client.Latency.MeanNanoseconds/1e9)
	p.set("latency_stddev_seconds", p.client.Latency.StddevNanoseconds/1e9)
	p.set("latency_min_seconds", float64(p.client.Latency.MinNanoseconds)/1e9)
	p.set("latency_max_seconds", float64(p.client.Latency.MaxNanoseconds)/1e9)
	if p.cfg.Test == traffic.UDPRR {
		p.set("transactions_lost", float64(s.TransactionsLost))
	}
	return errors.Join(p.percentiles(p.client.Latency), p.firstPackets(p.client.Connect))
}

// SliceOf is the length of one slice and its lead-in for a cell whose connections
// were opened in a time, where a campaign asks for length. Both are long compared with a
// round trip: a lead-in opens the window of TCP, and a slice is much longer than
// the drain at its end. longer is for traffic whose first milliseconds are not what follows. Where
// a link shapes traffic, its bucket fills while nothing is sent, and what it then lets through at
// once must be small compared with the slice.
func SliceOf(length, open time.Duration, longer bool) (leadIn, slice time.Duration) {
	leadIn, slice = length/10, length
	if longer {
		slice *= timesLonger
	}
	if least := roundTripsInSlice * open / opensRoundTrips; slice < least {
		slice = least
	}
	return max(leadIn, slice/20), slice
}

// WarmupOf is how long the first slice of a sample leads in: a new connection of a
// stream has to open its congestion window before it is what it will be.
func WarmupOf(test string, leadIn time.Duration) time.Duration {
	if test == traffic.TCPStream {
		return max(leadIn, streamWarmup)
	}
	return leadIn
}

const (
	// streamWarmup is what a stream of a lab took to become steady, and half as much
	// again.
	streamWarmup = 100 * time.Millisecond
	// timesLonger is how many times as long a longer slice is. A bucket of 1 ms is then
	// less than 1 % of a slice of 5 × 20 ms.
	timesLonger = 5
	// roundTripsInSlice is how many round trips a slice has at least.
	roundTripsInSlice = 40
	// opensRoundTrips is how many round trips opening a connection takes, and more:
	// programs have to be woken too.
	opensRoundTrips = 4
)
