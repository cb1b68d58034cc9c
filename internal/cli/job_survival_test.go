package cli_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/result"
)

// tinyJob is tiny with the ranks of two workloads with many ends.
const tinyJob = `name: tiny-job
networks: [host, bridge]
workloads:
  - {name: all_gather, message_bytes: [512], ranks: [4], ranks_per_node: [2]}
  - {name: barrier, ranks: [4], ranks_per_node: [2]}
sampling: {seconds: 0.05, warmup_seconds: 0.01, min_blocks: 3, max_blocks: 3}
`

// TestJobSurvivesKills: a campaign of jobs whose controller is killed at a random moment
// is resumed without losing or repeating a sample, and no rank is left in any pod.
func TestJobSurvivesKills(t *testing.T) {
	t.Parallel()
	labtest.Root(t)
	killed := 0
	for i := 0; killed < 3; i++ {
		if i > 8 {
			t.Fatalf("only %d of %d tries came before the end of the campaign", killed, i)
		}
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			s := newSurvivor(t)
			before := labtest.TakeTrace(t, s.ours)
			s.write(tinyJob)
			if s.killController(s.run(), rand.New(rand.NewPCG(9, uint64(i)))) {
				killed++
				t.Logf("killed with %d records", len(s.lines()))
			}
			s.resumed()
			s.leavesNothing(before)
		})
	}
}

// shortHPC is examples/hpc.yaml with all its networks and paths, the three collective operations
// with one message size and one algorithm each, and two short blocks.
func shortHPC(t *testing.T) string {
	t.Helper()
	text := shorter(t, "../../examples/hpc.yaml")
	for pattern, with := range map[string]string{
		`(?m)^  - \{name: (tcp_rr|barrier|halo_exchange|incast|outcast),.*\n`: "",
		`message_bytes: \[\d+, (\d+)\]`:                                       "message_bytes: [$1]",
		`algorithm: \[(\w+), \w+\]`:                                           "algorithm: [$1]",
		`(?m)^sampling:.*`:                                                    "sampling: {seconds: 0.3, warmup_seconds: 0.05, min_blocks: 2, max_blocks: 2}",
	} {
		all := regexp.MustCompile(pattern)
		if !all.MatchString(text) {
			t.Fatalf("the example has no %s", pattern)
		}
		text = all.ReplaceAllString(text, with)
	}
	return text
}

// TestHPCExample runs a short form of examples/hpc.yaml: eight ranks in four nodes with two
// pods each, over six networks. The controller is killed in the middle of a job and leaves
// no rank. The resumed campaign has every sample once, and every network an efficiency
// with an interval for each operation.
func TestHPCExample(t *testing.T) {
	t.Parallel()
	labtest.Turn(t, labtest.Studies)
	s := newSurvivor(t)
	before := labtest.TakeTrace(t, s.ours)
	s.write(shortHPC(t))
	begin := time.Now()
	run := s.run()
	run.until(t, func() bool { return len(s.lines()) >= 5 && s.inJob(8) })
	if !run.running() {
		t.Fatalf("the campaign ended before a job was seen:\n%s", run.Stderr())
	}
	if err := syscall.Kill(run.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if status := run.wait(t); status != -1 {
		t.Fatalf("status %d: %s", status, run.Stderr())
	}
	t.Logf("killed with %d records after %v", len(s.lines()), time.Since(begin).Round(time.Second))
	for deadline := time.Now().Add(10 * time.Second); len(s.victims("agent")) > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("ranks are left: %v", s.victims("agent"))
		}
	}
	s.resumed()
	t.Logf("it took %v", time.Since(begin).Round(time.Second))
	s.leavesNothing(before)
	s.checkCollectives()
}

// inJob reports whether a rank of a job is connected to all others.
func (s *survivor) inJob(ranks int) bool {
	for _, pid := range s.victims("agent") {
		connections := 0
		for _, family := range []string{"tcp", "tcp6"} {
			text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, family)) // it may have ended
			connections += strings.Count(string(text), " 01 ")                  // TCP_ESTABLISHED
		}
		if connections >= ranks-1 {
			return true
		}
	}
	return false
}

// checkCollectives looks for the efficiency of each collective operation on each network of
// examples/hpc.yaml. A network that this machine cannot have skips the rest of the test.
func (s *survivor) checkCollectives() {
	s.t.Helper()
	recorded, err := result.Read(s.out)
	if err != nil {
		s.t.Fatal(err)
	}
	measured, lacks := map[string]int{}, map[string]string{}
	for _, sample := range recorded.Samples {
		switch sample.Status {
		case result.StatusOK:
			measured[sample.ID]++
		case result.StatusUnsupported:
			lacks[sample.Cell.Network] = sample.Reason
		}
	}
	for id, times := range measured {
		if times != 1 {
			s.t.Errorf("%s was measured %d times", id, times)
		}
	}
	analysis := s.analysis()
	seen := map[string]bool{}
	for _, c := range analysis.Cells {
		e, what := c.Efficiency, c.Cell.Network+" "+c.Cell.Workload
		seen[what] = true
		if c.Cell.Network == result.HostNetwork || lacks[c.Cell.Network] != "" {
			continue
		}
		if e == nil || e.Low == nil || e.High == nil || e.N != 2 {
			s.t.Errorf("%s: no efficiency with an interval: %+v, %s", what, e, c.NoEfficiency)
			continue
		}
		s.t.Logf("%s: %.2f (%.2f to %.2f)", what, e.Value, *e.Low, *e.High)
	}
	for _, network := range []string{"host", "bridge", "flannel/vxlan", "calico/direct-policy", "cilium/native", "antrea/geneve"} {
		for _, operation := range []string{"all_to_all", "all_gather", "all_reduce"} {
			if !seen[network+" "+operation] && lacks[network] == "" {
				s.t.Errorf("the report has no %s over %s", operation, network)
			}
		}
	}
	for network, reason := range lacks {
		labtest.Feature(s.t, network, errors.New(reason))
	}
}
