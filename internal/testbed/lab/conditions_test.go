package lab

import (
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/result"
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

// settingSteps are what a setting of an end is at first, and what it has while a cell chooses
// congestion control.
type settingSteps []struct{ made, chosen string }

// settingFollows tries a setting of both ends: it has the second value of a step while a cell
// chooses congestion control, the first one for the next cell that leaves conditions to the
// system, and after the campaign. steps takes the value that the lab made the ends with.
func settingFollows(t *testing.T, network, sysctl string, steps func(made string) settingSteps) {
	t.Helper()
	l := New(options(newRunner(t), t.TempDir()))
	chosen := cells(network)[0]
	chosen.Workload, chosen.Protocol, chosen.CongestionControl = "iperf3", "tcp", "cubic"
	asIs := chosen
	asIs.CongestionControl = ""
	buildLab(t, l, slices.Concat(cells(network)[:1], []result.Cell{chosen, asIs}))
	c := l.clusters[keyOf(chosen)]
	client, server, err := sites(chosen, false)
	if err != nil {
		t.Fatal(err)
	}
	ends := []site{client, server}
	now := func(s site) string {
		t.Helper()
		got, err := netns.Sysctl(c.ns(s), sysctl)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(strings.Fields(got), " ")
	}
	for _, step := range steps(now(client)) {
		l.changed = map[string]changed{}
		for _, s := range ends {
			if err := netns.SetSysctls(c.ns(s), netns.Setting{Path: sysctl, Value: step.made}); err != nil {
				t.Fatal(err)
			}
		}
		for _, each := range []struct {
			cell result.Cell
			want string
		}{{chosen, step.chosen}, {asIs, step.made}, {chosen, step.chosen}} {
			if _, err := l.Ends(t.Context(), each.cell); err != nil {
				t.Fatal(err)
			}
			for _, s := range ends {
				if got := now(s); got != each.want {
					t.Errorf("made with %q, congestion_control %q: %s %q, want %q", step.made, each.cell.CongestionControl, sysctl, got, each.want)
				}
			}
		}
		if err := l.unchanged(); err != nil {
			t.Fatal(err)
		}
		for _, s := range ends {
			if got := now(s); got != step.made {
				t.Errorf("after the campaign: %s %q, want %q", sysctl, got, step.made)
			}
		}
	}
}

// TestStreamsBeginWithAWideWindow: where congestion control is chosen, both ends' first
// receive window is wide, unless somebody chose another one.
func TestStreamsBeginWithAWideWindow(t *testing.T) {
	settingFollows(t, "bridge", windowSysctl, func(string) settingSteps {
		return settingSteps{
			{"4096 131072 33554432", "4096 8388608 33554432"},
			{"4096 131072 4194304", "4096 4194304 4194304"}, // no wider than the system allows
			{"4096 87380 33554432", "4096 87380 33554432"},  // a profile's
		}
	})
}

// TestPastaHasTheKernelsWindow: the first receive window of pods that pasta carries, and of
// their nodes, is left as it is.
func TestPastaHasTheKernelsWindow(t *testing.T) {
	settingFollows(t, "podman/pasta", windowSysctl, func(string) settingSteps {
		return settingSteps{{"4096 131072 33554432", "4096 131072 33554432"}}
	})
}

// TestNothingWaits: where congestion control is chosen, an end keeps no closed connection in
// TIME_WAIT, unless somebody chose how many.
func TestNothingWaits(t *testing.T) {
	settingFollows(t, "bridge", waitingSysctl, func(made string) settingSteps {
		return settingSteps{{made, noneWaits}, {"7", "7"}}
	})
}
