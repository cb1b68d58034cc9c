package stat

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/traffic"
)

// sizesTimed is a campaign of round trips on one network: messages of some sizes take
// what of gives, with a share of noise for each sample.
func sizesTimed(network string, blocks int, noise float64, of func(bytes int) float64, sizes ...int) []result.Sample {
	r := rand.New(rand.NewPCG(3, 4))
	var out []result.Sample
	for b := 1; b <= blocks; b++ {
		for _, n := range sizes {
			c := rrOf(network)
			c.MessageBytes = n
			out = append(out, okSample(c, b, metrics{"latency_mean_seconds": 2 * of(n) * (1 + noise*r.NormFloat64())}))
		}
	}
	return out
}

func line(alpha, beta float64) func(int) float64 {
	return func(n int) float64 { return alpha + float64(n)/beta }
}

// Where the truth is a line, α and β are found, exactly without noise.
func TestHockneyExact(t *testing.T) {
	a := Analyse(sizesTimed("bridge", 3, 0, line(20e-6, 1e9), 1, 1024, 65536), Options{})
	if len(a.Hockneys) != 1 {
		t.Fatalf("%d models", len(a.Hockneys))
	}
	h := a.Hockneys[0]
	near(t, "alpha", h.Alpha.Value, 20e-6, 1e-15)
	near(t, "beta", h.Beta.Value, 1e9, 1)
	if h.Misfit || len(h.Sizes) != 3 || h.Sizes[0].HeldOut != nil || h.Cell.MessageBytes != 0 || h.Alpha.N != 3 {
		t.Errorf("%+v", h)
	}
	for _, s := range h.Sizes {
		near(t, "of the model", s.OfModel.Value, 1, 1e-9)
	}
}

// The intervals contain the truth about as often as their confidence says, for noise that
// is a share of each time.
func TestHockneyCoverage(t *testing.T) {
	const alpha, perByte = 20e-6, 1e-9
	campaigns := repetitions(400)
	tolerance := 0.045 * math.Sqrt(400/float64(campaigns))
	r := rand.New(rand.NewPCG(5, 6))
	inAlpha, inPerByte := 0, 0
	for range campaigns {
		var samples []result.Sample
		for b := 1; b <= 6; b++ {
			machine := 1 + 0.05*r.NormFloat64() // what a block does to all sizes
			for _, n := range []int{1, 64, 1024, 8192, 65536} {
				c := rrOf("bridge")
				c.MessageBytes = n
				samples = append(samples, okSample(c, b, metrics{"latency_mean_seconds": 2 * (alpha + perByte*float64(n)) * machine * (1 + 0.02*r.NormFloat64())}))
			}
		}
		h := Analyse(samples, Options{}).Hockneys[0]
		if low, high, ok := h.Alpha.Interval(); ok && low <= alpha && alpha <= high {
			inAlpha++
		}
		if low, high, ok := h.PerByte.Interval(); ok && low <= perByte && perByte <= high {
			inPerByte++
		}
	}
	for name, n := range map[string]int{"alpha": inAlpha, "1/beta": inPerByte} {
		// Four standard deviations of that count to each side.
		if share := float64(n) / float64(campaigns); math.Abs(share-0.95) > tolerance {
			t.Errorf("%s: %.1f %% of the intervals contain the truth", name, 100*share)
		}
	}
}

// A step in the times is a misfit at the sizes that it hits, and a held-out size is
// predicted where there is none.
func TestHockneyMisfit(t *testing.T) {
	step := func(n int) float64 {
		if n > 1448 {
			return line(35e-6, 1e9)(n)
		}
		return line(20e-6, 1e9)(n)
	}
	sizes := []int{1, 512, 1448, 4096, 16384, 65536}
	h := Analyse(sizesTimed("bridge", 6, 0.01, step, sizes...), Options{}).Hockneys[0]
	if !h.Misfit {
		t.Errorf("a step of three quarters of α is no misfit: %+v", h.Sizes)
	}
	h = Analyse(sizesTimed("bridge", 6, 0.01, line(20e-6, 1e9), sizes...), Options{}).Hockneys[0]
	if h.Misfit {
		t.Errorf("a line is a misfit: %+v", h.Sizes)
	}
	for _, s := range h.Sizes {
		if s.HeldOut == nil || math.Abs(s.HeldOut.Value-1) > 0.1 {
			t.Errorf("%d B: predicted without itself off by %+v", s.MessageBytes, s.HeldOut)
		}
	}
}

// What cannot be fitted has no model: two sizes, other traffic; and bytes that add nothing
// have no β.
func TestHockneyNeeds(t *testing.T) {
	if a := Analyse(sizesTimed("bridge", 4, 0.01, line(20e-6, 1e9), 1, 65536), Options{}); len(a.Hockneys) != 0 {
		t.Errorf("a model of two sizes: %+v", a.Hockneys)
	}
	burst := sizesTimed("bridge", 4, 0.01, line(20e-6, 1e9), 1, 1024, 65536)
	for i := range burst {
		burst[i].Cell.Burst = 16
	}
	if a := Analyse(burst, Options{}); len(a.Hockneys) != 0 {
		t.Errorf("a model of bursts: %+v", a.Hockneys)
	}
	h := Analyse(sizesTimed("bridge", 6, 0.05, line(20e-6, math.Inf(1)), 1, 2, 4), Options{}).Hockneys[0]
	if h.Beta != nil {
		t.Errorf("β of messages whose bytes take no time: %+v", h.Beta)
	}
	one := Analyse(sizesTimed("bridge", 1, 0, line(20e-6, 1e9), 1, 1024, 65536), Options{}).Hockneys[0]
	if _, _, ok := one.Alpha.Interval(); ok || one.Beta == nil {
		t.Errorf("one block: %+v", one)
	}
}

// jobOf is a cell with ranks.
func jobOf(network, workload, algorithm string, ranks, bytes int) result.Cell {
	c := cellOf(network)
	c.Workload, c.Algorithm, c.Ranks, c.MessageBytes, c.Streams = workload, algorithm, ranks, bytes, 0
	return c
}

// Predictions are the closed forms, and operations that take half as long again are seen
// to do so.
func TestJobPredictions(t *testing.T) {
	const alpha, beta, m = 20e-6, 1e9, 4096
	samples := sizesTimed("bridge", 5, 0, line(alpha, beta), 1, 1024, 65536)
	want := map[result.Cell]float64{
		jobOf("bridge", "all_to_all", "pairwise", 4, m):           3 * (alpha + m/beta),
		jobOf("bridge", "all_gather", "ring", 8, m):               7 * (alpha + m/beta),
		jobOf("bridge", "all_gather", "recursive_doubling", 8, m): 3*alpha + 7*m/beta,
		jobOf("bridge", "all_reduce", "ring", 4, m):               6*alpha + 1.5*m/beta,
		jobOf("bridge", "all_reduce", "recursive_doubling", 8, m): 3 * (alpha + m/beta),
		jobOf("bridge", "barrier", "dissemination", 6, 0):         3 * (alpha + 1/beta),
		jobOf("bridge", "incast", "", 5, m):                       alpha + 4*m/beta,
		jobOf("bridge", "outcast", "", 5, m):                      alpha + 4*m/beta,
		jobOf("bridge", "halo_exchange", "", 8, m):                alpha + 4*m/beta,
		jobOf("bridge", "halo_exchange", "", 3, m):                alpha + 2*m/beta,
		jobOf("flannel/vxlan", "barrier", "dissemination", 6, 0):  0, // no model
	}
	for c, predicted := range want {
		for b := 1; b <= 5; b++ {
			samples = append(samples, okSample(c, b, metrics{"operation_time_mean_seconds": 1.5 * max(predicted, 1e-6), "ranks_per_cpu": 2}))
		}
	}
	a := Analyse(samples, Options{})
	if len(a.Jobs) != len(want)-1 {
		t.Errorf("%d predictions, want %d", len(a.Jobs), len(want)-1)
	}
	for _, p := range a.Jobs {
		near(t, p.Cell.Traffic(), p.Predicted.Value, want[p.Cell], 1e-12)
		near(t, p.Cell.Traffic()+" ratio", p.Ratio.Value, 1.5, 1e-9)
		if p.RanksPerCPU == nil || *p.RanksPerCPU != 2 || !p.SameConditions {
			t.Errorf("%s: %+v", p.Cell.Traffic(), p)
		}
	}
}

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
				_, bytes, ok := jobTerms(jobOf("bridge", test, algorithm, n, m))
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
	same, apart, other := rrOf("bridge"), rrOf("bridge"), rrOf("macvlan")
	same.CPUs, apart.CPUs = result.CPUsSame, result.CPUsApart
	models := []Hockney{{Cell: other}, {Cell: same}, {Cell: apart}}
	job := jobOf("bridge", "barrier", "dissemination", 4, 0)
	job.CPUs = result.CPUsApart
	if h := modelFor(job, models); h == nil || h.Cell != apart {
		t.Errorf("%+v", h)
	}
	job.CPUs = ""
	if h := modelFor(job, models); h == nil || h.Cell != same {
		t.Errorf("%+v", h)
	}
	if h := modelFor(jobOf("host", "barrier", "dissemination", 4, 0), models); h != nil {
		t.Errorf("a model of another network: %+v", h)
	}
}
