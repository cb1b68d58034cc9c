package workload

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Netperf is netperf's omni tests, read by key (netperf manual, "Omni Output
// Selection"). netperf has no warm-up and takes whole seconds.
type Netperf struct{}

// netperfPadding is how long netserver waits on before it answers, after a
// TCP_CRR and after a UDP_STREAM whose last datagrams were lost (PAD_TIME of
// netperf's sources; seen as 4.0 s).
const netperfPadding = 4 * time.Second

// Spec describes netperf.
func (Netperf) Spec() Spec {
	const transactions = "transactions_per_second"
	return Spec{
		Name:          "netperf",
		Summary:       "netperf, streams and transactions; whole seconds, no warm-up",
		Primary:       "throughput_bits_per_second",
		PrimaryByTest: map[string]string{"TCP_RR": transactions, "TCP_CRR": transactions, "UDP_RR": transactions},
		Needs: []Tool{
			{Name: "netperf", Package: "netperf", Version: []string{"netperf", "-V"}},
			{Name: "netserver", Package: "netperf", Version: []string{"netserver", "-V"}},
		},
		Factors:               []string{"message_bytes", "response_bytes", "cpus", "congestion_control"},
		SetsCongestionControl: true,
		DefaultCPUs:           sameCPU,
		Tests:                 []string{"TCP_STREAM", "UDP_STREAM", "TCP_RR", "TCP_CRR", "UDP_RR"},
	}
}

// netperfKeys are the output selectors that are asked for, in this order: where
// the last is there, all are.
func netperfKeys() []string {
	return []string{
		"THROUGHPUT", "THROUGHPUT_UNITS", "ELAPSED_TIME",
		"LOCAL_SEND_SIZE", "REQUEST_SIZE", "RESPONSE_SIZE",
		"LOCAL_SEND_THROUGHPUT", "REMOTE_RECV_THROUGHPUT",
		"LOCAL_SEND_CALLS", "LOCAL_BYTES_SENT", "REMOTE_BYTES_RECVD",
		"MIN_LATENCY", "MEAN_LATENCY", "P50_LATENCY", "P90_LATENCY", "P99_LATENCY", "MAX_LATENCY", "STDDEV_LATENCY",
		"LOCAL_TRANSPORT_RETRANS", "TRANSPORT_MSS",
		"LOCAL_CPU_UTIL", "REMOTE_CPU_UTIL", "LOCAL_SD", "REMOTE_SD", "SD_UNITS",
	}
}

func (Netperf) length(p Params) time.Duration { return seconds(wholeSeconds(p.Window)) }

// Serve is netserver in the foreground.
func (w Netperf) Serve(p Params) (Program, error) {
	argv := netperfPassphrase([]string{"netserver", "-D", "-L", "{bind}", "-p", "{port}"}, p.Token)
	serve := timed(Program{Argv: argv, AnyAddress: anyAddress(p.Cell), Port: true, Ready: "tcp"}, 0, w.length(p))
	serve.Timeout += netperfPadding
	serve.NetAdmin = p.Cell.CongestionControl != ""
	return serve, nil
}

// netperfPassphrase has netserver refuse control connections that do not begin with the
// sample's token (-Z, since 2.7.0).
func netperfPassphrase(argv []string, token string) []string {
	if token == "" {
		return argv
	}
	return append(argv, "-Z", token)
}

// Drive is netperf. The data port is the one after the control port, so that a
// Service or a firewall can know it.
func (w Netperf) Drive(p Params, server netip.AddrPort) (Program, error) {
	host, port := target(server)
	data := "{port}+1"
	if server.IsValid() {
		if server.Port() == math.MaxUint16 {
			return Program{}, fmt.Errorf("netperf needs the port after %d for its data: run the sample again", server.Port())
		}
		data = strconv.Itoa(int(server.Port()) + 1)
	}
	c, length := p.Cell, wholeSeconds(p.Window)
	argv := []string{"netperf", "-H", host, "-p", port, "-l", strconv.Itoa(length), "-c", "-C", "-t", c.Test}
	argv = append(netperfPassphrase(argv, p.Token), "--")
	switch {
	case c.MessageBytes == 0:
	case netperfStream(c.Test):
		argv = append(argv, "-m", strconv.Itoa(c.MessageBytes))
	default:
		response := c.ResponseBytes
		if response == 0 {
			response = c.MessageBytes
		}
		argv = append(argv, fmt.Sprintf("-r%d,%d", c.MessageBytes, response))
	}
	if c.Test == "UDP_STREAM" {
		// Without it netperf keeps its datagrams on the local link (SO_DONTROUTE).
		argv = append(argv, "-R", "1")
	}
	if c.CongestionControl != "" {
		argv = append(argv, "-K", c.CongestionControl+","+c.CongestionControl)
	}
	argv = append(argv, "-P", ","+data, "-k", strings.Join(netperfKeys(), ","))
	drive := timed(Program{Argv: argv, NetAdmin: c.CongestionControl != ""}, 0, w.length(p))
	drive.Timeout += netperfPadding
	return drive, nil
}

func netperfStream(test string) bool { return strings.HasSuffix(test, "_STREAM") }

// Parse reads the KEY=value lines.
func (Netperf) Parse(p Params, server, client Output) (Measurement, error) {
	if err := over(client, server, ""); err != nil {
		return Measurement{}, err
	}
	version := client.ToolVersion
	keys, err := netperfLines(client.Stdout)
	if err != nil {
		return Measurement{}, notUnderstood("netperf", version, err.Error())
	}
	elapsed, err := keys.need("ELAPSED_TIME")
	if err == nil && elapsed <= 0 {
		err = errors.New("ELAPSED_TIME is 0")
	}
	if err != nil {
		return Measurement{}, notUnderstood("netperf", version, err.Error())
	}
	m := metrics{}
	switch {
	case p.Cell.Test == "UDP_STREAM":
		err = errors.Join(keys.stream(m), keys.datagrams(m, elapsed))
	case netperfStream(p.Cell.Test):
		err = errors.Join(keys.stream(m), keys.copy(m, "retransmits", "LOCAL_TRANSPORT_RETRANS", 1))
	default:
		err = keys.transactions(m, p)
	}
	err = errors.Join(err, keys.cost(m, p.Cell.Test), keys.copy(m, "tcp_mss_bytes", "TRANSPORT_MSS", 1))
	if err != nil {
		return Measurement{}, notUnderstood("netperf", version, err.Error())
	}
	return Measurement{MeasuredSeconds: elapsed, Metrics: m, Tools: versions(client, server)}, nil
}

// netperfValues are the lines by their whole key.
type netperfValues map[string]string

func netperfLines(out string) (netperfValues, error) {
	asked, values := netperfKeys(), netperfValues{}
	for line := range strings.Lines(out) {
		key, value, found := strings.Cut(strings.TrimRight(line, "\r\n"), "=")
		if !found || !slices.Contains(asked, key) {
			continue // its banner
		}
		if _, twice := values[key]; twice {
			return nil, fmt.Errorf("%s occurs twice", key)
		}
		values[key] = value
	}
	if len(values) == 0 {
		return nil, errors.New("it holds no KEY=value line")
	}
	if last := asked[len(asked)-1]; values[last] == "" {
		return nil, fmt.Errorf("%s, the last that was asked for, is missing", last)
	}
	return values, whole(out)
}

// need is a value that must be there.
func (v netperfValues) need(key string) (float64, error) {
	s, ok := v[key]
	if !ok {
		return 0, fmt.Errorf("%s is missing", key)
	}
	n, err := number(s)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", key, err)
	}
	return n, nil
}

// known is a value that netperf may not know: it prints a negative number then.
func (v netperfValues) known(key string) (n float64, ok bool, err error) {
	s, there := v[key]
	if digits, negative := strings.CutPrefix(s, "-"); negative {
		_, err := number(digits)
		return 0, false, err
	}
	if !there {
		return 0, false, nil
	}
	n, err = v.need(key)
	return n, err == nil, err
}

// copy puts a value that netperf may not know, divided by per.
func (v netperfValues) copy(m metrics, name, key string, per float64) error {
	n, ok, err := v.known(key)
	if err != nil || !ok {
		return err
	}
	return m.put(name, n/per)
}

// stream reads a STREAM's throughput: what the other end received.
func (v netperfValues) stream(m metrics) error {
	if u := v["THROUGHPUT_UNITS"]; u != "10^6bits/s" {
		return fmt.Errorf("unknown THROUGHPUT_UNITS %q", clip(u))
	}
	received, err := v.need("REMOTE_RECV_THROUGHPUT")
	if err != nil {
		return err
	}
	if received == 0 {
		return errors.New("nothing was received")
	}
	sent, err := v.need("LOCAL_SEND_THROUGHPUT")
	return errors.Join(err, m.put("throughput_bits_per_second", received*1e6), m.put("sent_throughput_bits_per_second", sent*1e6))
}

// datagrams counts UDP_STREAM's packets, each of LOCAL_SEND_SIZE bytes.
func (v netperfValues) datagrams(m metrics, elapsed float64) error {
	size, err1 := v.need("LOCAL_SEND_SIZE")
	sentBytes, err2 := v.need("LOCAL_BYTES_SENT")
	receivedBytes, err3 := v.need("REMOTE_BYTES_RECVD")
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	if size < 1 || receivedBytes > sentBytes {
		return fmt.Errorf("%g bytes received of %g sent in datagrams of %g", receivedBytes, sentBytes, size)
	}
	sent, received := sentBytes/size, receivedBytes/size
	return errors.Join(
		m.put("packets_sent", sent), m.put("sent_packets_per_second", sent/elapsed),
		m.put("packets_received", received), m.put("packets_per_second", received/elapsed),
		m.put("packets_lost", sent-received), m.put("loss_ratio", (sent-received)/sent),
	)
}

// transactions reads RR and CRR tests. Latencies are in µs, of one transaction at
// a time.
func (v netperfValues) transactions(m metrics, p Params) error {
	if u := v["THROUGHPUT_UNITS"]; u != "Trans/s" {
		return fmt.Errorf("unknown THROUGHPUT_UNITS %q", clip(u))
	}
	rate, err := v.need("THROUGHPUT")
	if err != nil {
		return err
	}
	if rate == 0 {
		return errors.New("no transaction came back")
	}
	if want := p.Cell.MessageBytes; want > 0 && v["REQUEST_SIZE"] != strconv.Itoa(want) {
		return fmt.Errorf("requests of %q bytes where %d were asked for", clip(v["REQUEST_SIZE"]), want)
	}
	err = m.put("transactions_per_second", rate)
	for _, c := range []struct{ name, key string }{
		{"latency_mean_seconds", "MEAN_LATENCY"}, {"latency_min_seconds", "MIN_LATENCY"}, {"latency_p50_seconds", "P50_LATENCY"},
		{"latency_p90_seconds", "P90_LATENCY"}, {"latency_p99_seconds", "P99_LATENCY"}, {"latency_max_seconds", "MAX_LATENCY"},
		{"latency_stddev_seconds", "STDDEV_LATENCY"},
	} {
		err = errors.Join(err, v.copy(m, c.name, c.key, 1e6))
	}
	return err
}

// cost reads netperf's own CPU figures: the share of all CPUs of each machine,
// and CPU time per KiB or per transaction. Where netserver waits on (see
// netperfPadding) it counts the CPU time of that as well, against the length of
// the test alone; 482 % of all CPUs was seen. Its figures are left out there.
func (v netperfValues) cost(m metrics, test string) error {
	name, per, unit := "per_transaction", 1e6, "usec/Tran"
	if netperfStream(test) {
		// KB is 1024 bytes here: CPU utilisation × CPUs × time ÷ bytes gives it.
		name, per, unit = "per_byte", 1e6*1024, "usec/KB"
	}
	if u := v["SD_UNITS"]; u != unit {
		return fmt.Errorf("unknown SD_UNITS %q", clip(u))
	}
	err := errors.Join(v.copy(m, "client_cpu_ratio", "LOCAL_CPU_UTIL", 100), v.copy(m, "client_service_demand_seconds_"+name, "LOCAL_SD", per))
	if util, _, _ := v.known("REMOTE_CPU_UTIL"); test == "TCP_CRR" || test == "UDP_STREAM" || util > 100.5 {
		return err
	}
	return errors.Join(err, v.copy(m, "server_cpu_ratio", "REMOTE_CPU_UTIL", 100), v.copy(m, "server_service_demand_seconds_"+name, "REMOTE_SD", per))
}
