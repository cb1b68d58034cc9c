package job

import (
	"testing"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/stattest"
	"github.com/cnibench/cnibench/internal/traffic"
)

// The bytes of a prediction are those of the engine's algorithms, of the rank that sends
// most; a root sends or receives for all.
func TestPredictedBytesAreTheEngines(t *testing.T) {
	for _, test := range []string{traffic.AllToAll, traffic.AllGather, traffic.AllReduce, traffic.Barrier, traffic.Outcast, traffic.HaloExchange} {
		algorithms, _ := traffic.JobAlgorithms(test)
		if len(algorithms) == 0 {
			algorithms = []string{""}
		}
		for _, algorithm := range algorithms {
			for _, n := range []int{2, 4, 8, 16} {
				m := 4096
				if test == traffic.Barrier {
					m = 0
				}
				_, bytes, ok := terms(stattest.JobCell("bridge", test, algorithm, n, m))
				got := traffic.JobSentBytes(traffic.JobConfig{Test: test, Algorithm: algorithm, Ranks: n, MessageBytes: m})
				if !ok || bytes != float64(got) {
					t.Errorf("%s %s, %d ranks: the model has %g bytes, the engine %d", test, algorithm, n, bytes, got)
				}
			}
		}
	}
}

// A model of the same conditions is taken before another, and one of another network never.
func TestModelFor(t *testing.T) {
	same, apart, other := stattest.RROf("bridge"), stattest.RROf("bridge"), stattest.RROf("macvlan")
	same.CPUs, apart.CPUs = result.CPUsSame, result.CPUsApart
	models := []Hockney{{Cell: other}, {Cell: same}, {Cell: apart}}
	job := stattest.JobCell("bridge", "barrier", "dissemination", 4, 0)
	job.CPUs = result.CPUsApart
	if h := ModelFor(job, models); h == nil || h.Cell != apart {
		t.Errorf("%+v", h)
	}
	job.CPUs = ""
	if h := ModelFor(job, models); h == nil || h.Cell != same {
		t.Errorf("%+v", h)
	}
	if h := ModelFor(stattest.JobCell("host", "barrier", "dissemination", 4, 0), models); h != nil {
		t.Errorf("a model of another network: %+v", h)
	}
}
