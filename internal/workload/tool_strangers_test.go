package workload_test

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestStrangersInToolOutput: what a tool's output shows of strangers becomes a warning, or
// the reason of a failed sample.
func TestStrangersInToolOutput(t *testing.T) {
	refusal := `2026/11/23 06:00:00 [error] 7#7: *3 access forbidden by rule, client: 198.18.77.9, server: , request: "GET / HTTP/1.1", host: "x"` + "\n"
	server := func(old, new string) func(f *fixture) {
		return func(f *fixture) { f.server.Stdout = strings.ReplaceAll(f.server.Stdout, old, new) }
	}
	stderr := func(text string) func(f *fixture) { return func(f *fixture) { f.server.Stderr = text } }
	for _, c := range []struct {
		fixture string
		spoil   func(f *fixture)
		warning string
		err     string
		refused float64
	}{
		{fixture: "sockperf/ping_pong_udp", spoil: server("Total 146709", "Total 146719"), warning: "10 messages of strangers, 0.00682 % of what arrived: something else"},
		{fixture: "sockperf/ping_pong_tcp", spoil: server("Total 83169", "Total 85169"), warning: "2000 messages of strangers, 2.35 % of what arrived: the figures may be off by as much"},
		{fixture: "sockperf/ping_pong_udp", spoil: server("Total 146709", "Total 1467090"), err: "sockperf: the server's port was used by strangers: 1320381 messages"},
		{fixture: "sockperf/throughput_tcp", spoil: server("Total 385014", "Total 385015"), warning: "1 messages of strangers"},
		{fixture: "sockperf/throughput_tcp", spoil: server("Total 385014", "Total 785014"), err: "the server's port was used by strangers"},
		{fixture: "http/keep_alive", spoil: stderr(strings.Repeat(refusal, 5)), warning: "5 requests of strangers", refused: 5},
		{fixture: "http/keep_alive", spoil: stderr(strings.Repeat(refusal, 500)), err: "nginx refused"},
		{fixture: "http/keep_alive", spoil: stderr("2026/11/23 06:00:00 [warn] 7#7: something else\n")},
		{fixture: "iperf3/tcp_refused", spoil: func(f *fixture) {
			f.server.Stdout = `{"start":{"accepted_connection":{"host":"198.18.77.9","port":4},"cookie":"another"},"error":"interrupt"}`
		}, err: "taken by another client, at 198.18.77.9"},
	} {
		f := readFixture(t, filepath.Join("testdata", c.fixture+".txtar"))
		c.spoil(&f)
		m, err := find(t, f.cell.Workload).Parse(paramsOf(f.cell), f.server, f.client)
		switch {
		case c.err != "":
			if err == nil || !strings.Contains(err.Error(), c.err) || len(m.Metrics) > 0 {
				t.Errorf("%s: %v, want %q", c.fixture, err, c.err)
			}
		case err != nil:
			t.Errorf("%s: %v", c.fixture, err)
		case c.warning == "" && len(m.Warnings) > 0 || !strings.Contains(strings.Join(m.Warnings, "\n"), c.warning):
			t.Errorf("%s: warnings %q, want %q", c.fixture, m.Warnings, c.warning)
		case m.Metrics["strangers_refused"] != c.refused:
			t.Errorf("%s: %v refused, want %v", c.fixture, m.Metrics["strangers_refused"], c.refused)
		}
	}
}

// TestIperf3NamesNoStranger: a failure of a test that served its own client blames nobody.
func TestIperf3NamesNoStranger(t *testing.T) {
	for server, client := range map[string]string{
		`{"start":{"accepted_connection":{"host":"198.18.77.1"},"cookie":"c"}}`: `{"start":{"cookie":"c"},"error":"cut"}`,
		`{"start":{}}`: `{"error":"cut"}`,
		`{"start":{"accepted_connection":{"host":"198.18.77.2"},"cookie":"e"}}`: ``, // the client was killed
		`{"start":{"accepted_connection":{"host":"198.18.77.1"},"cookie":"f"}}`: `{"error":"cut"}`,
		`no JSON`: `{"error":"cut"}`,
		`{"start":{"accepted_connection":{"host":"\u001b[2J"},"cookie":"d"}}`: `{"error":"cut"}`,
	} {
		f := readFixture(t, "testdata/iperf3/tcp_refused.txtar")
		f.client.Stdout, f.server.Stdout, f.client.Source = client, server, "198.18.77.1"
		_, err := find(t, "iperf3").Parse(paramsOf(f.cell), f.server, f.client)
		if err == nil || strings.Contains(err.Error(), "taken") {
			t.Errorf("%s: %v", server, err)
		}
	}
}
