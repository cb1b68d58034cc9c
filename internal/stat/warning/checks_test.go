package warning

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/stat/estimate"
	"github.com/cnibench/cnibench/internal/stat/stattest"
)

// TestFalseAlarms: how often each test of spread cries out on blocks that have
// nothing but noise. The figures are in docs/statistics.md.
func TestFalseAlarms(t *testing.T) {
	reps := stattest.Repetitions(3000)
	for i, noise := range stattest.Noises() {
		for _, n := range []int{12, 20, 40} {
			r := rand.New(rand.NewPCG(3, uint64(n)))
			var heaps, far, drifts int
			for range reps {
				points := make([]estimate.Point, n)
				for i := range points {
					points[i] = estimate.Point{Block: i + 1, Value: noise.Draw(r)}
				}
				_, two := twoHeaps(estimate.Values(points))
				heaps += stattest.Count(two)
				drifts += stattest.Count(trend(points) < 0.05)
				center, spread := robust(points)
				far += stattest.Count(slices.ContainsFunc(points, func(p estimate.Point) bool { return math.Abs(p.Value-center) > farOut*spread }))
			}
			share := func(k int) float64 { return float64(k) / float64(reps) }
			t.Logf("%s, %d blocks: two heaps %.2f %%, outliers %.2f %%, drift %.2f %%", noise.Name, n, 100*share(heaps), 100*share(far), 100*share(drifts))
			if share(heaps) > 0.002+stattest.Margin(0.002, reps) {
				t.Errorf("%s, %d blocks: two heaps in %.2f %%", noise.Name, n, 100*share(heaps))
			}
			// Heavy tails do have values far out: to say so is no false alarm.
			if i == 0 && share(far) > 0.01+stattest.Margin(0.01, reps) {
				t.Errorf("%d blocks: outliers in %.2f %%", n, 100*share(far))
			}
			stattest.Near(t, "drift", share(drifts), 0.05, 0.01+stattest.Margin(0.05, reps))
		}
	}
}

// Pods that a LimitRange throttles are reported; a limit of memory throttles nothing.
func TestWarnPodsLimited(t *testing.T) {
	for resource, want := range map[string]bool{"cpu": true, "memory": false} {
		places := map[string]result.PlaceFacts{"pod-server-2 on b": {Limits: map[string]string{resource: "500m"}}, "host": {}}
		w := warnLimits(&dataset.Dataset{Options: dataset.Options{Environment: result.Environment{Places: places}}}, Answers{})
		if (w.Code == PodsLimited) != want || want && !strings.Contains(w.Message, "CPUs of 1 pod that requested no limit: ") {
			t.Errorf("%s: %+v", resource, w)
		}
	}
}

// Networks that were switched one after the other are reported, in their order.
func TestWarnOneAfterAnother(t *testing.T) {
	for _, order := range [][]string{nil, {"a"}, {"a", "b"}} {
		w := warnSequence(&dataset.Dataset{Options: dataset.Options{Environment: result.Environment{OneAfterAnother: order}}}, Answers{})
		if want := len(order) > 1; (w.Code == OneAfterAnother) != want || want && !strings.Contains(w.Message, "a, then b") {
			t.Errorf("%v: %+v", order, w)
		}
	}
}
