package estimate

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/aclements/go-moremath/stats"

	"github.com/cnibench/cnibench/internal/stat/stattest"
)

func TestStudentsQuantiles(t *testing.T) {
	// Any table of Student's t, two-sided.
	for _, c := range []struct {
		confidence float64
		dof        int
		want       float64
	}{{0.95, 1, 12.7062}, {0.95, 4, 2.7764}, {0.95, 19, 2.0930}, {0.99, 9, 3.2498}, {0.95, 20000, 1.9600}} {
		stattest.Near(t, "t", NewTables(c.confidence).tQuantile(c.dof), c.want, 1e-4)
	}
}

func TestStudentsQuantilesAreThoseOfTheLibrary(t *testing.T) {
	for _, dof := range []float64{0.7, 1, 1.5, 2, 3, 7.3, 30, 400, 5000} {
		for _, p := range []float64{0.6, 0.8, 0.95, 0.975, 0.995, 0.9995} {
			want := stats.InvCDF(stats.TDist{V: dof})(p)
			stattest.Near(t, "quantile", TQuantile(dof, p), want, 1e-6*want)
		}
	}
}

func TestStudentsTailsAreNotLostToRounding(t *testing.T) {
	stattest.Near(t, "p of t = 2.7764 with 4", TTest(2.7764, 4), 0.05, 1e-4)
	if p := TTest(1e6, 9); p <= 0 || p > 1e-40 {
		t.Errorf("p of t = 1e6 is %g", p)
	}
	// The continued fraction behind it must hold out at every size.
	for _, dof := range []float64{0.5, 1, 4999, 5000, 5001, 1e6} {
		for _, x := range []float64{0, 1e-9, 0.5, 2, 40} {
			if p := TTest(x, dof); !(p >= 0 && p <= 1) {
				t.Errorf("p of t = %g with %g is %g", x, dof, p)
			}
		}
	}
}

func TestMedianIntervalIsExact(t *testing.T) {
	for _, confidence := range []float64{0.9, 0.95, 0.99} {
		tab := NewTables(confidence)
		for n := 1; n < 80; n++ {
			o := tab.medianOrders(n)
			if o.low == 0 {
				if n >= tab.medianNeeds() {
					t.Errorf("no interval of %d at %g, though %d are enough", n, confidence, tab.medianNeeds())
				}
				continue
			}
			if n < tab.medianNeeds() {
				t.Errorf("an interval of %d at %g, though it needs %d", n, confidence, tab.medianNeeds())
			}
			// By adding up the binomial distribution.
			covers := func(low int) float64 {
				var tail float64
				for k := range low {
					tail += stats.BinomialDist{N: n, P: 0.5}.PMF(float64(k))
				}
				return 1 - 2*tail
			}
			stattest.Near(t, "confidence", o.confidence, covers(o.low), 1e-9)
			if o.confidence < confidence {
				t.Errorf("n %d: %g where %g was asked for", n, o.confidence, confidence)
			}
			if o.low+1 <= (n+1)/2 && covers(o.low+1) >= confidence {
				t.Errorf("n %d: order %d would do where %d was taken", n, o.low+1, o.low)
			}
		}
	}
	if got := NewTables(0.95).medianNeeds(); got != 6 {
		t.Errorf("95 %% needs %d, want 6", got)
	}
}

func TestMedianOfManyDoesNotGiveUp(t *testing.T) {
	for _, n := range []int{9_999, 10_001, 100_000, 1_000_000} {
		o := NewTables(0.95).medianOrders(n)
		want := float64(n)/2 - 1.96*math.Sqrt(float64(n))/2
		stattest.Near(t, "low order", float64(o.low), want, 2)
	}
}

func TestGeometricMean(t *testing.T) {
	points := []Point{{1, math.Log(0.8)}, {2, math.Log(0.9)}, {3, math.Log(1.0)}}
	e := NewTables(0.95).GeometricMean(points)
	stattest.Near(t, "value", e.Value, math.Cbrt(0.72), 1e-12)
	low, high, ok := e.Interval()
	if !ok {
		t.Fatal("no interval")
	}
	// t(2) = 4.3027; the logs' standard deviation by hand.
	m := (math.Log(0.8) + math.Log(0.9)) / 3
	sd := math.Sqrt((math.Pow(math.Log(0.8)-m, 2) + math.Pow(math.Log(0.9)-m, 2) + m*m) / 2)
	stattest.Near(t, "low", low, math.Exp(m-4.30265*sd/math.Sqrt(3)), 1e-5)
	stattest.Near(t, "high", high, math.Exp(m+4.30265*sd/math.Sqrt(3)), 1e-5)
	if one := NewTables(0.95).GeometricMean(points[:1]); one.Low != nil || one.Needed != 2 {
		t.Errorf("one sample gives %+v", one)
	}
}

// TestMedianCoversWhateverTheShape: the order-statistic interval of a very
// skewed distribution.
func TestMedianCoversWhateverTheShape(t *testing.T) {
	reps := stattest.Repetitions(20_000)
	tab := NewTables(0.95)
	r := rand.New(rand.NewPCG(5, 5))
	for _, n := range []int{6, 9, 20} {
		covered := 0
		for range reps {
			xs := make([]float64, n)
			for i := range xs {
				xs[i] = r.ExpFloat64()
			}
			e := tab.Median(xs)
			covered += stattest.Count(*e.Low <= math.Ln2 && math.Ln2 <= *e.High)
		}
		want := tab.medianOrders(n).confidence
		stattest.Near(t, "coverage", float64(covered)/float64(reps), want, stattest.Margin(want, reps))
	}
}
