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

// The environment of TestSurvive, which scripts/survive.sh sets.
const (
	surviveKills   = "CNIBENCH_SURVIVE_KILLS"   // how many, 15 unless set
	surviveSeed    = "CNIBENCH_SURVIVE_SEED"    // a random one unless set
	surviveSeconds = "CNIBENCH_SURVIVE_SECONDS" // no kill begins later; unless set all are done
)

// victim is what is killed. kill does that at a random moment, and reports whether it came
// before the end; again is the next command, which must leave all in order.
type victim struct {
	name  string
	kill  func(s *survivor, r *rand.Rand) bool
	again func(s *survivor)
}

// victims are all of them. They take turns, so that few kills reach each.
func victims() []victim {
	network := func(r *rand.Rand) string {
		all := []string{"bridge", "flannel/vxlan", "calico/direct", "macvlan", "flannel/host-gw"}
		return all[r.IntN(len(all))]
	}
	part := func(word string, most time.Duration, campaign func(r *rand.Rand) string) func(*survivor, *rand.Rand) bool {
		return func(s *survivor, r *rand.Rand) bool {
			s.write(campaign(r))
			return s.killPart(word, time.Duration(r.Int64N(int64(most))), r)
		}
	}
	controller := func(s *survivor, r *rand.Rand) bool {
		s.write(tiny(network(r)))
		return s.killController(s.run(), r)
	}
	return []victim{
		{"controller", controller, (*survivor).resumed},
		{"lab up", func(s *survivor, r *rand.Rand) bool {
			up := s.start(s.command("lab", "up", "--network", network(r)))
			return s.killAfter(up, time.Duration(r.IntN(250))*time.Millisecond)
		}, (*survivor).downAll},
		{"plugin", (*survivor).killPlugin, (*survivor).resumed},
		{"agent", part("agent", 500*time.Millisecond, func(r *rand.Rand) string { return tiny(network(r)) }), (*survivor).resumed},
		{"lab down", func(s *survivor, r *rand.Rand) bool {
			if up := s.start(s.command("lab", "up", "--network", network(r))); up.wait(s.t) != 0 {
				s.t.Fatalf("lab up: %s", up.Stderr())
			}
			return s.killAfter(s.start(s.command("lab", "down", "--all")), time.Duration(r.IntN(150))*time.Millisecond)
		}, (*survivor).downAll},
		{"resume", func(s *survivor, r *rand.Rand) bool {
			if !controller(s, r) {
				return false
			}
			before := s.lines()
			killed := s.killController(s.resume(), r)
			if now := s.lines(); len(now) < len(before) || !slices.Equal(now[:len(before)], before) {
				s.t.Errorf("records were lost: %d lines were there, now %d", len(before), len(now))
			}
			return killed
		}, (*survivor).resumed},
		{"tool", part("iperf3", time.Second, func(*rand.Rand) string { return withTool }), (*survivor).resumed},
		{"clean", func(s *survivor, r *rand.Rand) bool {
			how := []fault.How{fault.Healthy, fault.Broken, fault.Silent, fault.TooMany}
			config := fault.NewAPIServer(s.t, how[r.IntN(len(how))]).Kubeconfig
			return s.killAfter(s.start(s.command("clean", "--kubeconfig", config)), time.Duration(r.IntN(80))*time.Millisecond)
		}, func(s *survivor) {
			c := s.start(s.command("clean", "--kubeconfig", fault.NewAPIServer(s.t, fault.Healthy).Kubeconfig))
			if status := c.wait(s.t); status != 0 {
				s.t.Errorf("clean ended with status %d: %s", status, c.Stderr())
			}
		}},
	}
}

// killAfter kills a program a while after its start, and reports whether it still ran.
func (s *survivor) killAfter(p *started, wait time.Duration) bool {
	s.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(wait):
	}
	s.lookForLabs()
	_ = syscall.Kill(p.PID(), syscall.SIGKILL) // it may have ended just now
	return p.wait(s.t) == -1
}

// downAll takes down what is left of labs.
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
	s.write(tiny("bridge"))
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

// TestSurvive kills what belongs to a campaign, a lab or a clean-up at random moments. Each
// kill is followed by the next command, after which no sample is lost or doubled, and no
// namespace, process, mount, rule, sysctl, cgroup or file is left. `make survive` runs it a
// thousand times.
func TestSurvive(t *testing.T) {
	labtest.Root(t)
	labtest.Tool(t, "iperf3", "iperf3")
	kills := number(t, surviveKills, 15)
	seed := uint64(number(t, surviveSeed, int(rand.Uint32())))
	begin, limit := time.Now(), time.Duration(number(t, surviveSeconds, 1<<30))*time.Second
	t.Logf("seed %d: repeat kill N with scripts/survive.sh -n %d -seed %d -only N", seed, kills, seed)
	all := victims()
	tried, hit := map[string]int{}, map[string]int{}
	for i := range kills {
		if time.Since(begin) > limit {
			t.Logf("%d of %d kills fit into %v", i, kills, limit)
			break
		}
		v := all[i%len(all)]
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			s := newSurvivor(t)
			before := labtest.TakeTrace(t, s.ours)
			tried[v.name]++
			if v.kill(s, rand.New(rand.NewPCG(seed, uint64(i)))) {
				hit[v.name]++
			}
			t.Logf("%s, with %d records", v.name, len(s.lines()))
			v.again(s)
			s.leavesNothing(before)
		})
	}
	for _, v := range all {
		t.Logf("%-10s killed in %d of %d tries", v.name, hit[v.name], tried[v.name])
	}
	t.Logf("seed %d, %v", seed, time.Since(begin).Round(time.Second))
}

// number is a variable of the environment, or a default.
func number(t *testing.T, name string, unset int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return unset
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		t.Fatalf("%s is %q, want a number", name, text)
	}
	return n
}
