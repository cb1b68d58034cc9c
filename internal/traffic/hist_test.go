package traffic

import (
	"math/rand/v2"
	"testing"
)

// A histogram of runs is that of the single values.
func TestRecordRun(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	one, runs := newRecorder(), newRecorder()
	for range 500 {
		v := rng.Int64N(1e9)
		for range rng.IntN(4) {
			one.record(v)
			runs.recordRun(v)
		}
	}
	want, err := merge([]*recorder{one})
	if err != nil {
		t.Fatal(err)
	}
	got, err := merge([]*recorder{runs})
	if err != nil {
		t.Fatal(err)
	}
	near := func(a, b float64) bool { return a > b*(1-1e-9) && a < b*(1+1e-9) }
	if got.Count != want.Count || got.HDRBase64 != want.HDRBase64 || !near(got.MeanNanoseconds, want.MeanNanoseconds) ||
		!near(got.StddevNanoseconds, want.StddevNanoseconds) || got.MinNanoseconds != want.MinNanoseconds || got.MaxNanoseconds != want.MaxNanoseconds {
		t.Errorf("runs give %+v, single values %+v", got, want)
	}
}

// A value of 0 that comes first is one of its run.
func TestRecordRunOfZero(t *testing.T) {
	r := newRecorder()
	r.recordRun(0)
	r.recordRun(0)
	r.flush()
	if r.n != 2 || r.least != 0 {
		t.Errorf("%d values, the least %d", r.n, r.least)
	}
}
