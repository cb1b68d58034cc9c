package workload_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/labtest/space"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/workload"
)

var capture = flag.Bool("capture", false, "keep what the real tools printed as fixtures")

// TestMain lets the test binary stand in for the agent.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "agent" {
		os.Exit(agent.Serve(context.Background(), os.Stdin, os.Stdout))
	}
	os.Exit(m.Run())
}

// wire is two network namespaces, a veth pair between them and an agent in each.
type wire struct {
	runner             *exec.Runner
	clientNS, serverNS string // their files
	server, client     *agent.Client
	inode              uint64                // of the server's namespace
	address            map[string]netip.Addr // by family; "" is IPv4
}

func newWire(t *testing.T) wire {
	t.Helper()
	labtest.Root(t)
	if testing.Short() {
		t.Skip("runs real tools for a minute: leave -short out")
	}
	labtest.Tool(t, "ip", "iproute2")
	labtest.Feature(t, "veth", netns.Veth().Probe())
	runner := exec.NewRunner()
	t.Cleanup(runner.Close)
	var spaces []netns.NS
	for _, role := range []string{"client", "server"} {
		spaces = append(spaces, space.New(t, role))
	}
	ip := func(ns netns.NS, args string) {
		t.Helper()
		if _, err := runner.Run(t.Context(), exec.Cmd{Argv: append([]string{"ip"}, strings.Fields(args)...), NetNS: ns.Path}); err != nil {
			t.Fatal(err)
		}
	}
	ip(spaces[0], "link add cnb0 type veth peer name cnb0 netns "+spaces[1].Name)
	for i, ns := range spaces {
		ip(ns, fmt.Sprintf("addr add 198.18.77.%d/24 dev cnb0", i+1))
		ip(ns, fmt.Sprintf("addr add fd00:77::%d/64 dev cnb0 nodad", i+1))
		ip(ns, "link set cnb0 up")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var clients []*agent.Client
	for _, ns := range spaces {
		c, err := agent.Start(t.Context(), runner, []string{self, "agent"}, ns.Path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		clients = append(clients, c)
	}
	inode, err := spaces[1].Inode()
	if err != nil {
		t.Fatal(err)
	}
	return wire{runner: runner, clientNS: spaces[0].Path, serverNS: spaces[1].Path, client: clients[0], server: clients[1], inode: inode, address: map[string]netip.Addr{
		"": netip.MustParseAddr("198.18.77.2"), "ipv6": netip.MustParseAddr("fd00:77::2"),
	}}
}

// run runs one cell as the bench loop does. during, when not nil, is called
// while the client runs.
func (w wire) run(t *testing.T, p workload.Params, during func()) fixture {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	c := p.Cell
	p.Token = "tokentoken"
	serve, err := find(t, c.Workload).Serve(p)
	if err != nil {
		t.Fatal(err)
	}
	var session agent.ServeResult
	if err := w.server.Call(ctx, agent.MethodServe, agent.ServeParams{Program: serve, Address: w.address[c.Family].String()}, &session); err != nil {
		t.Fatal(err)
	}
	target := netip.AddrPortFrom(w.address[c.Family], session.Port)
	drive, err := find(t, c.Workload).Drive(p, target)
	if err != nil {
		t.Fatal(err)
	}
	if during != nil {
		go during()
	}
	f := fixture{cell: c}
	if err := w.client.Call(ctx, agent.MethodDrive, agent.DriveParams{Program: drive, Server: target.String()}, &f.client); err != nil {
		t.Fatal(err)
	}
	if err := w.server.Call(ctx, agent.MethodFinish, agent.FinishParams{Session: session.Session}, &f.server); err != nil {
		t.Fatal(err)
	}
	return f
}

// keep makes a fixture of what was captured.
func (f fixture) keep(t *testing.T, name, how string) {
	t.Helper()
	if !*capture {
		return
	}
	f.comment = fmt.Sprintf("Captured from the real tools between two network namespaces: %s\n", how)
	f.client.Probes, f.server.Probes = nil, nil
	f.want = f.read(t)
	f.write(t, filepath.Join("testdata", f.cell.Workload, name+".txtar"))
}

func needTools(t *testing.T, name string) {
	t.Helper()
	for _, tool := range find(t, name).Spec().Needs {
		labtest.Tool(t, tool.Name, tool.Package)
	}
}

func toolCells() []struct {
	name string
	cell result.Cell
} {
	return []struct {
		name string
		cell result.Cell
	}{
		{"tcp", result.Cell{Workload: "iperf3", Protocol: "tcp", MessageBytes: 1472, Streams: 1}},
		{"tcp_4_streams", result.Cell{Workload: "iperf3", Protocol: "tcp", Streams: 4, Family: "ipv6"}},
		{"tcp_reverse", result.Cell{Workload: "iperf3", Protocol: "tcp", Streams: 1, Direction: "reverse"}},
		{"tcp_bidirectional", result.Cell{Workload: "iperf3", Protocol: "tcp", Streams: 1, Direction: "bidirectional"}},
		{"tcp_rate", result.Cell{Workload: "iperf3", Protocol: "tcp", Streams: 2, RateBitsPerSecond: 50e6}},
		{"udp", result.Cell{Workload: "iperf3", Protocol: "udp", MessageBytes: 64, Streams: 1}},
		{"udp_rate", result.Cell{Workload: "iperf3", Protocol: "udp", MessageBytes: 1472, Streams: 2, RateBitsPerSecond: 50e6}},
		{"udp_reverse", result.Cell{Workload: "iperf3", Protocol: "udp", MessageBytes: 512, Streams: 1, Direction: "reverse"}},
		{"udp_bidirectional", result.Cell{Workload: "iperf3", Protocol: "udp", MessageBytes: 1472, Streams: 1, Direction: "bidirectional", RateBitsPerSecond: 50e6}},
		{"tcp_stream", result.Cell{Workload: "netperf", Test: "TCP_STREAM", MessageBytes: 1472}},
		{"udp_stream", result.Cell{Workload: "netperf", Test: "UDP_STREAM", MessageBytes: 64}},
		{"tcp_rr", result.Cell{Workload: "netperf", Test: "TCP_RR", MessageBytes: 100}},
		{"tcp_crr", result.Cell{Workload: "netperf", Test: "TCP_CRR", MessageBytes: 100, ResponseBytes: 1000}},
		{"udp_rr", result.Cell{Workload: "netperf", Test: "UDP_RR", MessageBytes: 64, Family: "ipv6"}},
		{"ping_pong_tcp", result.Cell{Workload: "sockperf", Test: "ping-pong", Protocol: "tcp", MessageBytes: 14}},
		{"ping_pong_udp", result.Cell{Workload: "sockperf", Test: "ping-pong", Protocol: "udp", MessageBytes: 64}},
		{"under_load", result.Cell{Workload: "sockperf", Test: "under-load", Protocol: "udp", MessageBytes: 64, RatePerSecond: 5000}},
		{"throughput_udp", result.Cell{Workload: "sockperf", Test: "throughput", Protocol: "udp", MessageBytes: 64}},
		{"throughput_tcp", result.Cell{Workload: "sockperf", Test: "throughput", Protocol: "tcp", MessageBytes: 1472}},
		{"throughput_tcp_9000", result.Cell{Workload: "sockperf", Test: "throughput", Protocol: "tcp", MessageBytes: 9000}},
		{"get", result.Cell{Workload: "redis", Test: "get", MessageBytes: 1000, Streams: 50}},
		{"set", result.Cell{Workload: "redis", Test: "set", MessageBytes: 1000, Streams: 50, Family: "ipv6"}},
		{"keep_alive", result.Cell{Workload: "http", Test: "keep-alive", MessageBytes: 1024, Streams: 10}},
		{"close", result.Cell{Workload: "http", Test: "close", MessageBytes: 1024, Streams: 1, Family: "ipv6"}},
	}
}

// TestTools runs every tool in every form for real.
func TestTools(t *testing.T) {
	w := newWire(t)
	for _, c := range toolCells() {
		t.Run(c.cell.Workload+"/"+c.name, func(t *testing.T) {
			needTools(t, c.cell.Workload)
			p := paramsOf(c.cell)
			f := w.run(t, p, nil)
			m, err := find(t, c.cell.Workload).Parse(p, f.server, f.client)
			if err != nil && !*capture {
				// A busy machine may leave a tool without CPU for most of a second.
				t.Logf("once more, for longer: %v", err)
				p.Window *= 4
				f = w.run(t, p, nil)
				m, err = find(t, c.cell.Workload).Parse(p, f.server, f.client)
			}
			if err != nil {
				t.Fatalf("%v\nclient: %s%s\nserver: %s%s", err, f.client.Stdout, f.client.Stderr, f.server.Stdout, f.server.Stderr)
			}
			primary := find(t, c.cell.Workload).Spec().PrimaryFor(c.cell.Test)
			if m.Metrics[primary] <= 0 || m.MeasuredSeconds <= 0.01 || m.MeasuredSeconds > 60 {
				t.Errorf("%s %g in %g s", primary, m.Metrics[primary], m.MeasuredSeconds)
			}
			if len(m.Tools) == 0 {
				t.Error("no version of the tools is known")
			}
			t.Logf("%s %.6g in %.3f s, probes %d + %d, warnings %q", primary, m.Metrics[primary], m.MeasuredSeconds, len(f.client.Probes), len(f.server.Probes), m.Warnings)
			f.keep(t, c.name, "1 s asked for.")
		})
	}
}

// TestRedisGetHasAValue holds that get reads a value of the size asked for: an
// empty answer would be faster.
func TestRedisGetHasAValue(t *testing.T) {
	w := newWire(t)
	needTools(t, "redis")
	p := paramsOf(result.Cell{Workload: "redis", Test: "get", MessageBytes: 1000})
	p.Token = "tokentoken"
	serve, err := find(t, "redis").Serve(p)
	if err != nil {
		t.Fatal(err)
	}
	var session agent.ServeResult
	if err := w.server.Call(t.Context(), agent.MethodServe, agent.ServeParams{Program: serve}, &session); err != nil {
		t.Fatal(err)
	}
	for _, k := range []struct{ password, command, want string }{
		{"tokentoken", "strlen key:__rand_int__", "1000"},
		{"", "strlen key:__rand_int__", "NOAUTH"}, {"wrong", "ping", "NOAUTH"},
		{"tokentoken", "config get dir", "unknown command"}, {"tokentoken", "module list", "unknown command"}, {"tokentoken", "eval return 0", "unknown command"},
	} {
		res, err := w.runner.Run(t.Context(), exec.Cmd{NetNS: w.clientNS, Env: []string{"REDISCLI_AUTH=" + k.password}, Argv: append([]string{
			"redis-cli", "-h", w.address[""].String(), "-p", fmt.Sprint(session.Port)}, strings.Fields(k.command)...)})
		if got := string(res.Stdout); err != nil || !strings.Contains(got, k.want) {
			t.Errorf("%s with password %q: %q, %v, want %s", k.command, k.password, got, err, k.want)
		}
	}
	if err := w.server.Call(t.Context(), agent.MethodFinish, agent.FinishParams{Session: session.Session}, nil); err != nil {
		t.Error(err)
	}
}

// TestToolFaults holds that a server that does not exist, or dies, fails the
// sample with the reason.
func TestToolFaults(t *testing.T) {
	w := newWire(t)
	for _, c := range toolCells() {
		switch c.name {
		case "tcp", "udp", "tcp_stream", "tcp_rr", "ping_pong_tcp", "ping_pong_udp", "keep_alive":
		default:
			continue
		}
		t.Run(c.cell.Workload+"/"+c.name+"/killed", func(t *testing.T) {
			needTools(t, c.cell.Workload)
			after := 500 * time.Millisecond
			if c.cell.Workload == "sockperf" {
				after += 2100 * time.Millisecond // it starts late
			}
			p := paramsOf(c.cell)
			if !*capture { // a fixture is of the shortest run
				p.Window = faultWindow(c.cell)
			}
			f := w.run(t, p, func() {
				time.Sleep(after)
				if err := w.killServing(); err != nil {
					t.Error(err)
				}
			})
			f.mustFail(t, p)
			f.keep(t, c.name+"_killed", "the server was killed in mid-run.")
		})
		t.Run(c.cell.Workload+"/"+c.name+"/refused", func(t *testing.T) {
			needTools(t, c.cell.Workload)
			drive, err := find(t, c.cell.Workload).Drive(paramsOf(c.cell), netip.AddrPortFrom(w.address[""], 9))
			if err != nil {
				t.Fatal(err)
			}
			f := fixture{cell: c.cell}
			if err := w.client.Call(t.Context(), agent.MethodDrive, agent.DriveParams{Program: drive, Server: "198.18.77.2:9"}, &f.client); err != nil {
				t.Fatal(err)
			}
			f.mustFail(t, paramsOf(c.cell))
			f.keep(t, c.name+"_refused", "nothing served on the port.")
		})
	}
}

// faultWindow is so long that a fault hits the tool in mid-run, however late a
// busy machine lets it strike: a minute where the tool ends with its server, and
// a few seconds where it runs its time all the same.
func faultWindow(c result.Cell) time.Duration {
	if c.Workload == "http" || c.Workload == "sockperf" && c.Protocol == "udp" {
		return 4 * time.Second
	}
	return time.Minute
}

func (f fixture) mustFail(t *testing.T, p workload.Params) {
	t.Helper()
	m, err := find(t, f.cell.Workload).Parse(p, f.server, f.client)
	if err == nil {
		t.Fatalf("no error but %v\nclient: %+v\nserver: %+v", m.Metrics, f.client, f.server)
	}
	t.Log(err)
}

// killServing kills what serves: all that runs in the server's namespace but
// the agent.
func (w wire) killServing() error {
	paths, err := filepath.Glob("/proc/[0-9]*/ns/net")
	if err != nil {
		return err
	}
	killed := 0
	for _, path := range paths {
		var pid int
		if _, err := fmt.Sscanf(path, "/proc/%d/ns/net", &pid); err != nil {
			return err
		}
		info, err := os.Stat(path)
		if err != nil {
			continue // it has ended
		}
		argv, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err != nil || info.Sys().(*syscall.Stat_t).Ino != w.inode || strings.HasSuffix(string(argv), "\x00agent\x00") {
			continue
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
		killed++
	}
	if killed == 0 {
		return errors.New("nothing serves")
	}
	return nil
}
