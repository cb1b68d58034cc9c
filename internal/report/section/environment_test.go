package section

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/result"
)

// TestPodStarts: less than a second is 0 s, and what was not reported is marked as such.
func TestPodStarts(t *testing.T) {
	zero, three := 0.0, 3.0
	env := &result.Environment{Places: map[string]result.PlaceFacts{
		"pod-server-1 on b": {PodStart: &result.PodStart{TakenSeconds: &zero, StartedSeconds: &three}},
		"client":            {},
	}}
	got := podStarts(report.New(report.Input{Environment: env}))
	var rows [][]string
	for _, row := range got.Rows {
		var texts []string
		for _, c := range row {
			texts = append(texts, c.Text)
		}
		rows = append(rows, texts)
	}
	want := [][]string{{"pod-server-1 on b", "not reported", "0 s", "not reported", "3 s"}}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for _, row := range got.Rows {
		if len(row) != len(got.Columns) {
			t.Errorf("a row of %d cells, %d columns", len(row), len(got.Columns))
		}
	}
}
