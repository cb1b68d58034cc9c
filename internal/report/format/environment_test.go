package format

import (
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/reporttest"
	"github.com/cnibench/cnibench/internal/report/screen"
	"github.com/cnibench/cnibench/internal/result"
)

// TestDistanceIsInEveryOutput: how far a model is from the real network is in each format,
// and in the answer on one screen.
func TestDistanceIsInEveryOutput(t *testing.T) {
	in := reporttest.WithBlocks(reporttest.Normal())
	for _, distance := range []*result.Distance{nil, {BetweenNodesRatio: 1.2449, InsideNodeRatio: 0.917}} {
		in.Environment.Networks["calico/direct"] = result.NetworkFacts{Kind: result.KindOwnPlugin, Model: "Calico v3.30", Distance: distance}
		for _, name := range Names() {
			for _, long := range []bool{false, true} {
				got := strings.Join(strings.Fields(render(t, name, in, screen.Options{Width: 80, Unicode: true, Long: long})), " ")
				said := strings.Contains(got, "24 % more between nodes, 8 % fewer inside a node")
				if name == "json" {
					said = said && strings.Contains(got, `"instructions_between_nodes_ratio": 1.2449`)
				}
				if said != (distance != nil) {
					t.Errorf("%s, long %v, distance %v: said %v", name, long, distance, said)
				}
			}
		}
	}
}

// TestStarsFollowTheKind: the star of a rebuilt datapath is put by the network's kind;
// records without one have a star where they have a model.
func TestStarsFollowTheKind(t *testing.T) {
	in := reporttest.Normal()
	in.Environment.Networks["flannel/vxlan"] = result.NetworkFacts{Kind: result.KindReal, Encapsulation: "vxlan", Datapath: "flanneld 0.28"}
	in.Environment.Networks["calico/direct"] = result.NetworkFacts{Kind: result.KindOwnPlugin, Model: "Calico v3.30", LeavesOut: "policy"}
	d := report.New(in)
	for network, want := range map[string]string{
		"flannel/vxlan": "flannel/vxlan", "calico/direct": "calico/direct*", "flannel/host-gw": "flannel/host-gw*", "bridge": "bridge", "host": "host",
	} {
		if got := d.Name(network); got != want {
			t.Errorf("%s is shown as %s, want %s", network, got, want)
		}
	}
	if got := strings.Join(d.Models(), "; "); strings.Contains(got, "flannel/vxlan") || !strings.Contains(got, "calico/direct after Calico v3.30") {
		t.Errorf("models: %s", got)
	}
	if page := render(t, "markdown", in, screen.Options{}); !strings.Contains(page, "nothing: it is what it says; carried by flanneld 0.28") {
		t.Error("what carries a real network's packets is not in the report")
	}
}
