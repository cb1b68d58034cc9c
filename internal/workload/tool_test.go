package workload_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/unit"
	"github.com/cnibench/cnibench/internal/workload"
)

var update = flag.Bool("update", false, "write the golden files")

// fixture is what both ends of one sample gave, kept as
// testdata/<tool>/<name>.txtar. Its comment says where it comes from.
type fixture struct {
	comment        string
	cell           result.Cell
	server, client workload.Output
	want           string
}

// outcome is what must be read from a fixture.
type outcome struct {
	Error           string             `json:"error,omitempty"`
	MeasuredSeconds float64            `json:"measured_seconds,omitempty"`
	Metrics         map[string]float64 `json:"metrics,omitempty"`
	Tools           map[string]string  `json:"tools,omitempty"`
	Warnings        []string           `json:"warnings,omitempty"`
}

func readFixture(t testing.TB, path string) fixture {
	t.Helper()
	a, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f := fixture{comment: string(a.Comment)}
	for _, file := range a.Files {
		text := string(file.Data)
		end := &f.client
		if strings.HasPrefix(file.Name, "server.") {
			end = &f.server
		}
		switch name := strings.TrimPrefix(strings.TrimPrefix(file.Name, "server."), "client."); name {
		case "cell.json":
			if err := json.Unmarshal(file.Data, &f.cell); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
		case "want.json":
			f.want = text
		case "argv":
			end.Argv = strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		case "stdout":
			end.Stdout = text
		case "stderr":
			end.Stderr = text
		case "version":
			end.ToolVersion = strings.TrimSpace(text)
		case "killed":
			end.Killed = strings.TrimSpace(text)
		case "exit":
			if end.ExitCode, err = strconv.Atoi(strings.TrimSpace(text)); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
		default:
			t.Fatalf("%s: unknown part %q", path, file.Name)
		}
	}
	return f
}

func (f fixture) write(t testing.TB, path string) {
	t.Helper()
	cell, err := json.Marshal(f.cell)
	if err != nil {
		t.Fatal(err)
	}
	a := &txtar.Archive{Comment: []byte(f.comment)}
	add := func(name, text string) {
		if text == "" {
			return
		}
		if !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		a.Files = append(a.Files, txtar.File{Name: name, Data: []byte(text)})
	}
	add("cell.json", string(cell))
	for _, e := range []struct {
		name string
		out  workload.Output
	}{{"client", f.client}, {"server", f.server}} {
		add(e.name+".version", e.out.ToolVersion)
		add(e.name+".argv", strings.Join(e.out.Argv, "\n"))
		add(e.name+".stdout", e.out.Stdout)
		add(e.name+".stderr", e.out.Stderr)
		add(e.name+".killed", e.out.Killed)
		if e.out.ExitCode != 0 {
			add(e.name+".exit", strconv.Itoa(e.out.ExitCode))
		}
	}
	add("want.json", f.want)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, txtar.Format(a), 0o644); err != nil {
		t.Fatal(err)
	}
}

func find(t testing.TB, name string) workload.Workload {
	t.Helper()
	w, err := workload.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func paramsOf(c result.Cell) workload.Params {
	return workload.Params{Cell: c, Window: time.Second}
}

// read is what a fixture is parsed to.
func (f fixture) read(t testing.TB) string {
	t.Helper()
	m, err := find(t, f.cell.Workload).Parse(paramsOf(f.cell), f.server, f.client)
	got := outcome{MeasuredSeconds: m.MeasuredSeconds, Metrics: m.Metrics, Tools: m.Tools, Warnings: m.Warnings}
	if err != nil {
		got = outcome{Error: err.Error()}
	}
	raw, err := json.MarshalIndent(got, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(raw) + "\n"
}

func fixtures(t testing.TB, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", pattern))
	if err != nil {
		t.Fatal(err)
	}
	if len(paths) == 0 {
		t.Fatalf("no fixtures %s", pattern)
	}
	return paths
}

// TestParse runs every parser on captured output.
func TestParse(t *testing.T) {
	for _, path := range fixtures(t, "*/*.txtar") {
		t.Run(strings.TrimSuffix(strings.TrimPrefix(path, "testdata/"), ".txtar"), func(t *testing.T) {
			f := readFixture(t, path)
			got := f.read(t)
			if *update {
				f.want = got
				f.write(t, path)
				return
			}
			if diff := cmp.Diff(f.want, got); diff != "" {
				t.Errorf("%s (want, got):\n%s", path, diff)
			}
		})
	}
}

// TestSpecs checks that every workload's Spec is usable.
func TestSpecs(t *testing.T) {
	for _, w := range workload.List() {
		s := w.Spec()
		for _, test := range append([]string{""}, s.Tests...) {
			if _, ok := unit.FindMetric(s.PrimaryFor(test)); !ok {
				t.Errorf("%s %s: primary metric %q is not known", s.Name, test, s.PrimaryFor(test))
			}
		}
		for test := range s.PrimaryByTest {
			if !strings.Contains(strings.Join(s.Tests, " ")+" ", test+" ") {
				t.Errorf("%s: a primary metric for a test %q that it does not have", s.Name, test)
			}
		}
		for _, tool := range s.Needs {
			if tool.Name == "" || tool.Cure == "" && (tool.Package == "" || len(tool.Version) == 0) {
				t.Errorf("%s: tool %+v is not described", s.Name, tool)
			}
		}
	}
}

// published are the command lines of publications, and more forms: the window
// is theirs, the rest is the cell.
func published() []struct {
	source  string
	seconds int
	cell    result.Cell
} {
	return []struct {
		source  string
		seconds int
		cell    result.Cell
	}{
		// Their -d only makes iperf3 print more (it is not iperf2's), so it is left out.
		{"Spiderpool v0.8: iperf3 -c IP -d -P 1", 10, result.Cell{Workload: "iperf3", Protocol: "tcp", Streams: 1}},
		{"Spiderpool v0.8: iperf3 -c IP -d -P 4", 10, result.Cell{Workload: "iperf3", Protocol: "tcp", Streams: 4}},
		{"Dakić 2024: UDP, 1472-byte messages", 10, result.Cell{Workload: "iperf3", Protocol: "udp", MessageBytes: 1472, Streams: 1}},
		{"UDP at a rate, two streams", 10, result.Cell{Workload: "iperf3", Protocol: "udp", MessageBytes: 1472, Streams: 2, RateBitsPerSecond: 1e9}},
		{"from server to client", 10, result.Cell{Workload: "iperf3", Protocol: "tcp", Streams: 8, Direction: "reverse"}},
		{"both directions, IPv6", 10, result.Cell{Workload: "iperf3", Protocol: "tcp", Streams: 1, Direction: "bidirectional", Family: "ipv6"}},
		{"Spiderpool v0.8: netperf -H IP -l 10 -c -t TCP_RR -- -r100,100", 10, result.Cell{Workload: "netperf", Test: "TCP_RR", MessageBytes: 100}},
		{"a stream of small messages", 10, result.Cell{Workload: "netperf", Test: "TCP_STREAM", MessageBytes: 64}},
		{"a stream with netperf's own size", 10, result.Cell{Workload: "netperf", Test: "TCP_STREAM"}},
		{"datagrams", 10, result.Cell{Workload: "netperf", Test: "UDP_STREAM", MessageBytes: 1472}},
		{"a connection for each transaction", 10, result.Cell{Workload: "netperf", Test: "TCP_CRR", MessageBytes: 1, ResponseBytes: 1000}},
		{"UDP transactions", 10, result.Cell{Workload: "netperf", Test: "UDP_RR", MessageBytes: 64}},
		{"Spiderpool v0.8: sockperf pp --tcp -i IP -p 12345 -t 30", 30, result.Cell{Workload: "sockperf", Test: "ping-pong", Protocol: "tcp", MessageBytes: 14}},
		{"datagrams under load", 30, result.Cell{Workload: "sockperf", Test: "under-load", Protocol: "udp", MessageBytes: 64, RatePerSecond: 50000}},
		{"one way", 30, result.Cell{Workload: "sockperf", Test: "throughput", Protocol: "udp", MessageBytes: 64}},
		{"Spiderpool v0.8: redis-benchmark -h IP -p 6379 -d 1000 -t get,set (one of them a sample)", 1, result.Cell{Workload: "redis", Test: "get", MessageBytes: 1000, Streams: 50}},
		{"the other", 1, result.Cell{Workload: "redis", Test: "set", MessageBytes: 1000, Streams: 50}},
		{"kept connections", 10, result.Cell{Workload: "http", Test: "keep-alive", MessageBytes: 1024, Streams: 10}},
		{"one connection for each request", 10, result.Cell{Workload: "http", Test: "close", MessageBytes: 1024, Streams: 1, Family: "ipv6"}},
	}
}

// TestArgv holds the command lines that --dry-run shows and the agents run.
func TestArgv(t *testing.T) {
	var b strings.Builder
	for _, c := range published() {
		w := find(t, c.cell.Workload)
		p := workload.Params{Cell: c.cell, Window: time.Duration(c.seconds) * time.Second}
		if c.cell.Direction != "" {
			p.Warmup = 200 * time.Millisecond
		}
		server := netip.MustParseAddrPort("198.18.0.2:40000")
		if c.cell.Family == "ipv6" {
			server = netip.MustParseAddrPort("[fd00:18::2]:40000")
		}
		serve, err := w.Serve(p)
		if err != nil {
			t.Fatalf("%s: %v", c.source, err)
		}
		drive, err := w.Drive(p, server)
		if err != nil {
			t.Fatalf("%s: %v", c.source, err)
		}
		fmt.Fprintf(&b, "# %s\n%s\n%s\n  probes %v after %v, killed after %v\n\n",
			c.source, strings.Join(serve.Argv, " "), strings.Join(drive.Argv, " "), drive.Window, drive.WindowOffset, drive.Timeout)
	}
	golden(t, "argv.golden", b.String())
}

// TestArgvBeforeTheServer holds that a dry run needs no server.
func TestArgvBeforeTheServer(t *testing.T) {
	for _, c := range published() {
		drive, err := find(t, c.cell.Workload).Drive(paramsOf(c.cell), netip.AddrPort{})
		if line := strings.Join(drive.Argv, " "); err != nil || !strings.Contains(line, "{address}") || !strings.Contains(line, "{port}") {
			t.Errorf("%s: %q, %v", c.source, line, err)
		}
	}
}

func TestRefusedCells(t *testing.T) {
	server := netip.MustParseAddrPort("198.18.0.2:65535")
	for _, c := range []struct {
		cell result.Cell
		want string
	}{
		{result.Cell{Workload: "sockperf", Test: "ping-pong", MessageBytes: 8}, "14 bytes or more"},
		{result.Cell{Workload: "sockperf", Test: "playback", MessageBytes: 14}, `no test "playback"`},
		{result.Cell{Workload: "netperf", Test: "TCP_RR"}, "the port after 65535"},
	} {
		_, err := find(t, c.cell.Workload).Drive(paramsOf(c.cell), server)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.cell, err, c.want)
		}
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (want, got):\n%s", path, diff)
	}
}
