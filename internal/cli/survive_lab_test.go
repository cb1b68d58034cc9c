package cli_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/fault"
	"github.com/cnibench/cnibench/internal/labtest"
)

// tiniestRecords is how many samples tiniest has.
const tiniestRecords = 4

// tiniest is the campaign of a network and its baseline with two blocks.
func tiniest(network string) string {
	return fmt.Sprintf(`name: tiniest
networks: [host, %s]
workloads: [{name: tcp_rr}]
sampling: {slices: 8, warmup_seconds: 0.01, explain_seconds: 0.05, min_blocks: 2, max_blocks: 2}
`, network)
}

func anyNetwork(r *rand.Rand) string {
	all := []string{"bridge", "flannel/vxlan", "calico/direct", "macvlan", "flannel/host-gw"}
	return all[r.IntN(len(all))]
}

// onLab is a try on a lab: kill, the next command, and a look at the machine.
func onLab(kill func(s *survivor, r *rand.Rand) bool, again func(s *survivor)) func(*testing.T, *rand.Rand) bool {
	return func(t *testing.T, r *rand.Rand) bool {
		s := newSurvivor(t)
		before := labtest.TakeTrace(t, s.ours)
		killed := kill(s, r)
		t.Logf("%d records", len(s.lines()))
		again(s)
		s.leavesNothing(before)
		return killed
	}
}

// killRun kills the controller of a campaign.
func killRun(s *survivor, r *rand.Rand) bool {
	s.write(tiniest(anyNetwork(r)))
	return s.killWithin(s.run(), r, tiniestRecords)
}

// labVictims are those of a lab and of clean.
func labVictims() []victim {
	part := func(word string, most time.Duration, campaign func(r *rand.Rand) string) func(*survivor, *rand.Rand) bool {
		return func(s *survivor, r *rand.Rand) bool {
			s.write(campaign(r))
			return s.killPart(word, time.Duration(r.Int64N(int64(most))), r)
		}
	}
	return []victim{
		{"controller", 1, onLab(killRun, (*survivor).resumed)},
		{"lab up", 1, onLab(func(s *survivor, r *rand.Rand) bool {
			up := s.start(s.command("lab", "up", "--network", anyNetwork(r)))
			return s.killAfter(up, time.Duration(r.IntN(250))*time.Millisecond)
		}, (*survivor).downAll)},
		{"plugin", 1, onLab((*survivor).killPlugin, (*survivor).resumed)},
		{"agent", 1, onLab(part("agent", 300*time.Millisecond, func(r *rand.Rand) string { return tiniest(anyNetwork(r)) }), (*survivor).resumed)},
		{"lab down", 1, onLab(func(s *survivor, r *rand.Rand) bool {
			if up := s.start(s.command("lab", "up", "--network", anyNetwork(r))); up.wait(s.t) != 0 {
				s.t.Fatalf("lab up: %s", up.Stderr())
			}
			return s.killAfter(s.start(s.command("lab", "down", "--all")), time.Duration(r.IntN(150))*time.Millisecond)
		}, (*survivor).downAll)},
		{"resume", 1, onLab((*survivor).killResumed, (*survivor).resumed)},
		{"tool", 2, onLab(part("iperf3", time.Second, func(*rand.Rand) string { return withTool }), (*survivor).resumed)},
		{"clean", 1, onLab(func(s *survivor, r *rand.Rand) bool {
			how := []fault.How{fault.Healthy, fault.Broken, fault.Silent, fault.TooMany}
			config := fault.NewAPIServer(s.t, how[r.IntN(len(how))]).Kubeconfig
			return s.killAfter(s.start(s.command("clean", "--kubeconfig", config)), time.Duration(r.IntN(80))*time.Millisecond)
		}, func(s *survivor) {
			c := s.start(s.command("clean", "--kubeconfig", fault.NewAPIServer(s.t, fault.Healthy).Kubeconfig))
			if status := c.wait(s.t); status != 0 {
				s.t.Errorf("clean ended with status %d: %s", status, c.Stderr())
			}
		})},
	}
}

// killResumed kills a campaign, and then the run that resumes it.
func (s *survivor) killResumed(r *rand.Rand) bool {
	if !killRun(s, r) {
		return false
	}
	before := s.lines()
	killed := s.killWithin(s.resume(), r, tiniestRecords)
	if now := s.lines(); len(now) < len(before) || !slices.Equal(now[:len(before)], before) {
		s.t.Errorf("records were lost: %d lines were there, now %d", len(before), len(now))
	}
	return killed
}

// downAll takes down what is left of the survivor's labs.
func (s *survivor) downAll() {
	s.t.Helper()
	s.lookForLabs()
	down := s.start(s.command("lab", "down", "--all"))
	if status := down.wait(s.t); status != 0 {
		s.t.Errorf("lab down --all ended with status %d: %s", status, down.Stderr())
	}
}

// killPlugin kills one of the CNI plugins that a campaign runs, on an ADD or a DEL.
func (s *survivor) killPlugin(r *rand.Rand) bool {
	dir := filepath.Join(s.work, "plugins") // found before the real one
	if err := os.Mkdir(dir, 0o755); err != nil {
		s.t.Fatal(err)
	}
	fault.Plugin(s.t, dir, "bridge", "sleep 0.01\nexec /usr/lib/cni/bridge\n")
	s.write(tiniest("bridge"))
	run := s.start(s.command("run", s.campaign(), "--out", s.out, "--seed", "7", "--cni-path", dir))
	nth, wait, killed := r.IntN(4), time.Duration(r.IntN(20))*time.Millisecond, false // two pods: two ADDs, two DELs
	run.until(s.t, func() bool {
		notes, err := os.ReadFile(fault.Notes(dir, "bridge"))
		if pids := strings.Fields(string(notes)); err == nil && len(pids) > nth {
			time.Sleep(wait)
			pid, err := strconv.Atoi(pids[nth])
			killed = err == nil && syscall.Kill(pid, syscall.SIGKILL) == nil
			return true
		}
		return false
	})
	if status := run.wait(s.t); status > 1 && status != 4 {
		s.t.Errorf("status %d: %s", status, run.Stderr())
	}
	return killed
}
