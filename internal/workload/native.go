package workload

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/traffic"
	"github.com/cnibench/cnibench/internal/unit"
)

// native is a workload of the native engine: one of the engine's tests, with what the
// workload itself fixes of it.
type native struct {
	spec Spec
	// test is the engine's test; "" is the one with the workload's name.
	test string
	// fix changes what the cell asks of the engine; nil changes nothing.
	fix func(*traffic.Config)
}

// NativeTest is the engine's test that a workload of that name runs; "" where it is not
// the engine's.
func NativeTest(name string) string {
	w, err := Find(name)
	if err != nil {
		return ""
	}
	n, ok := w.(native)
	if !ok {
		return ""
	}
	return cmp.Or(n.test, n.spec.Name)
}

// BackgroundShare is what background streams brought, as a part of what they ask for, and
// whether that is enough to be the background of what was measured beside them. Where it is
// not, path or CPU is full.
func BackgroundShare(streams int, bitsPerSecond float64) (share float64, enough bool) {
	share = bitsPerSecond / (float64(streams) * traffic.BackgroundRate)
	return share, share >= 1-backgroundTolerance
}

const (
	// nativePatience is what a half may take beyond its time: the engine gives
	// up on its own much sooner, unless its client never comes.
	nativePatience = time.Minute
	// slicedPatience is that of a half whose slices wait for those of many others.
	slicedPatience = 30 * time.Minute
	// rateTolerance is how near an achieved rate must be to the one asked for.
	rateTolerance = 0.001
	// rrTolerance is how near round trips × their length must be to the number
	// under way.
	rrTolerance = 0.05
	// backgroundTolerance is how much less the background may bring than asked:
	// its messages are large compared with a short window.
	backgroundTolerance = 0.1
	// differTolerance is how near a receiver's count must be to the sender's,
	// except for what is lost and what socket buffers may hold at the edges.
	differTolerance = 0.02
	bufferBytes     = 8 << 20
	// datagramOverhead is what the kernel's buffers count for a datagram in addition to
	// its payload.
	datagramOverhead = 768
	maxCPUs          = 256
)

// Spec describes the workload.
func (n native) Spec() Spec { return n.spec }

// Sliceable reports whether samples of a cell can come in slices: traffic of the
// native engine without a pace of its own.
func Sliceable(cell result.Cell) bool {
	w, err := Find(cell.Workload)
	if err != nil {
		return false
	}
	n, ok := w.(native)
	return ok && n.config(Params{Cell: cell}, 0).Sliceable()
}

// Serve is the engine's serving half.
func (n native) Serve(p Params) (Program, error) { return n.program(p, 1) }

// Drive is the engine's driving half; the agent gets the server's address.
func (n native) Drive(p Params, _ netip.AddrPort) (Program, error) { return n.program(p, 0) }

// program makes the engine's configuration. Where CPUs are pinned the client
// takes the even ones, the server the odd ones: they may be one machine's.
func (n native) program(p Params, firstCPU int) (Program, error) {
	cfg := n.config(p, firstCPU)
	checked := cfg
	if checked.Token == "" {
		checked.Token = "00000000000000000000000000000000" // a dry run has none yet
	}
	if err := checked.Validate(); err != nil {
		return Program{}, err
	}
	patience := nativePatience
	if p.Sliced {
		patience = slicedPatience
	}
	return Program{Native: &cfg, Timeout: p.Warmup + p.Window + patience}, nil
}

// config is the engine's configuration for one end.
func (n native) config(p Params, firstCPU int) traffic.Config {
	c := p.Cell
	cfg := traffic.Config{
		Test: cmp.Or(n.test, n.spec.Name), Token: p.Token, MessageBytes: c.MessageBytes, ResponseBytes: c.ResponseBytes,
		Streams: max(1, c.Streams), Warmup: p.Warmup, Window: p.Window, Direction: c.Direction,
		RateBitsPerSecond: c.RateBitsPerSecond, RatePerSecond: c.RatePerSecond, Burst: c.Burst,
		BackgroundStreams: c.BackgroundStreams,
		UDPGSO:            c.UDPGSO, ZeroCopy: c.ZeroCopy, SharedClock: p.SharedClock,
		Placement: c.CPUs, CongestionControl: c.CongestionControl, Sliced: p.Sliced,
	}
	if cfg.MessageBytes == 0 {
		cfg.MessageBytes = n.spec.DefaultMessageBytes
	}
	if c.PinCPUs {
		for cpu := firstCPU; cpu < maxCPUs; cpu += 2 {
			cfg.CPUs = append(cfg.CPUs, cpu)
		}
	}
	if n.fix != nil {
		n.fix(&cfg)
	}
	return cfg
}

// Parse reads what both halves counted.
func (n native) Parse(p Params, server, client Output) (Measurement, error) {
	if server.Native == nil || client.Native == nil {
		return Measurement{}, errors.New("an end gave no report")
	}
	cfg, err := n.program(p, 0)
	if err != nil {
		return Measurement{}, err
	}
	if p.Sliced {
		return n.parseSlices(p, *server.Native, *client.Native)
	}
	m := parser{cfg: *cfg.Native, server: *server.Native, client: *client.Native, m: Measurement{Metrics: map[string]float64{}}}
	m.sender, m.receiver, m.senderEnd = m.client, m.server, client
	if m.cfg.Direction == traffic.Reverse {
		m.sender, m.receiver, m.senderEnd = m.server, m.client, server
	}
	switch m.cfg.Test {
	case traffic.TCPRR, traffic.UDPRR, traffic.TCPCRR:
		err = m.roundTrips()
	case traffic.LatencyUnderLoad:
		err = errors.Join(m.stream(), m.roundTrips())
	default:
		err = m.stream()
	}
	if err := errors.Join(err, m.background()); err != nil {
		return Measurement{}, err
	}
	if err := m.strangers(m.arrived()); err != nil {
		return Measurement{}, err
	}
	m.end(server, client)
	return m.m, nil
}

// parser turns two reports into a measurement.
type parser struct {
	cfg              traffic.Config
	server, client   traffic.Report
	sender, receiver traffic.Report
	senderEnd        Output
	m                Measurement
}

func (p *parser) set(name string, v float64) { p.m.Metrics[name] = v }

func (p *parser) warn(format string, args ...any) {
	p.m.Warnings = append(p.m.Warnings, fmt.Sprintf(format, args...))
}

// background takes what the background streams brought.
func (p *parser) background() error {
	if p.cfg.BackgroundStreams == 0 {
		return nil
	}
	r := p.server
	if r.BackgroundBytes == nil || r.WindowSeconds <= 0 {
		return errors.New("the server counted no background streams")
	}
	achieved := float64(*r.BackgroundBytes) * 8 / r.WindowSeconds
	p.set("background_throughput_bits_per_second", achieved)
	if _, enough := BackgroundShare(p.cfg.BackgroundStreams, achieved); !enough {
		p.warn("background streams brought %.4g of %.4g bit/s: path or CPU is full, and the background less than it says", achieved, float64(p.cfg.BackgroundStreams)*traffic.BackgroundRate)
	}
	return nil
}

// end takes what every test has.
func (p *parser) end(server, client Output) {
	p.m.Warnings = append(p.m.Warnings, p.server.Warnings...)
	p.m.Warnings = append(p.m.Warnings, p.client.Warnings...)
	p.m.Warnings = append(p.m.Warnings, server.Doubts...)
	p.m.Warnings = append(p.m.Warnings, client.Doubts...)
}

// stream takes what a stream has. The receiver's count is the throughput.
func (p *parser) stream() error {
	r, s := p.receiver, p.sender
	if r.Bytes == nil || s.SentBytes == nil || r.WindowSeconds <= 0 || s.WindowSeconds <= 0 {
		return errors.New("an end counted no bytes")
	}
	if *r.Bytes == 0 {
		return errors.New("nothing was received inside the measured window")
	}
	p.m.MeasuredSeconds = r.WindowSeconds
	p.set("throughput_bits_per_second", float64(*r.Bytes)*8/r.WindowSeconds)
	sent := float64(*s.SentBytes) * 8 / s.WindowSeconds
	p.set("sent_throughput_bits_per_second", sent)
	if p.cfg.Direction == traffic.Bidirectional {
		if s.Bytes == nil {
			return errors.New("the client counted no bytes of the way back")
		}
		p.set("reverse_throughput_bits_per_second", float64(*s.Bytes)*8/s.WindowSeconds)
	}
	if len(r.SeriesBitsPerSecond) > 0 {
		p.m.Series = &result.Series{IntervalSeconds: r.SeriesInterval.Seconds(), ThroughputBitsPerSecond: r.SeriesBitsPerSecond}
	}
	if t := s.TCP; t != nil {
		p.set("retransmits", float64(t.Retransmits))
		p.set("tcp_cwnd_packets", t.CwndPackets)
		p.set("tcp_rtt_seconds", t.RTTSeconds)
		p.set("tcp_mss_bytes", t.MSSBytes)
		if t.PacingRateBitsPerSecond > 0 {
			p.set("tcp_pacing_rate_bits_per_second", t.PacingRateBitsPerSecond)
		}
	}
	if rate := p.cfg.RateBitsPerSecond; rate > 0 {
		p.set("achieved_rate_bits_per_second", sent)
		p.checkRate(rate, sent, float64(p.cfg.Streams*p.cfg.MessageBytes*8)/s.WindowSeconds, "bit/s")
	}
	if p.cfg.Test == traffic.UDPStream {
		return p.datagrams()
	}
	if d, slack := difference(float64(*s.SentBytes), float64(*r.Bytes)), float64(p.cfg.Streams*bufferBytes); d > max(differTolerance*float64(*s.SentBytes), slack) {
		p.warn("sender and receiver differ by %.0f bytes, more than socket buffers hold: the path stalled at an edge of the window; measure longer", d)
	}
	return nil
}

// datagrams takes what only a stream of datagrams has.
func (p *parser) datagrams() error {
	r, s := p.receiver, p.sender
	if r.Packets == nil || r.Arrived == nil || s.SentPackets == nil || *s.SentPackets == 0 {
		return errors.New("an end counted no datagrams")
	}
	sent := float64(*s.SentPackets)
	p.set("packets_per_second", float64(*r.Packets)/r.WindowSeconds)
	p.set("sent_packets_per_second", sent/s.WindowSeconds)
	p.set("packets_sent", sent)
	p.set("packets_received", float64(*r.Packets))
	lost := sent - float64(*r.Arrived)
	if lost < 0 {
		if r.Duplicated != nil {
			return fmt.Errorf("%d different datagrams arrived of %d that were sent: the counts cannot be right", *r.Arrived, *s.SentPackets)
		}
		p.warn("more datagrams arrived than were sent: the path duplicates, and these are too short to tell; use message_bytes of 8 or more")
	} else {
		p.set("packets_lost", lost)
		p.set("loss_ratio", lost/sent)
	}
	if r.Reordered != nil {
		p.set("packets_reordered", float64(*r.Reordered))
	}
	if r.Duplicated != nil {
		p.set("packets_duplicated", float64(*r.Duplicated))
	}
	if r.JitterSeconds != nil {
		p.set("jitter_seconds", *r.JitterSeconds)
	}
	if o := r.OneWay; o != nil {
		p.set("one_way_delay_mean_seconds", o.MeanNanoseconds/1e9)
		p.set("one_way_delay_min_seconds", float64(o.MinNanoseconds)/1e9)
		p.set("one_way_delay_max_seconds", float64(o.MaxNanoseconds)/1e9)
	}
	slack := float64(p.cfg.Streams*bufferBytes) / float64(p.cfg.MessageBytes+datagramOverhead)
	if d := difference(sent-max(0, lost), float64(*r.Packets)); d > max(differTolerance*sent, slack) {
		p.warn("sender and receiver differ by %.0f datagrams beyond loss, more than socket buffers hold: the path stalled at an edge of the window; measure longer", d)
	}
	return nil
}

// roundTrips takes what round trips have.
func (p *parser) roundTrips() error {
	r := p.client
	if r.Transactions == nil || r.WindowSeconds <= 0 {
		return errors.New("the client counted no round trips")
	}
	if *r.Transactions == 0 || r.Latency == nil {
		return errors.New("no round trip was over inside the measured window")
	}
	streams := p.cfg.Streams
	if p.cfg.Test == traffic.LatencyUnderLoad {
		streams = 1
	}
	p.m.MeasuredSeconds = r.WindowSeconds
	n := float64(*r.Transactions)
	rate, mean := n/r.WindowSeconds, r.Latency.MeanNanoseconds/1e9
	p.set("transactions", n)
	p.set("transactions_per_second", rate)
	p.set("latency_mean_seconds", mean)
	p.set("latency_stddev_seconds", r.Latency.StddevNanoseconds/1e9)
	p.set("latency_min_seconds", float64(r.Latency.MinNanoseconds)/1e9)
	p.set("latency_max_seconds", float64(r.Latency.MaxNanoseconds)/1e9)
	if err := errors.Join(p.percentiles(r.Latency), p.firstPackets(r.Connect)); err != nil {
		return err
	}
	lost := 0.0
	if r.TransactionsLost != nil {
		lost = float64(*r.TransactionsLost)
		p.set("transactions_lost", lost)
	}
	if asked := p.cfg.RatePerSecond; asked > 0 {
		achieved := (n + lost) / r.WindowSeconds
		p.set("achieved_rate_per_second", achieved)
		p.checkRate(asked, achieved, float64(streams)/r.WindowSeconds, "requests/s")
		return nil
	}
	// Little's law: in a closed loop the rate times the round trip is the number
	// under way. Lost requests are under way and have no round trip.
	under := float64(streams * max(1, p.cfg.Burst))
	if product := rate * mean / under; lost == 0 && (product < 1-rrTolerance || product > 1+rrTolerance) {
		p.warn("rate × round trip is %.2f, not 1: a stall at an edge of the window, or between round trips; measure longer, or leave the client more CPU", product)
	}
	return nil
}

// percentiles takes those that the number of round trips can give.
func (p *parser) percentiles(h *traffic.Histogram) error {
	hist, err := hdrhistogram.Decode([]byte(h.HDRBase64))
	if err != nil {
		return fmt.Errorf("the histogram of round trips: %w", err)
	}
	p.m.Histogram = &result.Histogram{Unit: "nanoseconds", Count: h.Count, HDRBase64: h.HDRBase64}
	for _, q := range []struct {
		name    string
		percent float64
		least   int64
	}{{"latency_p50_seconds", 50, 1}, {"latency_p90_seconds", 90, 10}, {"latency_p99_seconds", 99, 100}, {"latency_p999_seconds", 99.9, 1000}} {
		if h.Count >= q.least {
			p.set(q.name, float64(hist.ValueAtQuantile(q.percent))/1e9)
		} else {
			p.warn("%d round trips are too few for %s: measure longer", h.Count, q.name)
		}
	}
	return nil
}

// checkRate warns of a rate that was not the one asked for. grain is what one
// message more or less per stream makes of it.
func (p *parser) checkRate(asked, achieved, grain float64, per string) {
	if difference(asked, achieved) <= max(rateTolerance*asked, grain) {
		return
	}
	why := "its CPU or the path is full"
	if busy, ok := p.senderEnd.Probes["cpu_busiest_core_ratio"]; ok && busy >= unit.Saturated {
		why = fmt.Sprintf("its CPU is full (busiest core %.0f %%)", busy*100)
	} else if ok {
		why = fmt.Sprintf("the path is full (busiest core %.0f %%)", busy*100)
	}
	p.warn("the rate was not reached: %.6g of %.6g %s: %s; ask for less, or read the result as flat out", achieved, asked, per, why)
}

func difference(a, b float64) float64 { return max(a-b, b-a) }
