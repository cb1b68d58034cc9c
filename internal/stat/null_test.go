package stat

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/stat/stattest"
)

func TestNullTest(t *testing.T) {
	reps := stattest.Repetitions(2000)
	r := rand.New(rand.NewPCG(6, 6))
	var pairs, wrong int
	var sum float64
	for range reps {
		var samples []result.Sample
		for b := 1; b <= 10; b++ {
			for n := range 3 {
				for _, name := range []string{"bridge", "bridge#2"} {
					c := stattest.CellOf(name)
					c.MessageBytes = n
					samples = append(samples, stattest.OKSample(c, b, stattest.Metrics{stattest.Throughput: math.Exp(0.01 * r.NormFloat64())}))
				}
			}
		}
		n := nullTest(dataset.Collect(samples, dataset.Options{}))
		pairs, wrong = pairs+len(n.Pairs), wrong+n.False
		sum += n.Detectable
	}
	if pairs != 3*reps {
		t.Fatalf("%d pairs of %d", pairs, 3*reps)
	}
	t.Logf("%.1f %% of %d pairs called different", 100*float64(wrong)/float64(pairs), pairs)
	stattest.Near(t, "share of false differences", float64(wrong)/float64(pairs), 0.05, stattest.Margin(0.05, pairs))
	// (t(0.975, 9) + t(0.8, 9))·√2·0.01/√10 = 1.4 %; the largest of three is somewhat more.
	stattest.Near(t, "mean detectable difference", sum/float64(reps), 0.0165, 0.002)
}
