package traffic

import (
	"fmt"
	"math"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// The range of the histograms: 1 ns to 60 s with 3 digits.
const (
	histMin    = 1
	histMax    = 60_000_000_000
	histDigits = 3
)

// recorder takes latencies in nanoseconds: the histogram for percentiles, and
// the exact moments in addition. The moments are kept about the first value, so
// that their sums lose no digits.
type recorder struct {
	hist       *hdrhistogram.Histogram
	n          int64
	pivot      float64
	sum, sq    float64
	least, top int64
	// last came times times in a row and is not in the others yet: see recordRun.
	last, times int64
}

func newRecorder() *recorder {
	return &recorder{hist: hdrhistogram.New(histMin, histMax, histDigits), least: math.MaxInt64}
}

// record takes one value. What is longer than the histogram's range is counted
// in its last bucket; the exact maximum is kept.
func (r *recorder) record(v int64) { r.add(v, 1) }

// recordRun takes one value of many that are often the same as the one before, such as
// those of datagrams that left in one system call and were read in one. A run of them
// costs one look into the histogram. flush must follow the last.
func (r *recorder) recordRun(v int64) {
	if v != r.last || r.times == 0 {
		r.flush()
		r.last = v
	}
	r.times++
}

// flush takes what recordRun holds back.
func (r *recorder) flush() {
	if r.times > 0 {
		r.add(r.last, r.times)
	}
	r.times = 0
}

// add takes a value so many times.
func (r *recorder) add(v, times int64) {
	if r.n == 0 {
		r.pivot = float64(v)
	}
	d, k := float64(v)-r.pivot, float64(times)
	r.n += times
	r.sum += k * d
	r.sq += k * d * d
	r.least, r.top = min(r.least, v), max(r.top, v)
	_ = r.hist.RecordValues(min(max(v, histMin), histMax), times) // it is in range
}

// merge gives one histogram of several recorders; nil where nothing was recorded.
func merge(recorders []*recorder) (*Histogram, error) {
	var n int64
	var mean, m2 float64
	all := newRecorder()
	for _, r := range recorders {
		r.flush()
		if r.n == 0 {
			continue
		}
		// Chan, Golub, LeVeque 1983: the moments of two sets from theirs.
		k := float64(r.n)
		rMean, rM2 := r.pivot+r.sum/k, r.sq-r.sum*r.sum/k
		d := rMean - mean
		total := float64(n) + k
		m2 += rM2 + d*d*float64(n)*k/total
		mean += d * k / total
		n += r.n
		all.least, all.top = min(all.least, r.least), max(all.top, r.top)
		if dropped := all.hist.Merge(r.hist); dropped != 0 {
			return nil, fmt.Errorf("histogram: %d values were dropped", dropped)
		}
	}
	if n == 0 {
		return nil, nil
	}
	raw, err := all.hist.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		return nil, fmt.Errorf("histogram: %w", err)
	}
	return &Histogram{Count: n, HDRBase64: string(raw), MeanNanoseconds: mean, StddevNanoseconds: math.Sqrt(max(0, m2/float64(n))), MinNanoseconds: all.least, MaxNanoseconds: all.top}, nil
}

// MergeHistograms gives one histogram of several; those that are nil are left out. It is
// nil where none is left.
func MergeHistograms(all []*Histogram) (*Histogram, error) {
	var out *Histogram
	merged := hdrhistogram.New(histMin, histMax, histDigits)
	var mean, m2 float64
	for _, h := range all {
		if h == nil || h.Count == 0 {
			continue
		}
		hist, err := hdrhistogram.Decode([]byte(h.HDRBase64))
		if err != nil {
			return nil, fmt.Errorf("histogram: %w", err)
		}
		if dropped := merged.Merge(hist); dropped != 0 {
			return nil, fmt.Errorf("histogram: %d values were dropped", dropped)
		}
		if out == nil {
			out = &Histogram{MinNanoseconds: h.MinNanoseconds}
		}
		// Chan, Golub, LeVeque 1983, as in merge.
		n, k, d := float64(out.Count), float64(h.Count), h.MeanNanoseconds-mean
		m2 += h.StddevNanoseconds*h.StddevNanoseconds*k + d*d*n*k/(n+k)
		mean += d * k / (n + k)
		out.Count += h.Count
		out.MinNanoseconds, out.MaxNanoseconds = min(out.MinNanoseconds, h.MinNanoseconds), max(out.MaxNanoseconds, h.MaxNanoseconds)
	}
	if out == nil {
		return nil, nil
	}
	raw, err := merged.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		return nil, fmt.Errorf("histogram: %w", err)
	}
	out.HDRBase64, out.MeanNanoseconds, out.StddevNanoseconds = string(raw), mean, math.Sqrt(m2/float64(out.Count))
	return out, nil
}
