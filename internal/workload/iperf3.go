package workload

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

// Iperf3 is ESnet's iperf3, as the publications ran it.
//
// What comparing 3.12 with the kernel's counters has shown:
// -t and -O take whole seconds ("1.5" is 1, "0.5" is 0); the client's
// sum_received counts losses of the omitted seconds in, the server's own report
// does not; in a report, figures of the other end may be 0 or nonsense
// ("packets": 1.8e19). So each figure is read from the report of the end that
// measured it, and --get-server-output brings the server's with the client's.
type Iperf3 struct{}

// Spec describes iperf3.
func (Iperf3) Spec() Spec {
	return Spec{
		Name:                  "iperf3",
		Summary:               "iperf3, TCP or UDP throughput; whole seconds, warm-up by -O",
		Primary:               "throughput_bits_per_second",
		Needs:                 []Tool{{Name: "iperf3", Package: "iperf3", Version: []string{"iperf3", "--version"}}},
		Factors:               []string{"message_bytes", "streams", "direction", "rate_bits_per_second", "cpus", "congestion_control"},
		SetsCongestionControl: true,
		DefaultCPUs:           sameCPU,
		Protocols:             []string{"tcp", "udp"},
	}
}

func iperf3Omit(p Params) int {
	if p.Warmup <= 0 {
		return 0
	}
	return wholeSeconds(p.Warmup)
}

// Serve is iperf3 -s for one test.
func (Iperf3) Serve(p Params) (Program, error) {
	return timed(Program{
		Argv: []string{"iperf3", "-s", "-1", "-B", "{bind}", "-p", "{port}", "-J"}, AnyAddress: anyAddress(p.Cell),
		Port: true, Ready: "tcp", NetAdmin: p.Cell.CongestionControl != "",
	}, seconds(iperf3Omit(p)), seconds(wholeSeconds(p.Window))), nil
}

// Drive is iperf3 -c.
func (Iperf3) Drive(p Params, server netip.AddrPort) (Program, error) {
	host, port := target(server)
	c, length := p.Cell, wholeSeconds(p.Window)
	streams := max(c.Streams, 1)
	argv := []string{"iperf3", "-c", host, "-p", port, "-t", strconv.Itoa(length), "-P", strconv.Itoa(streams)}
	if omit := iperf3Omit(p); omit > 0 {
		argv = append(argv, "-O", strconv.Itoa(omit))
	}
	if c.Protocol == "udp" {
		argv = append(argv, "-u")
	}
	if c.CongestionControl != "" {
		argv = append(argv, "-C", c.CongestionControl)
	}
	if c.MessageBytes > 0 {
		argv = append(argv, "-l", strconv.Itoa(c.MessageBytes))
	}
	// iperf3 holds each stream to -b; UDP without it would send 1 Mbit/s.
	if c.RateBitsPerSecond > 0 || c.Protocol == "udp" {
		argv = append(argv, "-b", strconv.FormatFloat(math.Round(c.RateBitsPerSecond/float64(streams)), 'f', 0, 64))
	}
	switch c.Direction {
	case "reverse":
		argv = append(argv, "-R")
	case "bidirectional":
		argv = append(argv, "--bidir")
	}
	argv = append(argv, "--connect-timeout", "3000", "-J", "--get-server-output")
	return timed(Program{Argv: argv, NetAdmin: c.CongestionControl != ""}, seconds(iperf3Omit(p)), seconds(length)), nil
}

// iperf3Report is what iperf3 -J prints (iperf_api.c), as far as it is used.
type iperf3Report struct {
	Error string `json:"error"`
	Start struct {
		Version string   `json:"version"`
		MSS     *float64 `json:"tcp_mss_default"`
		Test    *struct {
			Protocol string  `json:"protocol"`
			Streams  int     `json:"num_streams"`
			Block    float64 `json:"blksize"`
			Reverse  int     `json:"reverse"`
		} `json:"test_start"`
	} `json:"start"`
	End struct {
		Streams []struct {
			Sender *struct {
				MeanRTT *float64 `json:"mean_rtt"` // µs
			} `json:"sender"`
			UDP *struct {
				OutOfOrder *float64 `json:"out_of_order"`
			} `json:"udp"`
		} `json:"streams"`
		Sent            *iperf3Sum `json:"sum_sent"`
		Received        *iperf3Sum `json:"sum_received"`
		SentReverse     *iperf3Sum `json:"sum_sent_bidir_reverse"`
		ReceivedReverse *iperf3Sum `json:"sum_received_bidir_reverse"`
		CPU             *struct {
			Host *float64 `json:"host_total"` // percent of one CPU, iperf3 alone
		} `json:"cpu_utilization_percent"`
	} `json:"end"`
	Server     *iperf3Report `json:"server_output_json"`
	ServerText string        `json:"server_output_text"`
}

type iperf3Sum struct {
	Seconds       float64  `json:"seconds"`
	Bytes         float64  `json:"bytes"`
	BitsPerSecond float64  `json:"bits_per_second"`
	Retransmits   *float64 `json:"retransmits"`
	JitterMillis  *float64 `json:"jitter_ms"`
	LostPackets   *float64 `json:"lost_packets"`
	Packets       *float64 `json:"packets"`
}

// Parse reads the JSON of both ends out of the client's.
func (w Iperf3) Parse(p Params, server, client Output) (Measurement, error) {
	doc, err := iperf3Read(client)
	if err := over(client, server, doc.reason()); err != nil {
		if taken := iperf3Taken(client, server); taken != "" {
			err = fmt.Errorf("%w: %s", err, taken)
		}
		return Measurement{}, err
	}
	if err != nil {
		return Measurement{}, err
	}
	if err := doc.check(p); err != nil {
		return Measurement{}, notUnderstood("iperf3", doc.Start.Version, err.Error())
	}
	m := metrics{}
	measured, warnings, err := doc.fill(m, p)
	if err != nil {
		return Measurement{}, notUnderstood("iperf3", doc.Start.Version, err.Error())
	}
	return Measurement{MeasuredSeconds: measured, Metrics: m, Tools: versions(client, server), Warnings: warnings}, nil
}

func iperf3Read(o Output) (iperf3Report, error) {
	var doc iperf3Report
	if err := json.Unmarshal([]byte(o.Stdout), &doc); err != nil {
		return iperf3Report{}, notUnderstood("iperf3", o.ToolVersion, fmt.Sprintf("no JSON: %v", err))
	}
	return doc, nil
}

// reason is iperf3's own, of either end.
func (d iperf3Report) reason() string {
	if d.Error == "" && d.Server != nil && d.Server.Error != "" {
		return "server: " + clip(d.Server.Error)
	}
	return clip(d.Error)
}

// check refuses a version or a test that is not the one asked for.
func (d iperf3Report) check(p Params) error {
	if err := iperf3Version(d.Start.Version); err != nil {
		return err
	}
	t := d.Start.Test
	if t == nil {
		return errors.New("it has no start.test_start")
	}
	if want := max(p.Cell.Streams, 1); t.Streams != want {
		return fmt.Errorf("%d streams where %d were asked for", t.Streams, want)
	}
	protocol := p.Cell.Protocol
	if protocol == "" {
		protocol = "tcp"
	}
	if !strings.EqualFold(t.Protocol, protocol) {
		return fmt.Errorf("protocol %q where %q was asked for", clip(t.Protocol), protocol)
	}
	if want := p.Cell.MessageBytes; want > 0 && t.Block != float64(want) {
		return fmt.Errorf("messages of %g bytes where %d were asked for", t.Block, want)
	}
	if (t.Reverse != 0) != (p.Cell.Direction == "reverse") {
		return errors.New("its direction is not the one asked for")
	}
	if d.Server == nil {
		return errors.New("the server's own report (server_output_json) is missing: run iperf3 of one version at both ends")
	}
	return nil
}

// iperf3Version refuses a version that this parser was never tested with: its own
// captures are of 3.12; the schema is documented as the same from there on.
func iperf3Version(s string) error {
	m := regexp.MustCompile(`^iperf (\d{1,4})\.(\d{1,4})(\D|$)`).FindStringSubmatch(s)
	if m == nil {
		return fmt.Errorf("no version in %q", clip(s))
	}
	minor, _ := strconv.Atoi(m[2]) // digits alone, by the expression
	if m[1] != "3" || minor < 12 {
		return fmt.Errorf("version %s.%s is not known (known: 3.12 and later 3.x)", m[1], m[2])
	}
	return nil
}

// fill reads the figures: those of the receiver from the receiver's report,
// those of the sender from the sender's.
func (d iperf3Report) fill(m metrics, p Params) (measured float64, warnings []string, err error) {
	sender, receiver := d, *d.Server
	if p.Cell.Direction == "reverse" {
		sender, receiver = receiver, sender
	}
	received, sent := receiver.End.Received, sender.End.Sent
	if err := received.check(); err != nil {
		return 0, nil, fmt.Errorf("sum_received: %w", err)
	}
	if err := sent.check(); err != nil {
		return 0, nil, fmt.Errorf("sum_sent: %w", err)
	}
	err = errors.Join(
		m.put("throughput_bits_per_second", received.BitsPerSecond),
		m.put("sent_throughput_bits_per_second", sent.BitsPerSecond),
		cpuRatio(m, "client_cpu_ratio", d), cpuRatio(m, "server_cpu_ratio", *d.Server),
	)
	if p.Cell.Direction == "bidirectional" {
		reverse := d.End.ReceivedReverse
		if bad := reverse.check(); bad != nil {
			return 0, nil, fmt.Errorf("sum_received_bidir_reverse: %w", bad)
		}
		err = errors.Join(err, m.put("reverse_throughput_bits_per_second", reverse.BitsPerSecond))
	}
	if p.Cell.Protocol == "udp" {
		var doubts []string
		doubts, bad := iperf3UDP(m, sender, receiver)
		warnings, err = append(warnings, doubts...), errors.Join(err, bad)
	} else {
		err = errors.Join(err, iperf3TCP(m, d, sender, p))
	}
	if asked := p.Cell.RateBitsPerSecond; asked > 0 {
		err = errors.Join(err, m.put("achieved_rate_bits_per_second", sent.BitsPerSecond))
		if rateMissed(asked, sent.BitsPerSecond) {
			warnings = append(warnings, rateWarning("iperf3", asked, sent.BitsPerSecond, "bit/s"))
		}
	}
	return received.Seconds, warnings, err
}

// check checks that a sum is consistent: a rate that is not bytes over seconds is
// not understood.
func (s *iperf3Sum) check() error {
	if s == nil {
		return errors.New("it is missing")
	}
	if s.Seconds <= 0 || s.Bytes <= 0 || s.BitsPerSecond < 0 {
		return fmt.Errorf("%g bytes in %g seconds", s.Bytes, s.Seconds)
	}
	if rate := s.Bytes * 8 / s.Seconds; math.Abs(rate-s.BitsPerSecond) > 0.01*rate+1 {
		return fmt.Errorf("%g bytes in %g seconds are not %g bit/s", s.Bytes, s.Seconds, s.BitsPerSecond)
	}
	return nil
}

// cpuRatio is what one end's iperf3 used itself, in CPUs.
func cpuRatio(m metrics, name string, d iperf3Report) error {
	if d.End.CPU == nil || d.End.CPU.Host == nil || *d.End.CPU.Host < 0 {
		return nil
	}
	return m.put(name, *d.End.CPU.Host/100)
}

// iperf3TCP reads what only a TCP sender knows.
func iperf3TCP(m metrics, client, sender iperf3Report, p Params) error {
	var errs []error
	if r := sender.End.Sent.Retransmits; r != nil && *r >= 0 {
		errs = append(errs, m.put("retransmits", *r))
	}
	if mss := client.Start.MSS; mss != nil && *mss > 0 {
		errs = append(errs, m.put("tcp_mss_bytes", *mss))
	}
	var sum float64
	var n int
	for _, s := range sender.End.Streams {
		if s.Sender != nil && s.Sender.MeanRTT != nil && *s.Sender.MeanRTT > 0 {
			sum += *s.Sender.MeanRTT
			n++
		}
	}
	// Both directions' streams are mixed in a bidirectional report.
	if n > 0 && n == len(sender.End.Streams) && p.Cell.Direction != "bidirectional" {
		errs = append(errs, m.put("tcp_rtt_seconds", sum/float64(n)/1e6))
	}
	return errors.Join(errs...)
}

// iperf3UDP counts datagrams: each is one block. The receiver's loss is kept
// only where it agrees with what it received and what it knows was sent.
func iperf3UDP(m metrics, sender, receiver iperf3Report) (warnings []string, err error) {
	block := 0.0
	if sender.Start.Test != nil {
		block = sender.Start.Test.Block
	}
	if block < 1 {
		return nil, errors.New("it has no blksize")
	}
	got, sent := receiver.End.Received, sender.End.Sent
	received := got.Bytes / block
	err = errors.Join(
		m.put("packets_received", received), m.put("packets_per_second", received/got.Seconds),
		m.put("packets_sent", sent.Bytes/block), m.put("sent_packets_per_second", sent.Bytes/block/sent.Seconds),
	)
	if got.JitterMillis != nil && *got.JitterMillis >= 0 {
		err = errors.Join(err, m.put("jitter_seconds", *got.JitterMillis/1000))
	}
	if got.LostPackets == nil || got.Packets == nil {
		return nil, err
	}
	lost, packets := *got.LostPackets, *got.Packets
	if lost < 0 || math.Abs(received+lost-packets) > 0.001*packets+10 {
		return []string{fmt.Sprintf("iperf3's loss is left out: it received %.0f and lost %.0f of %.0f packets, which do not add up; measure loss with udp_stream", received, lost, packets)}, err
	}
	err = errors.Join(err, m.put("packets_lost", lost))
	if packets > 0 {
		err = errors.Join(err, m.put("loss_ratio", lost/packets))
	}
	return nil, errors.Join(err, iperf3Reordered(m, receiver))
}

// iperf3Reordered adds up the receiver's streams. A bidirectional report holds
// those that it sent too, with 0.
func iperf3Reordered(m metrics, receiver iperf3Report) error {
	var sum float64
	for _, s := range receiver.End.Streams {
		if s.UDP == nil || s.UDP.OutOfOrder == nil || *s.UDP.OutOfOrder < 0 {
			return nil
		}
		sum += *s.UDP.OutOfOrder
	}
	if len(receiver.End.Streams) == 0 {
		return nil
	}
	return m.put("packets_reordered", sum)
}
