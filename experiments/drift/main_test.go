package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// TestDriftIsSeen: of a machine whose speed changes within half a minute, near samples have
// the same and far ones do not. One without drift has none.
func TestDriftIsSeen(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	begin := time.Date(2026, 11, 26, 0, 0, 0, 0, time.UTC)
	for _, drifts := range []bool{true, false} {
		var all []sample
		speed := 0.0
		for i := range 2000 {
			next := r.NormFloat64()
			if drifts {
				const stays = 0.93 // of one second to the next: to 1/e in 14 s
				next = stays*speed + math.Sqrt(1-stays*stays)*next
			}
			speed = next
			all = append(all, sample{begin.Add(time.Duration(i) * time.Second), 0.1 * speed})
		}
		var b strings.Builder
		if err := write(&b, all); err != nil {
			t.Fatal(err)
		}
		near, far := correlation(t, b.String(), "0 to 2.5 s"), correlation(t, b.String(), "80 to 160 s")
		if drifts && near < 0.85 || !drifts && math.Abs(near) > 0.1 || math.Abs(far) > 0.15 {
			t.Errorf("drifts %v: near %.2f, far %.2f\n%s", drifts, near, far, &b)
		}
	}
	if err := write(&strings.Builder{}, make([]sample, 3)); err == nil {
		t.Error("samples without differences have a table")
	}
}

// correlation reads the row of a class.
func correlation(t *testing.T, table, class string) float64 {
	t.Helper()
	_, row, found := strings.Cut(table, "| "+class+" |")
	var pairs int
	var r float64
	if _, err := fmt.Sscanf(row, "%d | %f |", &pairs, &r); !found || err != nil {
		t.Fatalf("no class %s: %v\n%s", class, err, table)
	}
	return r
}
