package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/bench"
	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed"
	"github.com/cnibench/cnibench/internal/testbed/lab/processes"
	"github.com/cnibench/cnibench/internal/traffic"
)

// rankCell is one of four ranks, two on a node.
func rankCell(of, test, algorithm string, messageBytes int) result.Cell {
	c := cells(of)[0] // between nodes
	c.Workload, c.Algorithm, c.MessageBytes, c.Ranks, c.RanksPerNode, c.CPUs, c.CongestionControl = test, algorithm, messageBytes, 4, 2, result.CPUsApart, "cubic"
	return c
}

// allRankCells are all workloads with many ends on one network, by each algorithm.
func allRankCells(of string) []result.Cell {
	var all []result.Cell
	for _, test := range []string{traffic.AllToAll, traffic.AllGather, traffic.AllReduce, traffic.Barrier, traffic.Incast, traffic.Outcast, traffic.HaloExchange} {
		bytes := 4096
		if test == traffic.Barrier {
			bytes = 0
		}
		algorithms, _ := traffic.JobAlgorithms(test)
		if len(algorithms) == 0 {
			algorithms = []string{""}
		}
		for _, a := range algorithms {
			all = append(all, rankCell(of, test, a, bytes))
		}
	}
	return all
}

// kept are the records of a run, and when each was made.
type kept struct {
	mu      sync.Mutex
	records []result.Sample
	at      []time.Time
}

func (k *kept) Append(s result.Sample) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.records, k.at = append(k.records, s), append(k.at, time.Now())
	return s.Validate()
}
func (*kept) SaveRaw(string, string, []string, string, string) error { return nil }
func (*kept) SaveStacks(string, string, string) error                { return nil }
func (*kept) WriteJSON(string, any) error                            { return nil }

type unseen struct{}

func (unseen) Begin(int, int)             {}
func (unseen) Sampled(result.Sample, int) {}
func (unseen) Say(string, ...any)         {}

// measureRanks runs one block of some cells in a lab, which leaves nothing. meanwhile is
// called once with the lab when it is built; nil: nothing is done.
func measureRanks(t *testing.T, seconds float64, all []result.Cell, meanwhile func(l *Lab)) *kept {
	t.Helper()
	k := &kept{}
	dir := stateDir(t)
	leavesNothing(t, dir, func() string {
		l := New(options(newRunner(t), dir))
		watched := &watchedLab{Lab: l, meanwhile: meanwhile}
		_, err := bench.Run(t.Context(), bench.Options{
			Sampling: campaign.Sampling{Seconds: seconds, WarmupSeconds: 0.01}, Testbed: watched, Store: k, Observer: unseen{},
			Plan: plan.Plan{Schema: plan.Schema, Seed: 3, Cells: all, MinBlocks: 1, MaxBlocks: 1, SampleSeconds: seconds, WarmupSeconds: 0.01},
		})
		watched.doing.Wait()
		if err != nil {
			t.Error(err)
		}
		return watched.id
	})
	return k
}

// watchedLab calls something once while the first sample is measured.
type watchedLab struct {
	*Lab
	meanwhile func(*Lab)
	once      sync.Once
	doing     sync.WaitGroup
	id        string
}

func (w *watchedLab) Ranks(ctx context.Context, cell result.Cell) (ranks []testbed.Rank, err error) {
	ranks, err = w.Lab.Ranks(ctx, cell)
	w.id = w.ID()
	if w.meanwhile != nil {
		w.once.Do(func() { w.doing.Go(func() { w.meanwhile(w.Lab) }) })
	}
	return ranks, err
}

// TestRanks: every workload with many ends is measured with four ranks on two nodes, and
// traffic between nodes goes over the network.
func TestRanks(t *testing.T) {
	needLab(t)
	var all []result.Cell
	for _, name := range []string{"host", "bridge", "flannel/vxlan"} {
		all = append(all, allRankCells(name)...)
		wide := rankCell(name, traffic.AllGather, traffic.Ring, 512)
		wide.RanksPerNode = 0 // four nodes
		inside := rankCell(name, traffic.AllGather, traffic.Ring, 512)
		inside.RanksPerNode, inside.Placement = 0, result.IntraHost
		all = append(all, wide, inside)
	}
	for i, c := range all {
		if c.Network == result.HostNetwork {
			all[i] = c.Baseline()
		}
	}
	k := measureRanks(t, 0.05, all, nil)
	if len(k.records) != len(all) {
		t.Errorf("%d records of %d cells", len(k.records), len(all))
	}
	for _, s := range k.records {
		if s.Status != result.StatusOK || s.Job == nil || len(s.Job.Ranks) != 4 || s.Metrics["operations"] < 1 {
			t.Errorf("%s %s: %s %s", s.Cell.Network, s.Cell.Traffic(), s.Status, s.Reason)
			continue
		}
		nodes := map[string]int{}
		places := map[string]bool{}
		for _, r := range s.Job.Ranks {
			nodes[r.Node]++
			places[r.Place] = true
			if got := r.Conditions[traffic.ConditionCongestionControl]; got != "cubic" {
				t.Errorf("%s: rank %d has congestion control %q", s.Cell.Traffic(), r.Rank, got)
			}
		}
		want := map[bool]int{true: 4, false: 2}[s.Cell.RanksPerNode == 0]
		if s.Cell.Placement == result.IntraHost {
			want = 1
		}
		wantPlaces := 4
		if s.Cell.Network == result.HostNetwork {
			wantPlaces = want
		}
		if len(nodes) != want || len(places) != wantPlaces {
			t.Errorf("%s %s: %d nodes and %d places, want %d and %d", s.Cell.Network, s.Cell.Traffic(), len(nodes), len(places), want, wantPlaces)
		}
		if s.Cell.CPUs == result.CPUsApart && !slices.ContainsFunc(s.Warnings, func(w string) bool { return strings.Contains(w, "ranks shared") }) && s.Metrics["ranks_per_cpu"] > 1 {
			t.Errorf("%s: ranks share CPUs without a warning", s.Cell.Traffic())
		}
	}
}

// TestRankFaults: a rank that is killed or stopped, and a node that is cut off, fail the
// sample within 5 s with a reason that names the rank; the next sample is sound, and
// nothing is left in any pod.
func TestRankFaults(t *testing.T) {
	needLab(t)
	labtest.Tool(t, "ip", "iproute2")
	two := rankCell("bridge", traffic.AllToAll, traffic.Pairwise, 4096)
	four := two
	four.RanksPerNode = 0
	for name, fault := range map[string]struct {
		cell result.Cell
		do   func(t *testing.T, l *Lab, cell result.Cell)
		want string // is in the part of the reason that names ranks
	}{
		"killed":  {two, func(t *testing.T, l *Lab, c result.Cell) { signalRank(t, l, c, 3, syscall.SIGKILL) }, "rank 3 at bridge node2 pod2: "},
		"stopped": {two, func(t *testing.T, l *Lab, c result.Cell) { signalRank(t, l, c, 1, syscall.SIGSTOP) }, "rank 1 at bridge node1 pod2: "},
		"cut off": {four, func(t *testing.T, l *Lab, _ result.Cell) { cutNode(t, l, 2) }, "rank 1 at bridge node2 pod1"},
	} {
		t.Run(name, func(t *testing.T) {
			struck := time.Time{}
			k := measureRanks(t, 20, []result.Cell{fault.cell}, func(l *Lab) {
				waitForTraffic(t, l, fault.cell)
				struck = time.Now()
				fault.do(t, l, fault.cell)
			})
			if len(k.records) != 1 {
				t.Fatalf("%d records", len(k.records))
			}
			s := k.records[0]
			t.Logf("after %v: %s", k.at[0].Sub(struck).Round(time.Millisecond), s.Reason)
			if took := k.at[0].Sub(struck); took > 5*time.Second {
				t.Errorf("the sample failed after %v", took)
			}
			named, _, _ := strings.Cut(s.Reason, " (")
			if s.Status != result.StatusFailed || !strings.Contains(named, fault.want) || (name == "cut off") != strings.Contains(named, "cut off") {
				t.Errorf("%s %q, want %q", s.Status, s.Reason, fault.want)
			}
		})
	}
}

// rankPID is the agent of a rank.
func rankPID(l *Lab, cell result.Cell, rank int) (int, error) {
	sites, err := rankSites(cell, false)
	if err != nil {
		return 0, err
	}
	inode, err := l.ordered[0].ns(sites[rank]).Inode()
	if err != nil {
		return 0, err
	}
	pids, err := processes.In(map[string]bool{"net:[" + strconv.FormatUint(inode, 10) + "]": true})
	if err != nil {
		return 0, err
	}
	for _, pid := range pids {
		if established(pid) >= 3 {
			return pid, nil
		}
	}
	return 0, fmt.Errorf("no process of rank %d is connected to three others", rank)
}

// established is how many connections there are in a process's namespace.
func established(pid int) int {
	n := 0
	for _, name := range []string{"tcp", "tcp6"} {
		text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "net", name))
		if err != nil {
			return 0
		}
		n += strings.Count(string(text), " 01 ") // TCP_ESTABLISHED
	}
	return n
}

// waitForTraffic waits until all ranks are connected.
func waitForTraffic(t *testing.T, l *Lab, cell result.Cell) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for rank := 0; rank < 4; {
		if _, err := rankPID(l, cell, rank); err == nil {
			rank++
			continue
		} else if time.Now().After(deadline) {
			t.Errorf("rank %d: %v", rank, err)
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func signalRank(t *testing.T, l *Lab, cell result.Cell, rank int, signal syscall.Signal) {
	t.Helper()
	pid, err := rankPID(l, cell, rank)
	if err == nil {
		err = syscall.Kill(pid, signal)
	}
	if err != nil {
		t.Errorf("rank %d: %v", rank, err)
	}
}

// cutNode takes the link of a node down.
func cutNode(t *testing.T, l *Lab, node int) {
	t.Helper()
	if _, err := newRunner(t).Run(t.Context(), exec.Cmd{Argv: []string{"ip", "link", "set", device, "down"}, NetNS: l.ordered[0].nodes[node-1].NS.Path}); err != nil {
		t.Error(err)
	}
}

// What cannot be placed is refused with its reason, before anything is made.
func TestRanksThatCannotBePlaced(t *testing.T) {
	p := &planner{features: map[string]error{}, networks: []network.Network{{Name: "mine", Nodes: 2}}}
	for want, change := range map[string]func(*result.Cell){
		"4 ranks per node put all 4 ranks on one node":       func(c *result.Cell) { c.RanksPerNode = 4 },
		"a path inside one node has all ranks there":         func(c *result.Cell) { c.Placement = result.IntraHost },
		"no path pod-to-host between them":                   func(c *result.Cell) { c.Path = result.PathPodToHost },
		"no path pod-to-cluster-ip between them":             func(c *result.Cell) { c.Path = result.PathPodToClusterIP },
		"mine has conflists for 2 nodes, and 4 ranks need 4": func(c *result.Cell) { c.Network, c.RanksPerNode = "mine", 0 },
		"255 nodes for 255 ranks: a lab has at most 254":     func(c *result.Cell) { c.Ranks, c.RanksPerNode = 255, 1 },
	} {
		c := rankCell("bridge", traffic.AllGather, traffic.Ring, 64)
		change(&c)
		specs, unsupported := p.specs([]result.Cell{c})
		if len(specs) != 0 || !strings.Contains(unsupported[c], want) {
			t.Errorf("%d clusters, %q, want %q", len(specs), unsupported[c], want)
		}
	}
}

// Ranks fill one node after the other.
func TestRankSites(t *testing.T) {
	c := rankCell("bridge", traffic.AllGather, traffic.Ring, 64)
	c.Ranks = 5
	got, err := rankSites(c, false)
	want := []site{{1, 1}, {1, 2}, {2, 1}, {2, 2}, {3, 1}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v %v, want %v", got, err, want)
	}
	specs, _ := (&planner{features: map[string]error{}}).specs([]result.Cell{c})
	if len(specs) == 1 && !slices.Equal(specs[0].Pods, []int{2, 2, 1}) {
		t.Errorf("pods %v", specs[0].Pods)
	}
	if got, err = rankSites(c, true); err != nil || got[4] != (site{3, 0}) || got[1] != (site{1, 0}) {
		t.Errorf("on nodes: %v %v", got, err)
	}
}
