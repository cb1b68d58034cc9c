package cli_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cnibench/cnibench/internal/labtest"
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
