package lab

import (
	"fmt"
	"io"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/bench"
	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/catalog"
	"github.com/cnibench/cnibench/internal/network/dataplane"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/traffic"
)

// eachMesh runs a test for each network whose TCP passes proxies.
func eachMesh(t *testing.T, f func(t *testing.T, n network.Network)) {
	for _, n := range catalog.List() {
		if n.Proxied == nil {
			continue
		}
		t.Run(n.Name, func(t *testing.T) {
			needLab(t)
			for _, need := range n.Needs {
				labtest.Feature(t, n.Name, need.Probe())
			}
			f(t, n)
		})
	}
}

// whoConnects serves one connection at a pod, and gives the address that it came from.
func whoConnects(t *testing.T, c *cluster, from, to site) netip.Addr {
	t.Helper()
	var l *net.TCPListener
	err := netns.Do(c.ns(to), func() (err error) {
		l, err = net.ListenTCP("tcp4", net.TCPAddrFromAddrPort(netip.AddrPortFrom(c.address(to), 0)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	seen := make(chan netip.Addr, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			close(seen)
			return
		}
		defer conn.Close()
		_, _ = conn.Write([]byte("here")) // the client says what is missing
		seen <- conn.RemoteAddr().(*net.TCPAddr).AddrPort().Addr()
	}()
	conn, err := netns.Dial(c.ns(from), l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if got, err := io.ReadAll(conn); string(got) != "here" {
		t.Fatalf("%q, %v", got, err)
	}
	return <-seen
}

// TestProxiesTakeTCP: a connection comes from the proxy in front of the server, the proxies'
// rules count it at both ends, and a connection that bypasses them is found.
func TestProxiesTakeTCP(t *testing.T) {
	eachMesh(t, func(t *testing.T, n network.Network) {
		l := New(options(newRunner(t), stateDir(t)))
		all := cells(n.Name)
		buildLab(t, l, all)
		for _, cell := range all {
			if cell.Path != result.PathPodToPod {
				continue
			}
			cell.Workload = "tcp_rr"
			c := l.clusters[keyOf(cell)]
			from, to, err := sites(cell, false)
			if err != nil {
				t.Fatal(err)
			}
			verify := l.WatchPath(t.Context(), cell)
			if err := verify(t.Context()); err == nil || !strings.Contains(err.Error(), "not proxied") {
				t.Errorf("%s: a sample without a connection: %v", cell.Placement, err)
			}
			verify = l.WatchPath(t.Context(), cell)
			peer, want := whoConnects(t, c, from, to), c.address(to)
			if strings.HasSuffix(n.Name, "+node-proxy") {
				want = c.nodes[to.node-1].PodCIDR.Addr().Next() // the node's address towards its pods
			}
			if peer != want {
				t.Errorf("%s: the server's connection is from %s, want the proxy at %s", cell.Placement, peer, want)
			}
			if err := verify(t.Context()); err != nil {
				t.Errorf("%s: %v", cell.Placement, err)
			}
			if len(c.carriers[from.node-1]) == 0 {
				t.Errorf("%s: no process carries packets on %s", cell.Placement, c.nodes[from.node-1].Name)
			}
		}
	})
}

// TestSamplesThroughProxies: connections, round trips and streams are measured and verified,
// datagrams pass no proxy, and a cluster whose rules were removed fails.
func TestSamplesThroughProxies(t *testing.T) {
	eachMesh(t, func(t *testing.T, n network.Network) {
		var all []result.Cell
		for _, c := range cells(n.Name) {
			if c.Path != result.PathPodToPod {
				continue
			}
			for _, w := range []string{"tcp_rr", "tcp_crr", "tcp_stream", "udp_rr"} {
				c.Workload, c.MessageBytes, c.Streams = w, 64, 1
				all = append(all, c)
			}
		}
		k, dir := &kept{}, stateDir(t)
		leavesNothing(t, dir, func() string {
			l := New(options(newRunner(t), dir))
			_, err := bench.Run(t.Context(), bench.Options{
				Sampling: campaign.Sampling{Seconds: 0.1, WarmupSeconds: 0.05, Retries: 1}, Testbed: l, Store: k, Observer: unseen{},
				Plan: plan.Plan{Schema: plan.Schema, Seed: 3, Cells: all, MinBlocks: 1, MaxBlocks: 1, SampleSeconds: 0.1, WarmupSeconds: 0.05},
			})
			if err != nil {
				t.Error(err)
			}
			return l.ID()
		})
		ok := map[result.Cell]bool{}
		for _, s := range k.records {
			ok[s.Cell] = s.Status == result.StatusOK
			if !ok[s.Cell] {
				t.Logf("%s %s, attempt %d: %s", s.Cell.Workload, s.Cell.Placement, s.Attempt, s.Reason)
			}
		}
		for _, c := range all {
			if !ok[c] {
				t.Errorf("%s %s was not measured", c.Workload, c.Placement)
			}
		}
	})
}

// TestBypassedProxiesAreFound: without their rules no sample of TCP is good.
func TestBypassedProxiesAreFound(t *testing.T) {
	eachMesh(t, func(t *testing.T, n network.Network) {
		l := New(options(newRunner(t), stateDir(t)))
		all := cells(n.Name)
		buildLab(t, l, all)
		cell := all[0]
		cell.Path, cell.Placement, cell.Workload = result.PathPodToPod, result.InterHost, "tcp_rr"
		c := l.clusters[keyOf(cell)]
		for _, ns := range []netns.NS{c.ns(site{2, 1}), c.nodes[1].NS} {
			remove := exec.Cmd{Argv: []string{"nft", "flush", "ruleset"}, NetNS: ns.Path}
			if _, err := newRunner(t).Run(t.Context(), remove); err != nil {
				t.Fatal(err)
			}
		}
		verify := l.WatchPath(t.Context(), cell)
		whoConnects(t, c, site{1, 1}, site{2, 1})
		if err := verify(t.Context()); err == nil {
			t.Error("a connection that bypassed the server's proxy was taken for good")
		}
	})
}

// allowedCPUs are the lists of CPUs that the threads of all proxies of a cluster may run on.
func allowedCPUs(t *testing.T, c *cluster) map[string]bool {
	t.Helper()
	lists := map[string]bool{}
	for _, n := range c.nodes {
		files, err := filepath.Glob(filepath.Join(n.DataDir, "*", "*.pid"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for pid := range strings.FieldsSeq(string(text)) {
				threads, err := filepath.Glob(filepath.Join("/proc", pid, "task", "*", "status"))
				if err != nil || len(threads) == 0 {
					t.Fatalf("%s: no threads of %s: %v", file, pid, err)
				}
				for _, thread := range threads {
					status, err := os.ReadFile(thread)
					if err != nil {
						t.Fatal(err)
					}
					_, list, _ := strings.Cut(string(status), "Cpus_allowed_list:")
					list, _, _ = strings.Cut(list, "\n")
					lists[strings.TrimSpace(list)] = true
				}
			}
		}
	}
	return lists
}

// TestProxiesRunWhereEndsDo: with both ends on one CPU all proxies are on it as well; left to
// the scheduler, and for a job with many ranks, they are free again.
func TestProxiesRunWhereEndsDo(t *testing.T) {
	of := map[string][]result.Cell{"bridge by ingress": ingressCells("bridge")}
	for _, name := range []string{"bridge+sidecar", "bridge+node-proxy"} {
		of[name] = cells(name)
	}
	for name, all := range of {
		t.Run(name, func(t *testing.T) {
			needLab(t)
			labtest.Feature(t, name, dataplane.HAProxyTool().Probe())
			l := New(options(newRunner(t), stateDir(t)))
			cell := all[0]
			job := cells(cell.Network)[0]
			job.Workload, job.Ranks, job.CPUs = "all_to_all", 2, traffic.CPUsApart
			if cell.ToService() {
				job = result.Cell{} // such a cell has no job
			} else {
				all = append(all, job)
			}
			buildLab(t, l, all)
			c := l.clusters[keyOf(cell)]
			place := func(cpus string) map[string]bool {
				cell.CPUs = cpus
				if _, err := l.Ends(t.Context(), cell); err != nil {
					t.Fatal(err)
				}
				return allowedCPUs(t, c)
			}
			before := place(traffic.CPUsFree)
			one, err := traffic.ChooseCPUs(traffic.CPUsSame, true)
			if err != nil {
				t.Fatal(err)
			}
			if got := place(traffic.CPUsSame); len(got) != 1 || !got[fmt.Sprint(one[0])] {
				t.Errorf("with both ends on CPU %d the proxies may run on %v", one[0], got)
			}
			if got := place(traffic.CPUsFree); len(before) != 1 || !maps.Equal(got, before) {
				t.Errorf("left to the scheduler they may run on %v, and on %v before", got, before)
			}
			if job.Ranks == 0 {
				return
			}
			place(traffic.CPUsSame)
			if _, err := l.Ranks(t.Context(), job); err != nil {
				t.Fatal(err)
			}
			if got := allowedCPUs(t, c); !maps.Equal(got, before) {
				t.Errorf("for a job they may run on %v, and on %v before", got, before)
			}
		})
	}
}
