package cli_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/labtest"
)

// The environment of TestSurvive, which scripts/survive.sh sets.
const (
	surviveKills   = "CNIBENCH_SURVIVE_KILLS"   // how many, 15 unless set
	surviveSeed    = "CNIBENCH_SURVIVE_SEED"    // a random one unless set
	surviveSeconds = "CNIBENCH_SURVIVE_SECONDS" // no kill begins later; unless set all are done
	surviveBeside  = "CNIBENCH_SURVIVE_BESIDE"  // how many at the same time, 3 unless set
)

// victim is what is killed. try does that once at a random moment, has the next command
// follow, and checks that all is in order; it reports whether the kill came before the end.
type victim struct {
	name string
	// every is in which rounds it has its turn: in each 1st, 2nd …. Those that take
	// longer have fewer.
	every int
	try   func(t *testing.T, r *rand.Rand) bool
}

// turns are the victims of so many kills, so that few kills reach each.
func turns(all []victim, kills int) []victim {
	var order []victim
	for round := 0; len(order) < kills; round++ {
		for _, v := range all {
			if round%v.every == 0 && len(order) < kills {
				order = append(order, v)
			}
		}
	}
	return order
}

// tally counts tries and kills by victim.
type tally struct {
	mu         sync.Mutex
	tried, hit map[string]int
}

func (c *tally) add(name string, killed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tried[name]++
	if killed {
		c.hit[name]++
	}
}

// TestSurvive kills what belongs to a campaign, a lab, a cluster, a host or a clean-up at
// random moments. Each kill is followed by the next command, after which no sample is lost
// or doubled, and no namespace, process, mount, rule, sysctl, cgroup, object of a
// Kubernetes or file is left. `make survive` runs it a thousand times.
func TestSurvive(t *testing.T) {
	labtest.Root(t)
	labtest.Tool(t, "iperf3", "iperf3")
	kills := number(t, surviveKills, 15)
	seed := uint64(number(t, surviveSeed, int(rand.Uint32())))
	begin, limit := time.Now(), time.Duration(number(t, surviveSeconds, 1<<30))*time.Second
	t.Logf("seed %d: repeat kill N with scripts/survive.sh -n %d -seed %d -only N", seed, kills, seed)
	all := append(newAway(t).victims(), labVictims()...)
	count := tally{tried: map[string]int{}, hit: map[string]int{}}
	next := make(chan int)
	var working sync.WaitGroup
	order := turns(all, kills)
	for range max(1, number(t, surviveBeside, 3)) {
		working.Go(func() {
			for i := range next {
				v := order[i]
				t.Run(fmt.Sprint(i), func(t *testing.T) {
					t.Log(v.name)
					count.add(v.name, v.try(t, rand.New(rand.NewPCG(seed, uint64(i)))))
				})
			}
		})
	}
	for i := range order {
		if time.Since(begin) > limit {
			t.Logf("%d of %d kills fit into %v", i, kills, limit)
			break
		}
		next <- i
	}
	close(next)
	working.Wait()
	tried, hit := 0, 0
	for _, v := range all {
		t.Logf("%-10s killed in %d of %d tries", v.name, count.hit[v.name], count.tried[v.name])
		tried, hit = tried+count.tried[v.name], hit+count.hit[v.name]
	}
	t.Logf("%d killed in %d tries, seed %d, %v", hit, tried, seed, time.Since(begin).Round(time.Second))
}

// TestTurns: each victim has its turn in the first round, and dear ones in fewer later.
func TestTurns(t *testing.T) {
	var names []string
	for _, v := range turns([]victim{{name: "a", every: 1}, {name: "b", every: 3}, {name: "c", every: 1}}, 10) {
		names = append(names, v.name)
	}
	if got := strings.Join(names, ""); got != "abcacacabc" {
		t.Errorf("%s", got)
	}
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
