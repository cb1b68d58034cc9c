package lab

import (
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/traffic"
)

// TestToolsHaveTheCongestionControl: a tool without a flag for it has the cell's
// congestion control in force, also where the machine allows it to root alone, and the
// next cell that leaves it to the system has the machine's.
func TestToolsHaveTheCongestionControl(t *testing.T) {
	labtest.Tool(t, "python3", "python3")
	l := New(options(newRunner(t), t.TempDir()))
	tool := cells("bridge")[0]
	tool.Workload, tool.Test, tool.CongestionControl = "redis", "set", "cubic"
	asIs := tool
	asIs.CongestionControl = ""
	buildLab(t, l, slices.Concat(cells("bridge")[:1], []result.Cell{tool, asIs}))
	c := l.clusters[keyOf(tool)]
	machines, err := netns.Sysctl(c.nodes[0].NS, algorithmSysctl)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		cell result.Cell
		want string
	}{{tool, "cubic"}, {asIs, machines}, {tool, "cubic"}} {
		ends, err := l.Ends(t.Context(), step.cell)
		if err != nil {
			t.Fatal(err)
		}
		if len(ends.Client.Doubts) > 0 {
			t.Errorf("%q: doubts %q", step.cell.CongestionControl, ends.Client.Doubts)
		}
		client, _, err := sites(step.cell, false)
		if err != nil {
			t.Fatal(err)
		}
		const script = `
import socket
s, c = socket.socket(), socket.socket()
s.bind(("127.0.0.1", 0)); s.listen(); c.connect(s.getsockname()); a, _ = s.accept()
print(*[x.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0").decode() for x in (c, a)])`
		res, err := newRunner(t).Run(t.Context(), exec.Cmd{Argv: []string{"python3", "-c", script}, NetNS: c.ns(client).Path, Cgroup: c.cgroup(client.node)})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimSpace(string(res.Stdout)); got != step.want+" "+step.want {
			t.Errorf("congestion_control %q: sockets have %q, want %s", step.cell.CongestionControl, got, step.want)
		}
	}
}

// TestStreamsBeginWithAWideWindow: where congestion control is chosen, both ends' first
// receive window is wide, unless somebody chose another one; the next cell that leaves
// conditions to the system has what the namespace was made with.
func TestStreamsBeginWithAWideWindow(t *testing.T) {
	l := New(options(newRunner(t), t.TempDir()))
	chosen := cells("bridge")[0]
	chosen.Workload, chosen.Protocol, chosen.CongestionControl = "iperf3", "tcp", "cubic"
	asIs := chosen
	asIs.CongestionControl = ""
	buildLab(t, l, slices.Concat(cells("bridge")[:1], []result.Cell{chosen, asIs}))
	c := l.clusters[keyOf(chosen)]
	client, server, err := sites(chosen, false)
	if err != nil {
		t.Fatal(err)
	}
	set := func(value string) {
		t.Helper()
		l.changed = map[string]changed{}
		for _, s := range []site{client, server} {
			if err := netns.SetSysctls(c.ns(s), netns.Setting{Path: windowSysctl, Value: value}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, step := range []struct {
		made, chosen string
	}{
		{"4096 131072 33554432", "4096 8388608 33554432"},
		{"4096 131072 4194304", "4096 4194304 4194304"}, // no wider than the system allows
		{"4096 87380 33554432", "4096 87380 33554432"},  // a profile's
	} {
		set(step.made)
		for _, each := range []struct {
			cell result.Cell
			want string
		}{{chosen, step.chosen}, {asIs, step.made}, {chosen, step.chosen}} {
			if _, err := l.Ends(t.Context(), each.cell); err != nil {
				t.Fatal(err)
			}
			for _, s := range []site{client, server} {
				got, err := netns.Sysctl(c.ns(s), windowSysctl)
				if err != nil {
					t.Fatal(err)
				}
				if got = strings.Join(strings.Fields(got), " "); got != each.want {
					t.Errorf("made with %q, congestion_control %q: tcp_rmem %q, want %q", step.made, each.cell.CongestionControl, got, each.want)
				}
			}
		}
	}
	if err := l.unchanged(); err != nil {
		t.Fatal(err)
	}
	if got, err := netns.Sysctl(c.ns(client), windowSysctl); err != nil || strings.Join(strings.Fields(got), " ") != "4096 87380 33554432" {
		t.Errorf("after the campaign: tcp_rmem %q, %v", got, err)
	}
}

// TestNothingWaits: where congestion control is chosen, an end keeps no closed connection in
// TIME_WAIT, unless somebody chose how many; where it is not, it has what it was made with.
func TestNothingWaits(t *testing.T) {
	l := New(options(newRunner(t), t.TempDir()))
	chosen := cells("bridge")[0]
	chosen.Workload, chosen.CongestionControl = traffic.TCPCRR, "cubic"
	asIs := chosen
	asIs.CongestionControl = ""
	buildLab(t, l, []result.Cell{chosen, asIs})
	c := l.clusters[keyOf(chosen)]
	client, _, err := sites(chosen, false)
	if err != nil {
		t.Fatal(err)
	}
	now := func() string {
		t.Helper()
		got, err := netns.Sysctl(c.ns(client), waitingSysctl)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(got)
	}
	made := now()
	for _, step := range []struct{ made, chosen string }{{made, noneWaits}, {"7", "7"}} {
		l.changed = map[string]changed{}
		if err := netns.SetSysctls(c.ns(client), netns.Setting{Path: waitingSysctl, Value: step.made}); err != nil {
			t.Fatal(err)
		}
		for _, each := range []struct {
			cell result.Cell
			want string
		}{{chosen, step.chosen}, {asIs, step.made}, {chosen, step.chosen}} {
			if _, err := l.Ends(t.Context(), each.cell); err != nil {
				t.Fatal(err)
			}
			if got := now(); got != each.want {
				t.Errorf("made with %s, congestion_control %q: %s closed connections may wait, want %s", step.made, each.cell.CongestionControl, got, each.want)
			}
		}
		if err := l.unchanged(); err != nil {
			t.Fatal(err)
		}
		if got := now(); got != step.made {
			t.Errorf("after the campaign %s may wait, want %s", got, step.made)
		}
	}
}
