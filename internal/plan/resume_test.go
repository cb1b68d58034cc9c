package plan

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/labtest/fuzzed"
	"github.com/cnibench/cnibench/internal/result"
)

// Whatever happened before, and wherever the run was killed: what is finished
// and what remains are together the block, and nothing is in both.
func TestFinishedAndRemainingAreTheBlock(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	p := New(matrix("host", "bridge", "macvlan"), 11)
	for range 300 {
		retries := rng.IntN(3)
		records := run(p, retries, rng, nil)
		killed := records[:rng.IntN(len(records)+1)]
		for block := 1; block <= p.MaxBlocks; block++ {
			slots := p.Block(block, nil)
			remaining := Remaining(slots, killed, retries)
			got := append(finishedIDs(killed, block, retries), ids(remaining)...)
			slices.Sort(got)
			want := ids(slots)
			slices.Sort(want)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("block %d after %d records: %s", block, len(killed), diff)
			}
		}
		whole := append(slices.Clone(killed), run(p, retries, rng, killed)...)
		if err := p.Check(whole, retries); err != nil {
			t.Fatalf("resumed after %d records: %v", len(killed), err)
		}
		if n := remainingIn(p, whole, retries); n != 0 {
			t.Fatalf("%d samples were lost", n)
		}
	}
}

// run makes the records of a run that continues after the existing ones.
func run(p Plan, retries int, rng *rand.Rand, before []result.Sample) []result.Sample {
	attempts := make(map[string]int)
	for _, r := range before {
		attempts[r.ID] = r.Attempt
	}
	var out []result.Sample
	for block := 1; block <= p.MaxBlocks; block++ {
		for _, s := range Remaining(p.Block(block, nil), before, retries) {
			for {
				attempts[s.ID]++
				r := result.Sample{ID: s.ID, Block: block, Attempt: attempts[s.ID], Cell: s.Cell}
				r.Status = []string{result.StatusOK, result.StatusFailed, result.StatusUnsupported}[rng.IntN(3)]
				out = append(out, r)
				if Finished(r, retries) {
					break
				}
			}
		}
	}
	return out
}

func finishedIDs(records []result.Sample, block, retries int) []string {
	last := make(map[string]result.Sample)
	for _, r := range records {
		if r.Block == block {
			last[r.ID] = r
		}
	}
	var out []string
	for id, r := range last {
		if Finished(r, retries) {
			out = append(out, id)
		}
	}
	return out
}

func ids(slots []Slot) []string {
	var out []string
	for _, s := range slots {
		out = append(out, s.ID)
	}
	return out
}

func remainingIn(p Plan, records []result.Sample, retries int) int {
	n := 0
	for block := 1; block <= p.MaxBlocks; block++ {
		n += len(Remaining(p.Block(block, nil), records, retries))
	}
	return n
}

func TestFinished(t *testing.T) {
	tests := []struct {
		status  string
		attempt int
		retries int
		want    bool
	}{
		{result.StatusOK, 1, 1, true},
		{result.StatusUnsupported, 1, 1, true},
		{result.StatusFailed, 1, 0, true},
		{result.StatusFailed, 1, 1, false},
		{result.StatusFailed, 2, 1, true},
		{"", 1, 1, false},
	}
	for _, tt := range tests {
		if got := Finished(result.Sample{Status: tt.status, Attempt: tt.attempt}, tt.retries); got != tt.want {
			t.Errorf("%q attempt %d of retries %d: finished = %v", tt.status, tt.attempt, tt.retries, got)
		}
	}
}

func TestSame(t *testing.T) {
	base := New(matrix("host", "bridge"), 1)
	if err := base.Same(New(matrix("bridge", "host"), 99)); err != nil {
		t.Errorf("another seed and another order of the file: %v", err)
	}
	other := matrix("host", "bridge", "macvlan")
	other.Workloads = other.Workloads[:1]
	other.Sampling.Seconds, other.Sampling.MaxBlocks = 2, 40
	other.Networks[1].Contents = [][]byte{[]byte("{ }")}
	q := New(other, 1)
	base.Conflists = map[string]string{"bridge": "0"}
	err := base.Same(q)
	if err == nil {
		t.Fatal("no difference seen")
	}
	for _, want := range []string{
		"recorded, but no longer in the campaign: bridge pod-to-pod inter-host, unshaped, default_settings, MTU 1500, tcp_rr 64 B; host ",
		"in the campaign, but not in the recorded plan: macvlan ",
		"sampling.seconds was 1, is 2", "sampling.max_blocks was 20, is 40",
		`the conflist of network "bridge" has changed`, "start a new directory",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in:\n%v", want, err)
		}
	}
}

func TestCheckFindsWhatIsTwiceOrForeign(t *testing.T) {
	p := New(matrix("host", "bridge"), 1)
	record := func(cell, attempt int, status string) result.Sample {
		return result.Sample{ID: p.id(1, cell), Block: 1, Attempt: attempt, Cell: p.Cells[cell], Status: status}
	}
	foreign := record(0, 1, result.StatusOK)
	foreign.Cell.MTU = 9000
	renamed := record(0, 1, result.StatusOK)
	renamed.ID = "b02-c000"
	tests := []struct {
		name    string
		records []result.Sample
		want    string
	}{
		{"fine", []result.Sample{record(0, 1, result.StatusFailed), record(0, 2, result.StatusOK)}, ""},
		{"twice", []result.Sample{record(0, 1, result.StatusOK), record(0, 2, result.StatusOK)}, "measured twice"},
		{"attempt lost", []result.Sample{record(0, 2, result.StatusOK)}, "attempt 2 follows attempt 0"},
		{"foreign", []result.Sample{foreign}, "not in the plan"},
		{"renamed", []result.Sample{renamed}, "expected the id b01-c000"},
	}
	for _, tt := range tests {
		err := p.Check(tt.records, 1)
		if (tt.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	good := func(change func(map[string]any)) string {
		data, _ := json.Marshal(New(matrix("host"), 1))
		var m map[string]any
		_ = json.Unmarshal(data, &m)
		change(m)
		data, _ = json.Marshal(m)
		return string(data)
	}
	cells := func(m map[string]any) []any { return m["cells"].([]any) }
	tests := []struct{ name, text, want string }{
		{"empty", "", "not a plan"},
		{"newer", good(func(m map[string]any) { m["schema"] = Schema + 1 }), "schema 3"},
		{"unknown key", good(func(m map[string]any) { m["colour"] = 1 }), `unknown field "colour"`},
		{"more", good(func(map[string]any) {}) + "{}", "after top-level value"},
		{"no cells", good(func(m map[string]any) { m["cells"] = nil }), "no cells"},
		{"blocks", good(func(m map[string]any) { m["min_blocks"] = 30 }), "from 30 to 20"},
		{"length", good(func(m map[string]any) { m["sample_seconds"] = 0 }), "impossible sample length"},
		{"twice", good(func(m map[string]any) { cells(m)[1] = cells(m)[0] }), "cells 0 and 1 the same"},
	}
	for _, tt := range tests {
		if _, err := Parse([]byte(tt.text)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	data, _ := json.Marshal(New(matrix("host", "bridge"), 1))
	f.Add(data)
	f.Add([]byte(`{"schema":1,"cells":[{}],"min_blocks":1,"max_blocks":1,"sample_seconds":1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		defer fuzzed.Within(t)()
		p, err := Parse(data)
		if err != nil {
			return
		}
		if len(p.Cells) > 1000 {
			return
		}
		if got := len(p.Block(1, nil)); got != len(p.Cells) {
			t.Fatalf("%d slots for %d cells", got, len(p.Cells))
		}
	})
}
