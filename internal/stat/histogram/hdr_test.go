package histogram

import (
	"encoding/base64"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/cnibench/cnibench/internal/labtest/fuzzed"
	"github.com/cnibench/cnibench/internal/result"
)

// The buckets are those that the library finds, whatever the geometry.
func TestBucketsAreThoseOfTheLibrary(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	var in Reader
	for _, digits := range []int{1, 2, 3, 4, 5} {
		for _, lowest := range []int64{1, 2, 3, 1000, 1024} {
			h := hdrhistogram.New(lowest, 3_600_000_000_000, digits)
			for range 2000 {
				if err := h.RecordValues(int64(math.Exp(28*r.Float64())), 1+r.Int64N(1<<40)*r.Int64N(2)); err != nil {
					t.Fatal(err)
				}
			}
			text, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
			if err != nil {
				t.Fatal(err)
			}
			var want []bucket
			for _, b := range h.Distribution() {
				if b.Count > 0 {
					want = append(want, bucket{b.To, b.Count})
				}
			}
			got, err := in.buckets(Pack(&result.Histogram{Unit: "nanoseconds", HDRBase64: string(text)}), nil)
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%d digits from %d: %d buckets (%v), want %d", digits, lowest, len(got), err, len(want))
			}
		}
	}
	if m := Pack(&result.Histogram{Unit: "seconds", HDRBase64: "AAAA"}); m.data != nil {
		t.Error("a histogram in seconds is read as one in nanoseconds")
	}
}

// What cannot be read is an error, and what can be has counts, ascending.
func FuzzBuckets(f *testing.F) {
	h := hdrhistogram.New(1, 60_000_000_000, 3)
	for i := range int64(100) {
		if err := h.RecordValue(i * i * 1000); err != nil {
			f.Fatal(err)
		}
	}
	text, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		f.Fatal(err)
	}
	raw, err := base64.StdEncoding.DecodeString(string(text))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw, []byte{2, 1, 4})
	f.Add(raw[:20], []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2})
	f.Fuzz(func(t *testing.T, raw, payload []byte) {
		defer fuzzed.Within(t)()
		var in Reader
		envelope, err := in.buckets(&Packed{raw}, nil)
		check(t, envelope, err)
		bare, err := counts(payload, scaleOf(3, 1), nil)
		check(t, bare, err)
	})
}

// check fails where buckets are not ascending, or one is empty.
func check(t *testing.T, got []bucket, err error) {
	if err != nil {
		return
	}
	for i, b := range got {
		if b.count <= 0 || b.value < 0 || i > 0 && got[i-1].value >= b.value {
			t.Errorf("bucket %d is %+v", i, b)
		}
	}
}
