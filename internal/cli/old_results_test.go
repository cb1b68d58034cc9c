package cli_test

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/cnibench/cnibench/internal/cli"
	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/result"
)

// TestOldResultsAreResumed resumes a campaign that a version without conditions (83aa48e)
// began, in the middle of a block: its records stay as they are, what is missing is measured
// once, and under the conditions that the records have: free placement, the machine's own
// congestion control, and one long window a sample.
func TestOldResultsAreResumed(t *testing.T) {
	s := newSurvivor(t)
	before := labtest.TakeTrace(t, s.ours)
	if err := os.CopyFS(s.out, os.DirFS("../result/testdata/v1")); err != nil {
		t.Fatal(err)
	}
	const kept = 20
	samples := filepath.Join(s.out, result.SamplesFile)
	text := []byte(contents(t, samples))
	lines := bytes.SplitAfterN(text, []byte("\n"), kept+1)
	begun := bytes.Join(lines[:kept], nil)
	environment := filepath.Join(s.out, result.EnvironmentFile)
	unfinished := regexp.MustCompile(`(?m)^  "finished": .*\n`).ReplaceAllString(contents(t, environment), "")
	for path, text := range map[string][]byte{samples: begun, environment: []byte(unfinished)} {
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}

	run := s.start(s.command("run", "--resume", "--out", s.out, "--allow-changed-environment"))
	if status := run.wait(t); status != 0 {
		t.Fatalf("status %d: %s", status, run.Stderr())
	}
	if now := []byte(contents(t, samples)); !bytes.HasPrefix(now, begun) {
		t.Error("the records that were there are not as before")
	}
	rec, err := result.Read(s.out)
	if err != nil {
		t.Fatal(err)
	}
	measured := map[string]int{}
	for i, r := range rec.Samples {
		if r.Status == result.StatusOK {
			measured[r.ID]++
		}
		if r.Cell.CPUs != "" || r.Cell.CongestionControl != "" || r.Slices != nil {
			t.Errorf("record %d has conditions that its campaign does not: %+v", i, r.Cell)
		}
	}
	if want := bytes.Count(text, []byte("\n")); len(measured) != want {
		t.Errorf("%d samples measured of %d", len(measured), want)
	}
	for id, n := range measured {
		if n != 1 {
			t.Errorf("%s was measured %d times", id, n)
		}
	}
	s.leavesNothing(before)
}

// TestOldResultsHaveTheSameNumbers reports a campaign of 83aa48e. What that version reported
// of its cells (testdata/v1-cells.json: analysis.cells of its `report --json`) is what this
// one reports; this one may report more.
func TestOldResultsHaveTheSameNumbers(t *testing.T) {
	var stdout bytes.Buffer
	if status := cli.Main([]string{"report", "../result/testdata/v1", "-o", "json"}, &stdout, io.Discard); status != 0 {
		t.Fatalf("status %d", status)
	}
	var now struct {
		Analysis struct{ Cells []any }
	}
	var then []any
	if err := json.Unmarshal(stdout.Bytes(), &now); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(contents(t, "testdata/v1-cells.json")), &then); err != nil {
		t.Fatal(err)
	}
	if len(then) == 0 || len(then) != len(now.Analysis.Cells) {
		t.Fatalf("%d cells, %d then", len(now.Analysis.Cells), len(then))
	}
	for i := range then {
		if diff := cmp.Diff(then[i], part(then[i], now.Analysis.Cells[i]), cmpopts.EquateApprox(1e-9, 0)); diff != "" {
			t.Errorf("cell %d (-then +now)\n%s", i, diff)
		}
	}
}

// part is of all what has a place in some.
func part(some, all any) any {
	a, okA := some.(map[string]any)
	b, okB := all.(map[string]any)
	if !okA || !okB {
		return all
	}
	out := map[string]any{}
	for k := range a {
		if v, ok := b[k]; ok {
			out[k] = part(a[k], v)
		}
	}
	return out
}
