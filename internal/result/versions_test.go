package result_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/stat/estimate"
)

var update = flag.Bool("update", false, "write the golden files")

// TestVersion1StaysReadable holds a directory that a run of schema 1 wrote (36
// samples in the lab) against the figures that were reported of it then. There
// is no older schema to migrate; newer ones are refused (see
// TestBadLinesAreRefusedWithTheirPlace).
func TestVersion1StaysReadable(t *testing.T) {
	const golden = "testdata/v1.golden.json"
	rec, err := result.Read("testdata/v1")
	if err != nil {
		t.Fatal(err)
	}
	if len(rec.Samples) != 36 || rec.Torn != 0 || !rec.Complete() || rec.Environment.Schema != 1 {
		t.Errorf("%d samples, %d bytes torn, complete %v", len(rec.Samples), rec.Torn, rec.Complete())
	}
	p, err := plan.Parse(rec.Plan)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Check(rec.Samples, 1); err != nil {
		t.Error(err)
	}
	got := map[string]estimate.Estimate{}
	for _, c := range stat.Analyse(rec.Samples, dataset.Options{Environment: *rec.Environment}).Cells {
		name := fmt.Sprintf("%s %s", c.Cell.Network, c.Cell.Traffic())
		got[name+" "+c.Primary] = c.Absolute[c.Primary]
		if c.Efficiency != nil {
			got[name+" efficiency"] = *c.Efficiency
		}
		for metric, e := range c.Latency {
			got[name+" "+metric] = e
		}
	}
	if *update {
		data, err := json.MarshalIndent(got, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(golden, append(data, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]estimate.Estimate{}
	if err := json.Unmarshal(data, &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(1e-9, 0)); diff != "" {
		t.Errorf("other figures than were reported (-then +now):\n%s", diff)
	}
}
