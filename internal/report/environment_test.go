package report

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/result"
)

// TestPodStarts: less than a second is 0 s, and what was not told is said to be so.
func TestPodStarts(t *testing.T) {
	zero, three := 0.0, 3.0
	env := &result.Environment{Places: map[string]result.PlaceFacts{
		"pod-server-1 on b": {PodStart: &result.PodStart{TakenSeconds: &zero, StartedSeconds: &three}},
		"client":            {},
	}}
	got := newDocument(Input{Environment: env}).podStarts()
	var rows [][]string
	for _, row := range got.Rows {
		var texts []string
		for _, c := range row {
			texts = append(texts, c.Text)
		}
		rows = append(rows, texts)
	}
	want := [][]string{{"pod-server-1 on b", "not told", "0 s", "not told", "3 s"}}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for _, row := range got.Rows {
		if len(row) != len(got.Columns) {
			t.Errorf("a row of %d cells, %d columns", len(row), len(got.Columns))
		}
	}
}

// TestStarsFollowTheKind: the star of a rebuilt datapath is put by the network's kind;
// records without one have a star where they have a model.
func TestStarsFollowTheKind(t *testing.T) {
	in := normal()
	in.Environment.Networks["flannel/vxlan"] = result.NetworkFacts{Kind: result.KindReal, Encapsulation: "vxlan", Datapath: "flanneld 0.28"}
	in.Environment.Networks["calico/direct"] = result.NetworkFacts{Kind: result.KindOwnPlugin, Model: "Calico v3.30", LeavesOut: "policy"}
	d := newDocument(in)
	for network, want := range map[string]string{
		"flannel/vxlan": "flannel/vxlan", "calico/direct": "calico/direct*", "flannel/host-gw": "flannel/host-gw*", "bridge": "bridge", "host": "host",
	} {
		if got := d.name(network); got != want {
			t.Errorf("%s is shown as %s, want %s", network, got, want)
		}
	}
	if got := strings.Join(d.models(), "; "); strings.Contains(got, "flannel/vxlan") || !strings.Contains(got, "calico/direct after Calico v3.30") {
		t.Errorf("models: %s", got)
	}
	if page := render(t, "markdown", in, Options{}); !strings.Contains(page, "nothing: it is what it says; carried by flanneld 0.28") {
		t.Error("what carries a real network's packets is not in the report")
	}
}
