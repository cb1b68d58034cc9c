package workload

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Sockperf is Mellanox's sockperf. Its latency is half a round trip unless
// --full-rtt is given; what is stored here is always the whole round trip.
//
// As found by running 3.7: it ends with status 0 whatever happens; it starts
// 2.1 s after its start, and of its -t seconds the first 0.4 and the last 0.05
// do not count (the record has the seconds that did); in the throughput test
// the client counts what it sent alone, and the server says what it received
// only when it is interrupted; its "MBps" and "Mbps" are powers of 1024.
type Sockperf struct{}

const (
	sockperfLead     = 2100 * time.Millisecond // until the first message
	sockperfWarmup   = 400 * time.Millisecond  // TEST_START_WARMUP_MSEC of its sources
	sockperfTail     = 50 * time.Millisecond   // TEST_END_COOLDOWN_MSEC
	sockperfSmallest = 14                      // its header
)

// Spec describes sockperf.
func (Sockperf) Spec() Spec {
	return Spec{
		Name:                "sockperf",
		Summary:             "sockperf, round trips alone or under load, or one-way throughput; whole seconds, IPv4",
		Primary:             "latency_mean_seconds",
		PrimaryByTest:       map[string]string{"throughput": "throughput_bits_per_second"},
		Needs:               []Tool{{Name: "sockperf", Package: "sockperf", Version: []string{"sockperf", "--version"}}},
		Factors:             []string{"message_bytes", "rate_per_second", "cpus", "congestion_control"},
		DefaultCPUs:         sameCPU,
		Tests:               []string{"ping-pong", "under-load", "throughput"},
		Protocols:           []string{"tcp", "udp"},
		DefaultMessageBytes: sockperfSmallest,
	}
}

// sockperfTime is when the measured time begins, and how long it lasts.
func sockperfTime(p Params) (lead, length time.Duration) {
	length = seconds(wholeSeconds(p.Window))
	if p.Cell.Test == "throughput" {
		return sockperfLead, length
	}
	return sockperfLead + sockperfWarmup, length - sockperfWarmup - sockperfTail
}

// Serve is sockperf server.
func (Sockperf) Serve(p Params) (Program, error) {
	argv := []string{"sockperf", "sr"}
	ready := "udp"
	if p.Cell.Protocol == "tcp" {
		// A service has one port for all samples. Without SO_REUSEADDR sockperf cannot
		// bind it for the minute that a connection of an earlier sample is in TIME_WAIT.
		argv, ready = append(argv, "--tcp", "--uc-reuseaddr"), "tcp"
	}
	lead, length := sockperfTime(p)
	return timed(Program{
		Argv: append(argv, "-i", "{bind}", "-p", "{port}"), AnyAddress: anyAddress(p.Cell),
		Port: true, Ready: ready, Interrupt: true,
	}, lead, length), nil
}

// Drive is sockperf's client.
func (Sockperf) Drive(p Params, server netip.AddrPort) (Program, error) {
	c := p.Cell
	short := map[string]string{"ping-pong": "pp", "under-load": "ul", "throughput": "tp"}[c.Test]
	if short == "" {
		return Program{}, fmt.Errorf("sockperf has no test %q", c.Test)
	}
	if c.MessageBytes != 0 && c.MessageBytes < sockperfSmallest {
		return Program{}, fmt.Errorf("sockperf's messages have %d bytes or more; %d were asked for: set message_bytes of sockperf apart", sockperfSmallest, c.MessageBytes)
	}
	host, port := target(server)
	argv := []string{"sockperf", short}
	if c.Protocol == "tcp" {
		argv = append(argv, "--tcp")
	}
	argv = append(argv, "-i", host, "-p", port, "-t", strconv.Itoa(wholeSeconds(p.Window)))
	if c.MessageBytes > 0 {
		argv = append(argv, "-m", strconv.Itoa(c.MessageBytes))
	}
	if c.RatePerSecond > 0 {
		argv = append(argv, "--mps="+strconv.FormatFloat(c.RatePerSecond, 'f', 0, 64))
	}
	if c.Test != "throughput" {
		argv = append(argv, "--full-rtt")
	}
	lead, length := sockperfTime(p)
	return timed(Program{Argv: argv}, lead, length), nil
}

// Parse reads sockperf's text.
func (Sockperf) Parse(p Params, server, client Output) (Measurement, error) {
	text := plain(client.Stdout)
	if err := over(client, server, sockperfReason(text+"\n"+plain(client.Stderr))); err != nil {
		return Measurement{}, err
	}
	m := metrics{}
	read := sockperfLatency
	if p.Cell.Test == "throughput" {
		read = sockperfThroughput
	}
	err := whole(text)
	var measured float64
	var warnings []string
	if err == nil {
		measured, warnings, err = read(m, p, text, plain(server.Stdout))
	}
	var stall stalled
	if errors.As(err, &stall) || errors.Is(err, errStrangers) {
		return Measurement{}, fmt.Errorf("sockperf: %w", err)
	}
	if err != nil {
		return Measurement{}, notUnderstood("sockperf", client.ToolVersion, err.Error())
	}
	return Measurement{MeasuredSeconds: measured, Metrics: m, Tools: versions(client, server), Warnings: warnings}, nil
}

// stalled is why an output that is understood is no measurement.
type stalled string

func (s stalled) Error() string { return string(s) }

// sockperfReason finds what sockperf gives as an error: its status is 0.
func sockperfReason(text string) string {
	for line := range strings.Lines(text) {
		for _, sign := range []string{"ERROR", "No messages were received", "Invalid", "is not supported", "No valid observations"} {
			if i := strings.Index(line, sign); sign == "ERROR" && i >= 0 {
				return clip(strings.TrimSpace(line[i:])) // another line may be before it
			} else if i >= 0 {
				return clip(strings.TrimSpace(strings.TrimPrefix(line, "sockperf:")))
			}
		}
	}
	return ""
}

// sockperfFind gives the numbers of the one line that matches.
func sockperfFind(text, what, pattern string) ([]float64, error) {
	found := regexp.MustCompile(`(?m)^sockperf: +`+pattern+`\r?$`).FindAllStringSubmatch(text, 2)
	if len(found) != 1 {
		return nil, fmt.Errorf("%d lines of %s where one was expected", len(found), what)
	}
	var values []float64
	for _, s := range found[0][1:] {
		v, err := number(s)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
		values = append(values, v)
	}
	return values, nil
}

// sockperfLatency reads a ping-pong or under-load test. All latencies are in µs.
func sockperfLatency(m metrics, p Params, text, server string) (measured float64, warnings []string, err error) {
	run, err1 := sockperfFind(text, "Valid Duration", `\[Valid Duration\] RunTime=([\d.]+) sec; SentMessages=(\d+); ReceivedMessages=(\d+)`)
	seen, err2 := sockperfFind(text, "observations", `Total (\d+) observations; .*`)
	all, err4 := sockperfFind(text, "Total Run", `\[Total Run\] RunTime=([\d.]+) sec; Warm up time=\d+ msec; SentMessages=(\d+); ReceivedMessages=\d+`)
	bad, err3 := sockperfFind(text, "dropped messages", `# dropped messages = (\d+); # duplicated messages = (\d+); # out-of-order messages = (\d+)`)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return 0, nil, err
	}
	if run[0] == 0 || seen[0] == 0 || all[0] == 0 {
		return 0, nil, errors.New("no message came back in the measured time")
	}
	trips, err := sockperfRoundTrips(m, text, seen[0])
	if err != nil {
		return 0, nil, err
	}
	if trips != 1 {
		warnings = append(warnings, "this sockperf printed half round trips; they were doubled: a version that knows --full-rtt measures the whole")
	}
	_, length := sockperfTime(p)
	switch {
	case run[0] < 0.5*length.Seconds():
		return 0, nil, stalled(fmt.Sprintf("replies stopped after %.3g s of %.3g s: a datagram was lost, or the path is cut; measure longer, or with udp_rr or tcp_rr", run[0], length.Seconds()))
	case run[0] < 0.7*length.Seconds():
		warnings = append(warnings, fmt.Sprintf("sockperf measured %.3g s where %.3g s were due: replies stopped early, as after a lost datagram; measure longer, or with udp_rr or tcp_rr", run[0], length.Seconds()))
	}
	err = errors.Join(
		m.put("transactions", run[2]), m.put("packets_lost", bad[0]),
		m.put("packets_duplicated", bad[1]), m.put("packets_reordered", bad[2]))
	if p.Cell.Test == "ping-pong" {
		err = errors.Join(err, m.put("transactions_per_second", run[2]/run[0]))
	}
	// The measured time ends with a reply, so that the rate shows in the whole run.
	doubts, bad4 := sockperfRate(m, p.Cell.RatePerSecond, all[1]/all[0], all[0])
	strangers, bad5 := sockperfStrangers(server, all[1])
	warnings, err = slices.Concat(warnings, doubts, strangers), errors.Join(err, bad4, bad5)
	return run[0], warnings, err
}

// sockperfRoundTrips reads mean, deviation and percentiles. trips is by how
// much they had to be multiplied to be round trips.
func sockperfRoundTrips(m metrics, text string, seen float64) (trips float64, err error) {
	avg := regexp.MustCompile(`(?m)^sockperf: +====> avg-(\w+)=([\d.]+) \(std-dev=([\d.]+)[,)]`).FindAllStringSubmatch(text, 2)
	if len(avg) != 1 {
		return 0, fmt.Errorf("%d lines of the average where one was expected", len(avg))
	}
	switch avg[0][1] {
	case "rtt":
		trips = 1
	case "latency", "lat":
		trips = 2
	default:
		return 0, fmt.Errorf("unknown average %q", clip(avg[0][1]))
	}
	unit := regexp.MustCompile(`(?m)^sockperf: Summary: (?:Round trip|Latency) is [\d.]+ (\S+)\s*$`).FindStringSubmatch(text)
	if unit == nil || unit[1] != "usec" {
		return 0, fmt.Errorf("unknown unit in its summary: %q", unit)
	}
	put := func(name, s string) error {
		v, err := number(s)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return m.put(name, v*trips/1e6)
	}
	err = errors.Join(put("latency_mean_seconds", avg[0][2]), put("latency_stddev_seconds", avg[0][3]))
	for _, o := range []struct {
		name, label string
		enough      float64 // with fewer observations it is the maximum by another name
	}{
		{"latency_max_seconds", "<MAX> observation", 1}, {"latency_min_seconds", "<MIN> observation", 1},
		{"latency_p50_seconds", "percentile 50.000", 2}, {"latency_p90_seconds", "percentile 90.000", 10},
		{"latency_p99_seconds", "percentile 99.000", 100}, {"latency_p999_seconds", "percentile 99.900", 1000},
	} {
		v, bad := sockperfFind(text, o.label, `---> `+regexp.QuoteMeta(o.label)+` += +([\d.]+)`)
		if bad != nil {
			return 0, bad
		}
		if seen >= o.enough {
			err = errors.Join(err, m.put(o.name, v[0]*trips/1e6))
		}
	}
	return trips, err
}

// sockperfThroughput reads the one-way test: what the client sent, and what its
// server received of it.
func sockperfThroughput(m metrics, p Params, text, server string) (measured float64, warnings []string, err error) {
	sent, err1 := sockperfFind(text, "messages sent", `Total of (\d+) messages sent in ([\d.]+) sec`)
	// Of messages larger than its idea of a packet it reports a packet rate too.
	rate, err2 := sockperfFind(text, "Message Rate", `Summary: Message Rate is (\d+) \[msg/sec\](?:, Packet Rate is about \d+ \[pkt/sec\] \(\d+ ip frags / msg\))?`)
	received, err3 := sockperfFind(server, "messages received (the server's)", `Total (\d+) messages received and handled`)
	if err := errors.Join(err1, err2, err3); err != nil {
		return 0, nil, err
	}
	strangers, bad := sockperfStrangers(server, sent[0])
	if bad != nil {
		return 0, nil, bad
	}
	received[0] = min(received[0], sent[0])
	if sent[0] == 0 || sent[1] == 0 || rate[0] == 0 || received[0] == 0 {
		return 0, nil, fmt.Errorf("%.0f messages received of %.0f sent in %g s", received[0], sent[0], sent[1])
	}
	// The rate is exact to a message per second, the time to a millisecond only.
	measured = sent[0] / rate[0]
	if diff := measured - sent[1]; diff > 0.01*sent[1] || diff < -0.01*sent[1] {
		return 0, nil, fmt.Errorf("%.0f messages in %g s are not %.0f a second", sent[0], sent[1], rate[0])
	}
	size := float64(p.Cell.MessageBytes)
	if size == 0 {
		size = sockperfSmallest
	}
	err = errors.Join(
		m.put("throughput_bits_per_second", received[0]*size*8/measured), m.put("sent_throughput_bits_per_second", sent[0]*size*8/measured),
	)
	if p.Cell.Protocol != "tcp" {
		err = errors.Join(err,
			m.put("packets_per_second", received[0]/measured), m.put("sent_packets_per_second", rate[0]),
			m.put("packets_received", received[0]), m.put("packets_sent", sent[0]),
			m.put("packets_lost", sent[0]-received[0]), m.put("loss_ratio", (sent[0]-received[0])/sent[0]))
	}
	warnings, bad = sockperfRate(m, p.Cell.RatePerSecond, rate[0], measured)
	return measured, append(strangers, warnings...), errors.Join(err, bad)
}

// sockperfRate compares a requested rate with what was sent in some seconds.
// The first messages go out at once, which short runs show.
func sockperfRate(m metrics, asked, sent, seconds float64) (warnings []string, err error) {
	if asked <= 0 {
		return nil, nil
	}
	if rateMissed(asked, sent) && math.Abs(sent-asked) > asked*0.0005+5/seconds {
		warnings = []string{rateWarning("sockperf", asked, sent, "messages/s")}
	}
	return warnings, m.put("achieved_rate_per_second", sent)
}
