package lab

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network/catalog"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed/lab/processes"
	"github.com/cnibench/cnibench/internal/testbed/lab/state"
)

// commandsIn are the names of the processes in a namespace.
func commandsIn(t *testing.T, ns netns.NS) []string {
	t.Helper()
	return slices.Collect(maps.Values(processesIn(t, ns)))
}

// processesIn are the names of the processes in a namespace, by their numbers.
func processesIn(t *testing.T, ns netns.NS) map[int]string {
	t.Helper()
	inode, err := ns.Inode()
	if err != nil {
		t.Fatal(err)
	}
	pids, err := processes.In(map[string]bool{"net:[" + strconv.FormatUint(inode, 10) + "]": true})
	if err != nil {
		t.Fatal(err)
	}
	names := map[int]string{}
	for _, pid := range pids {
		if name, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "comm")); err == nil {
			names[pid] = strings.TrimSpace(string(name))
		}
	}
	return names
}

// machinesDocker is all that a Docker of the machine's own has, by its usual paths.
func machinesDocker(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{
		"/run/docker*", "/run/docker/*", "/run/containerd*", "/run/containerd/*", "/run/cnibench.docker.sock", "/etc/docker*", "/etc/docker/*",
		"/var/lib/docker*", "/var/lib/docker/*", "/opt/containerd*", "/sys/class/net/docker*",
	} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, found...)
	}
	return all
}

// TestDockerIsTheNodesOwn: dockerd is in the node's namespace, each pod's namespace is
// a container's, and a Docker of the machine's own is left alone while the lab is up.
func TestDockerIsTheNodesOwn(t *testing.T) {
	needLab(t)
	labtest.Tool(t, "dockerd", "docker.io")
	before := machinesDocker(t)
	l := New(options(newRunner(t), stateDir(t)))
	n, err := catalog.Find("docker/bridge-real")
	if err != nil {
		t.Fatal(err)
	}
	buildLab(t, l, supported(n))
	if now := machinesDocker(t); !slices.Equal(before, now) {
		t.Errorf("the machine has %v, had %v", now, before)
	}
	c := l.ordered[0]
	if on := commandsIn(t, c.nodes[0].NS); !slices.Contains(on, "dockerd") || !slices.Contains(on, "containerd") {
		t.Errorf("node 1 runs %v", on)
	}
	for _, p := range c.pods[0] {
		if in := commandsIn(t, p.ns); !slices.Equal(in, []string{"cnibench"}) {
			t.Errorf("%s has the processes %v, want the container's one", p.ns.Name, in)
		}
		if !c.nodes[0].PodCIDR.Contains(p.address) {
			t.Errorf("%s has the address %s, want one of %s", p.ns.Name, p.address, c.nodes[0].PodCIDR)
		}
	}
	stacksStayInTheLab(t, c.nodes[0].NS)
	facts, err := l.facts(t.Context(), n)
	if err != nil || facts.Rebuilt() || !strings.HasPrefix(facts.Datapath, "Docker Engine ") {
		t.Errorf("facts %+v (%v)", facts, err)
	}
}

// stacksStayInTheLab has containerd write its stacks, as dockerd does where it does not answer
// in time.
func stacksStayInTheLab(t *testing.T, node netns.NS) {
	t.Helper()
	for pid, name := range processesIn(t, node) {
		if name != "containerd" {
			continue
		}
		if err := unix.Kill(pid, unix.SIGUSR1); err != nil {
			t.Fatal(err)
		}
		file := fmt.Sprintf("containerd.%d.stacks.log", pid)
		for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			if _, err := os.Stat(filepath.Join("/proc", strconv.Itoa(pid), "root/run", file)); err == nil {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("containerd wrote no %s into the lab's /run", file)
			}
		}
		if _, err := os.Stat(filepath.Join("/tmp", file)); err == nil {
			t.Errorf("containerd wrote %s into the machine's /tmp", file)
		}
		return
	}
	t.Error("the node runs no containerd")
}

// TestDockerHostIsTheNodesNetwork: a container is in each node's own namespace, and packets
// to a node pass the rules that dockerd loads there.
func TestDockerHostIsTheNodesNetwork(t *testing.T) {
	needLab(t)
	labtest.Tool(t, "dockerd", "docker.io")
	l := New(options(newRunner(t), stateDir(t)))
	buildLab(t, l, cells("docker/host"))
	c := l.ordered[0]
	for _, n := range c.nodes {
		if on := commandsIn(t, n.NS); !slices.Contains(on, "dockerd") || !slices.Contains(on, "cnibench") { // the container's program
			t.Errorf("%s runs %v", n.Name, on)
		}
	}
	from, to := site{node: 1}, site{node: 2}
	if err := ask(c.ns(from), echo(t, c.ns(to), c.address(to)), 100); err != nil {
		t.Fatal(err)
	}
	packets := uint64(0)
	for rule, count := range counters(t, c.ns(to)) {
		if strings.HasPrefix(rule, "-A PREROUTING ") && strings.HasSuffix(rule, "-j DOCKER") {
			packets += count
		}
	}
	if packets == 0 {
		t.Error("no packet from node 1 has passed Docker's rules on node 2")
	}
}

// TestReapRealNetworks: what a container engine left when its lab's owner was killed is
// removed, wherever it was.
func TestReapRealNetworks(t *testing.T) {
	needLab(t)
	labtest.Tool(t, "dockerd", "docker.io")
	for _, until := range []string{"building", "built"} {
		t.Run(until, func(t *testing.T) {
			dir := stateDir(t)
			leavesNothing(t, dir, func() string {
				killOwner(t, dir, until, "docker/bridge-real", "docker/host", "docker/overlay-real", "podman/bridge", "podman/pasta", ovnName)
				ids, err := (state.Store{Dir: dir}).IDs()
				if err != nil || len(ids) > 1 || until == "built" && len(ids) == 0 {
					t.Fatalf("labs %v (%v)", ids, err)
				}
				gone, err := Reap(t.Context(), options(newRunner(t), dir))
				if err != nil || len(gone) != len(ids) {
					t.Errorf("cleared %v (%v), want %v", gone, err, ids)
				}
				for _, g := range gone {
					if g.Detach != nil {
						t.Logf("detach: %v", g.Detach)
					}
				}
				return strings.Join(ids, "") // none where it was killed before it had one
			})
		})
	}
}

// TestKindsReachTheRecord: reports mark networks by what the environment says.
func TestKindsReachTheRecord(t *testing.T) {
	l := New(Options{})
	for name, rebuilt := range map[string]bool{"bridge": false, "docker/bridge": true, "calico/direct": true, "docker/bridge-real": false, "macvlan+sockmap": true} {
		n, err := catalog.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		n.Datapath = nil // its program may be missing
		facts, err := l.facts(t.Context(), n)
		if err != nil || facts.Kind != n.Kind || facts.Kind == "" || facts.Rebuilt() != rebuilt {
			t.Errorf("%s: %+v (%v)", name, facts, err)
		}
	}
	if old := (result.NetworkFacts{Model: "flannel v0.28"}); !old.Rebuilt() || (result.NetworkFacts{}).Rebuilt() {
		t.Error("records of versions without a kind: those with a model are rebuilt, no others")
	}
}
