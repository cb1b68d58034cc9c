package workload_test

import (
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/labtest/fuzzed"
	"github.com/cnibench/cnibench/internal/unit"
	"github.com/cnibench/cnibench/internal/workload"
)

// TestNotUnderstood edits captured output into what must be refused: units and
// versions that are not known, values that are missing, text that is torn.
func TestNotUnderstood(t *testing.T) {
	for _, c := range []struct{ fixture, old, new, want string }{
		{"iperf3/tcp", "iperf 3.12", "iperf 3.1.3", "version 3.1 is not known"},
		{"iperf3/tcp", "iperf 3.12", "iperf 4.0", "version 4.0 is not known"},
		{"iperf3/tcp", "iperf 3.12", "iperf version 2.1.9", "no version in"},
		{"iperf3/tcp", `"protocol":	"TCP"`, `"protocol":	"SCTP"`, `protocol "SCTP" where "tcp" was asked for`},
		{"iperf3/tcp", `"num_streams":	1`, `"num_streams":	2`, "2 streams where 1 were asked for"},
		{"iperf3/tcp", `"blksize":	1472`, `"blksize":	1448`, "messages of 1448 bytes"},
		{"iperf3/tcp", `"sum_received"`, `"sum_receive"`, "sum_received: it is missing"},
		{"iperf3/tcp", `"server_output_json"`, `"server_output_text"`, "not understood"},
		{"iperf3/tcp", `"start":	{`, `"error": "the server is busy", "start":	{`, "iperf3 (client): the server is busy"},
		{"iperf3/tcp", `"server_output_json":	{`, `"server_output_json":	{"error": "out of memory",`, "server: out of memory"},
		{"iperf3/udp", `"seconds":	1.0004`, `"seconds":	9.0004`, "are not"},
		{"iperf3/udp_reverse", `"reverse":	1`, `"reverse":	0`, "its direction is not the one asked for"},
		{"netperf/tcp_stream", "10^6bits/s", "10^9bits/s", `unknown THROUGHPUT_UNITS "10^9bits/s"`},
		{"netperf/tcp_stream", "usec/KB", "usec/MB", `unknown SD_UNITS "usec/MB"`},
		{"netperf/tcp_stream", "REMOTE_RECV_THROUGHPUT=", "XREMOTE_RECV_THROUGHPUT=", "REMOTE_RECV_THROUGHPUT is missing"},
		{"netperf/tcp_stream", "REMOTE_RECV_THROUGHPUT=", "REMOTE_RECV_THROUGHPUT=nan", "is no number"},
		{"netperf/tcp_rr", "Trans/s", "Trans/min", "unknown THROUGHPUT_UNITS"},
		{"netperf/tcp_rr", "REQUEST_SIZE=100", "REQUEST_SIZE=1", "where 100 were asked for"},
		{"netperf/tcp_rr", "\nTHROUGHPUT_UNITS", "\nTHROUGHPUT=1\nTHROUGHPUT_UNITS", "THROUGHPUT occurs twice"},
		{"sockperf/ping_pong_tcp", " usec\n", " nsec\n", "unknown unit"},
		{"sockperf/ping_pong_tcp", "avg-rtt", "avg-owd", `unknown average "owd"`},
		{"sockperf/ping_pong_tcp", "percentile 99.000", "percentile 99", "0 lines of percentile 99.000"},
		{"sockperf/ping_pong_tcp", "# dropped", "# lost", "0 lines of dropped messages"},
		{"sockperf/throughput_udp", "[msg/sec]", "[msg/msec]", "0 lines of Message Rate"},
		{"sockperf/throughput_udp", "messages sent in", "messages send in", "0 lines of messages sent"},
		{"redis/get", `"rps"`, `"requests"`, "no header"},
		{"redis/get", `"GET"`, `"MSET"`, "no row of GET"},
		{"redis/get", `"GET","`, `"GET","-`, "is no number"},
		{"http/keep_alive", "MB\n", "MiB\n", "has no unit that is known"},
		{"http/keep_alive", "     99%", "     98%", "0 lines of 99%"},
		{"http/keep_alive", "Requests/sec:", "  Non-2xx or 3xx responses: 47374\nRequests/sec:", "47374"},
	} {
		f := readFixture(t, filepath.Join("testdata", c.fixture+".txtar"))
		if !strings.Contains(f.client.Stdout, c.old) {
			t.Errorf("%s: no %q to edit", c.fixture, c.old)
			continue
		}
		f.client.Stdout = strings.ReplaceAll(f.client.Stdout, c.old, c.new)
		f.refused(t, c.fixture+" "+c.new, c.want)
	}
}

func (f fixture) refused(t *testing.T, what, want string) {
	t.Helper()
	m, err := find(t, f.cell.Workload).Parse(paramsOf(f.cell), f.server, f.client)
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: %v %v, want %q", what, m.Metrics, err, want)
	}
	if len(m.Metrics) > 0 {
		t.Errorf("%s: refused, yet there are metrics", what)
	}
}

// TestTorn cuts every captured output at every length: what is left is refused,
// or read as the whole was, never as something else.
func TestTorn(t *testing.T) {
	for _, path := range fixtures(t, "*/*.txtar") {
		f := readFixture(t, path)
		whole, err := find(t, f.cell.Workload).Parse(paramsOf(f.cell), f.server, f.client)
		if err != nil {
			continue
		}
		full := f.client.Stdout
		for cut := 0; cut < len(full); cut += 1 + len(full)/300 {
			f.client.Stdout = full[:cut]
			m, err := find(t, f.cell.Workload).Parse(paramsOf(f.cell), f.server, f.client)
			if err != nil {
				continue
			}
			for name, v := range m.Metrics {
				if v != whole.Metrics[name] {
					t.Errorf("%s cut at %d of %d: %s is %g, was %g", path, cut, len(full), name, v, whole.Metrics[name])
				}
			}
		}
	}
}

// TestEnds holds that a program that ended badly fails the sample, whatever it
// printed before.
func TestEnds(t *testing.T) {
	for _, path := range fixtures(t, "*/*.txtar") {
		whole := readFixture(t, path)
		if strings.Contains(whole.want, `"error"`) {
			continue
		}
		for _, c := range []struct {
			spoil func(f *fixture)
			want  string
		}{
			{func(f *fixture) { f.client.ExitCode = 3 }, "(client) ended with status 3"},
			{func(f *fixture) { f.client.ExitCode = -1 }, "(client) was ended by a signal"},
			{func(f *fixture) { f.server.ExitCode, f.server.OutOfMemory = -1, true }, "(server) was killed by the kernel: out of memory"},
			{func(f *fixture) { f.client.Killed = "timeout" }, "(client) did not end in time"},
			{func(f *fixture) { f.server.ExitCode = -1 }, "(server) was ended by a signal"},
			{func(f *fixture) { f.server.Killed = "timeout" }, "(server) did not end in time"},
			{func(f *fixture) { f.client.Stdout, f.client.ExitCode = "", 1 }, "(client) ended with status 1"},
			{func(f *fixture) { f.client.Stdout = "" }, "not understood"},
		} {
			f := whole
			c.spoil(&f)
			f.refused(t, path, c.want)
		}
	}
}

// TestAbsent holds that what a tool does not know is absent, not 0.
func TestAbsent(t *testing.T) {
	for _, c := range []struct{ fixture, old, new, metric string }{
		{"netperf/tcp_stream", "LOCAL_TRANSPORT_RETRANS=", "LOCAL_TRANSPORT_RETRANS=-", "retransmits"},
		{"netperf/tcp_rr", "STDDEV_LATENCY=", "X=", "latency_stddev_seconds"},
		{"netperf/tcp_crr", "", "", "server_cpu_ratio"},
		{"netperf/udp_stream", "", "", "server_service_demand_seconds_per_byte"},
		{"netperf/tcp_rr", "REMOTE_CPU_UTIL=", "REMOTE_CPU_UTIL=4", "server_cpu_ratio"},
		{"sockperf/under_load", "", "", "latency_p99_seconds"}, // of 26 observations
		{"iperf3/udp", `"lost_packets":	2`, `"lost_packets":	12`, "packets_lost"},
		{"iperf3/tcp", `"retransmits"`, `"retransmit"`, "retransmits"},
		{"redis/get", "p99_latency_ms", "p98_latency_ms", "latency_p99_seconds"},
		{"http/keep_alive", "", "", "requests_failed"},
	} {
		f := readFixture(t, filepath.Join("testdata", c.fixture+".txtar"))
		if !strings.Contains(f.client.Stdout, c.old) {
			t.Errorf("%s: no %q to edit", c.fixture, c.old)
		}
		if c.old != "" {
			f.client.Stdout = strings.ReplaceAll(f.client.Stdout, c.old, c.new)
		}
		m, err := find(t, f.cell.Workload).Parse(paramsOf(f.cell), f.server, f.client)
		if v, ok := m.Metrics[c.metric]; ok || err != nil {
			t.Errorf("%s: %s is %g, %v; it must be absent", c.fixture, c.metric, v, err)
		}
	}
}

// TestSocketErrors holds that wrk's failed requests are recorded.
func TestSocketErrors(t *testing.T) {
	f := readFixture(t, "testdata/http/keep_alive.txtar")
	f.client.Stdout = strings.Replace(f.client.Stdout, "Requests/sec:", "  Socket errors: connect 0, read 1, write 69, timeout 0\nRequests/sec:", 1)
	m, err := find(t, "http").Parse(paramsOf(f.cell), f.server, f.client)
	if err != nil || m.Metrics["requests_failed"] != 70 || len(m.Warnings) != 1 {
		t.Errorf("%v %v %v", m.Metrics, m.Warnings, err)
	}
}

// FuzzParse feeds garbage to every parser: none panics, and none gives a number
// that is not finite, or a name that the records do not know.
func FuzzParse(f *testing.F) {
	var cells []fixture
	for _, path := range fixtures(f, "*/*.txtar") {
		x := readFixture(f, path)
		if strings.Contains(x.want, `"error"`) {
			continue
		}
		f.Add(uint8(len(cells)), x.client.Stdout, x.server.Stdout)
		cells = append(cells, x)
	}
	f.Fuzz(func(t *testing.T, which uint8, client, server string) {
		defer fuzzed.Within(t)()
		x := cells[int(which)%len(cells)]
		x.client.Stdout, x.server.Stdout = client, server
		m, err := find(t, x.cell.Workload).Parse(paramsOf(x.cell), x.server, x.client)
		if err != nil {
			if len(m.Metrics) > 0 {
				t.Error("an error and metrics")
			}
			return
		}
		check(t, m, find(t, x.cell.Workload).Spec().PrimaryFor(x.cell.Test))
	})
}

func check(t *testing.T, m workload.Measurement, primary string) {
	t.Helper()
	if m.MeasuredSeconds <= 0 || math.IsInf(m.MeasuredSeconds, 0) || math.IsNaN(m.MeasuredSeconds) {
		t.Errorf("measured %g s", m.MeasuredSeconds)
	}
	if m.Metrics[primary] <= 0 {
		t.Errorf("%s is %g", primary, m.Metrics[primary])
	}
	for name, v := range m.Metrics {
		if _, ok := unit.FindMetric(name); !ok || v < 0 || math.IsInf(v, 0) || math.IsNaN(v) {
			t.Errorf("%s is %g", name, v)
		}
	}
}
