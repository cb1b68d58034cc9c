package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/catalog"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed/lab/processes"
	"github.com/cnibench/cnibench/internal/traffic"
)

const charliecloud = "hpc/charliecloud"

func needCharliecloud(t *testing.T) {
	t.Helper()
	needLab(t)
	labtest.Tool(t, "ch-run", "charliecloud-runtime")
}

// TestCharliecloudContainsAgents: agents are in a user and a mount namespace of their own,
// with the lab's image as their root, and in their node's network. Traffic between them has
// the congestion control that was asked for, also where the machine allows it to root alone.
func TestCharliecloudContainsAgents(t *testing.T) {
	needCharliecloud(t)
	l := New(options(newRunner(t), stateDir(t)))
	all := cells(charliecloud)
	for i := range all {
		all[i].Workload, all[i].CongestionControl = traffic.TCPStream, "cubic"
	}
	buildLab(t, l, all)
	c := l.ordered[0]
	for _, cell := range all {
		client, server := carry(t, l, cell, cell.Workload, 150*time.Millisecond)
		for end, conditions := range map[string]map[string]string{"client": client.Native.Conditions, "server": server.Native.Conditions} {
			if got := conditions[traffic.ConditionCongestionControl]; got != "cubic" {
				t.Errorf("%s: the %s had the congestion control %q", cell.Placement, end, got)
			}
		}
	}
	for _, n := range c.nodes {
		agentsAreContained(t, n)
	}
	n, err := catalog.Find(charliecloud)
	if err != nil {
		t.Fatal(err)
	}
	if facts, err := l.facts(t.Context(), n); err != nil || facts.Rebuilt() || !strings.HasPrefix(facts.Datapath, "Charliecloud ") {
		t.Errorf("facts %+v (%v)", facts, err)
	}
}

// agentsAreContained looks at all processes in a node's network.
func agentsAreContained(t *testing.T, n network.Node) {
	t.Helper()
	inode, err := n.NS.Inode()
	if err != nil {
		t.Fatal(err)
	}
	pids, err := processes.In(map[string]bool{fmt.Sprintf("net:[%d]", inode): true})
	if err != nil || len(pids) == 0 {
		t.Fatalf("%s has the processes %v (%v)", n.Name, pids, err)
	}
	root, err := os.Stat(filepath.Join(n.DataDir, "image"))
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range pids {
		proc := filepath.Join("/proc", strconv.Itoa(pid))
		for _, kind := range []string{"user", "mnt"} {
			mine, err1 := os.Readlink("/proc/self/ns/" + kind)
			its, err2 := os.Readlink(filepath.Join(proc, "ns", kind))
			if err1 != nil || err2 != nil || its == mine {
				t.Errorf("%s, process %d: namespace %s, the test's is %s (%v, %v)", n.Name, pid, its, mine, err1, err2)
			}
		}
		if its, err := os.Stat(filepath.Join(proc, "root")); err != nil || !os.SameFile(its, root) {
			t.Errorf("%s, process %d: its root is not the lab's image (%v)", n.Name, pid, err)
		}
	}
}

// TestCharliecloudHasTheMachinesPrograms: inside are this machine's programs and temporary
// files at their paths, and no rights over the node's network.
func TestCharliecloudHasTheMachinesPrograms(t *testing.T) {
	needCharliecloud(t)
	tmp := labtest.OpenTempDir(t)
	t.Setenv("TMPDIR", tmp)
	l := New(options(newRunner(t), stateDir(t)))
	buildLab(t, l, cells(charliecloud))
	c := l.ordered[0]
	run := func(script string) (string, error) {
		argv, err := c.argv(site{node: 1}, []string{"sh", "-c", script, "sh", l.options.Agent[0], tmp})
		if err != nil {
			t.Fatal(err)
		}
		got, err := newRunner(t).Run(t.Context(), exec.Cmd{Argv: argv, NetNS: c.nodes[0].NS.Path})
		return strings.TrimSpace(string(got.Stdout)), err
	}
	if got, err := run(`test -x "$1" && test "$TMPDIR" = "$2" && test -w "$2" && test -r /etc/passwd && echo $(cat /proc/self/uid_map)`); err != nil || got != "0 0 1" {
		t.Errorf("uid_map %q (%v)", got, err)
	}
	if got, err := run("ip link set dev eth0 mtu 1400"); err == nil {
		t.Errorf("a program in the container changed its node's network: %q", got)
	}
	if mtu, err := netns.MTUTo(c.nodes[0].NS, c.nodes[1].Address.Addr()); err != nil || mtu != 1500 {
		t.Errorf("MTU %d (%v)", mtu, err)
	}
}

// TestDatagramsOfUnprivilegedPrograms: where the machine gives them smaller receive buffers
// than the bare network's, samples of datagrams say so, and no others do.
func TestDatagramsOfUnprivilegedPrograms(t *testing.T) {
	if got := smallerThan(traffic.DatagramBuffer, 212992, charliecloud); len(got) != 1 || !strings.Contains(got[0], "receive buffers of 212992 bytes") {
		t.Errorf("%q", got)
	}
	if got := smallerThan(traffic.DatagramBuffer, traffic.DatagramBuffer, charliecloud); got != nil {
		t.Errorf("%q", got)
	}
	for _, workload := range []string{traffic.TCPStream, "iperf3"} { // of which a tool sets no buffers
		if got, err := bufferDoubts(network.Network{Unprivileged: true}, result.Cell{Network: charliecloud, Workload: workload, Protocol: "udp"}); got != nil || err != nil {
			t.Errorf("%s: %q (%v)", workload, got, err)
		}
	}
	if got, err := bufferDoubts(network.Network{}, result.Cell{Network: "host", Workload: traffic.UDPStream}); got != nil || err != nil {
		t.Errorf("host: %q (%v)", got, err)
	}
}

// TestCharliecloudLeavesNothing: mounts, images and agents go with the lab, and a killed
// owner's with the next command.
func TestCharliecloudLeavesNothing(t *testing.T) {
	needCharliecloud(t)
	for _, until := range []string{"closed", "building", "agents run"} {
		t.Run(until, func(t *testing.T) {
			dir := stateDir(t)
			leavesNothing(t, dir, func() string {
				if until == "closed" {
					l := New(options(newRunner(t), dir))
					buildLabOnly(t, l, charliecloud)
					id := l.ID()
					if err := l.Close(t.Context()); err != nil {
						t.Error(err)
					}
					return id
				}
				killOwner(t, dir, until, charliecloud)
				gone, err := Reap(t.Context(), options(newRunner(t), dir))
				if err != nil || len(gone) > 1 || until == "agents run" && len(gone) == 0 {
					t.Errorf("cleared %v (%v)", gone, err)
				}
				for _, g := range gone {
					return g.ID
				}
				return ""
			})
		})
	}
}
