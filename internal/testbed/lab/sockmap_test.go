package lab

import (
	"cmp"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network/catalog"
	"github.com/cnibench/cnibench/internal/network/sockmap"
	"github.com/cnibench/cnibench/internal/probe"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed/lab/state"
	"github.com/cnibench/cnibench/internal/traffic"
	"github.com/cnibench/cnibench/internal/workload"
)

// sockmapNetworks are one of each way that packets go: routes, past the node, a
// bridge, eBPF, the kernel's Open vSwitch.
func sockmapNetworks() []string {
	return []string{"calico/direct+sockmap", "macvlan+sockmap", "flannel/vxlan+sockmap", "cilium/native+sockmap", sockmapByOVS}
}

const sockmapByOVS = "antrea/noencap+sockmap"

// TestSockmap: TCP between pods of one node goes from socket to socket and
// nothing of it by the network, TCP between nodes uses the network alone.
func TestSockmap(t *testing.T) {
	for _, name := range sockmapNetworks() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := New(options(newRunner(t), t.TempDir()))
			all := cells(name)
			buildLab(t, l, all)
			c := l.clusters[keyOf(all[0])]
			root, err := netns.CgroupRoot()
			if err != nil {
				t.Fatal(err)
			}
			near := filepath.Join(root, c.nodes[0].NS.Name)
			for _, cell := range all {
				if labtest.InVM() && cell.Placement == result.InterHost {
					continue // shown by the others; emulation is slow
				}
				for _, workload := range []string{"tcp_rr", "tcp_stream", "tcp_crr"} {
					checkSockmap(t, l, near, cell, workload)
				}
			}
		})
	}
}

// checkSockmap runs a workload and checks which way its messages went. A first
// message that leaves before its connection is established at the server makes all of
// the connection's messages go by the network. The kernel's Open vSwitch causes
// that when a handshake's packet has to ask user space for its flow, so the
// workload has three tries: the flow is in the kernel from the first on.
func checkSockmap(t *testing.T, l *Lab, near string, cell result.Cell, workload string) {
	t.Helper()
	var noted, redirected, plain uint64
	for range 3 {
		before, err := sockmap.Counters(near)
		if err != nil {
			t.Fatal(err)
		}
		transmit(t, l, cell, workload)
		after, err := sockmap.Counters(near)
		if err != nil {
			t.Fatal(err)
		}
		noted, redirected = after["noted"]-before["noted"], after["redirected"]-before["redirected"]
		plain = after["plain"] - before["plain"]
		t.Logf("%s %s: %d sockets noted, %d messages redirected, %d plain", cell.Placement, workload, noted, redirected, plain)
		if cell.Placement == result.InterHost || redirected > 10*plain {
			break
		}
	}
	if noted == 0 {
		t.Errorf("%s %s: no socket was noted", cell.Placement, workload)
	}
	if cell.Placement == result.InterHost && redirected > 0 {
		t.Errorf("%s %s: %d messages between nodes were redirected", cell.Placement, workload, redirected)
	}
	if cell.Placement == result.IntraHost && redirected <= 10*plain {
		t.Errorf("%s %s: %d messages were redirected, %d were not", cell.Placement, workload, redirected, plain)
	}
}

// TestSockmapAndServices: between sockets of one node what a service by rules leads
// to uses the network, and the sample is doubted; one at sockets does not.
func TestSockmapAndServices(t *testing.T) {
	for proxy, want := range map[string]string{"iptables": "sockmap: messages between sockets of node1 went by the network", "ebpf": ""} {
		l, _ := buildServices(t, "bridge+sockmap", proxy, 3, 2, 1)
		for _, cell := range serviceCells("bridge+sockmap", proxy, 3) {
			read := l.WatchNodes(t.Context(), cell, []string{probe.NetfilterName, probe.MemoryName})
			transmit(t, l, cell, "tcp_crr")
			want := want
			if cell.Placement == result.InterHost {
				want = ""
			}
			if got := strings.Join(read(t.Context()).Doubts, "; "); (got == "") != (want == "") || !strings.HasPrefix(got, want) {
				t.Errorf("%s %s by %s: doubts %q, want %q", cell.Path, cell.Placement, proxy, got, want)
			}
		}
	}
}

// transmit runs a workload of the native engine between the ends of a cell for
// a moment; the engine compares what arrives with what was sent.
func transmit(t *testing.T, l *Lab, cell result.Cell, test string) {
	t.Helper()
	carry(t, l, cell, test, 150*time.Millisecond)
}

// carry is transmit for longer, and gives what both ends say of it.
func carry(t *testing.T, l *Lab, cell result.Cell, test string, window time.Duration) (client, server workload.Output) {
	t.Helper()
	ends, err := l.Ends(t.Context(), cell)
	if err != nil {
		t.Fatal(err)
	}
	program := workload.Program{Timeout: time.Minute, Native: &traffic.Config{
		Test: test, Token: "0123456789abcdef0123456789abcdef", MessageBytes: cmp.Or(cell.MessageBytes, 1000), Streams: 1,
		Warmup: window / 6, Window: window, SharedClock: true, Direction: cell.Direction, CongestionControl: cell.CongestionControl,
	}}
	var session agent.ServeResult
	if err := ends.Server.Agent.Call(t.Context(), agent.MethodServe, agent.ServeParams{Program: program, Port: ends.ServerPort}, &session); err != nil {
		t.Fatal(err)
	}
	drive := agent.DriveParams{Program: program, Server: netip.AddrPortFrom(ends.ServerAddress, session.Port).String()}
	if err := ends.Client.Agent.Call(t.Context(), agent.MethodDrive, drive, &client); err != nil {
		t.Fatalf("%s %s %s %s: %v", cell.Network, cell.Path, cell.Placement, test, err)
	}
	if err := ends.Server.Agent.Call(t.Context(), agent.MethodFinish, agent.FinishParams{Session: session.Session}, &server); err != nil {
		t.Fatalf("%s %s: %v", cell.Placement, test, err)
	}
	if server.Native == nil || client.Native == nil {
		t.Fatalf("%s %s: client %+v, server %+v", cell.Placement, test, client, server)
	}
	return client, server
}

// TestSockmapLeavesNothing: cgroups, programs and maps go with the lab, and a
// killed owner's with the next command.
func TestSockmapLeavesNothing(t *testing.T) {
	needLab(t)
	name := sockmapNetworks()[0]
	n, err := catalog.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	o := options(newRunner(t), stateDir(t))
	l := New(o)
	labtest.Feature(t, name, l.planner.check(n, "unshaped", DefaultProfile, 1500))
	root, err := netns.CgroupRoot()
	if err != nil {
		t.Fatal(err)
	}
	leavesNothing(t, o.Dir, func() string {
		buildLabOnly(t, l, name)
		if left := cgroupsOf(t, root, l.ID()); len(left) != 2 {
			t.Errorf("cgroups %v, want one for each node", left)
		}
		id := l.ID()
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if left := cgroupsOf(t, root, id); len(left) > 0 {
			t.Errorf("cgroups %v are left", left)
		}
		return id
	})
	leavesNothing(t, o.Dir, func() string {
		killOwner(t, o.Dir, "agents run")
		gone, err := Reap(t.Context(), o)
		if err != nil || len(gone) != 1 {
			t.Fatalf("cleared %v (%v)", gone, err)
		}
		if left := cgroupsOf(t, root, gone[0].ID); len(left) > 0 {
			t.Errorf("cgroups %v are left", left)
		}
		return gone[0].ID
	})
}

func buildLabOnly(t *testing.T, l *Lab, name string) {
	t.Helper()
	if _, err := l.Build(t.Context(), cells(name)); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Ends(t.Context(), cells(name)[1]); err != nil {
		t.Error(err)
	}
}

func cgroupsOf(t *testing.T, root, id string) []string {
	t.Helper()
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), state.State{ID: id}.Prefix()) {
			all = append(all, e.Name())
		}
	}
	return all
}

func TestASockmapNetworkCannotBeKept(t *testing.T) {
	spec := state.Spec{Network: sockmapNetworks()[0], Link: "unshaped", Profile: DefaultProfile, MTU: 1500, Pods: []int{1, 1}}
	if _, err := Up(t.Context(), Options{Dir: stateDir(t)}, []state.Spec{spec}); err == nil || !strings.Contains(err.Error(), "cannot be kept") {
		t.Errorf("error %v", err)
	}
}
