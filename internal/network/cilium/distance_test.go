package cilium

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestDistances: what the models say of their distance from Cilium's own agents is what
// docs/real.md has.
func TestDistances(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/real.md")
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for model, real := range map[string]string{
		"cilium/native": "cilium/native", "cilium/native-policy": "cilium/native", "cilium/vxlan": "cilium/vxlan", "cilium/vxlan-policy": "cilium/vxlan",
	} {
		_, row, found := strings.Cut(string(doc), fmt.Sprintf("\n| `%s` in Kubernetes | `%s` |", real, model))
		cells := strings.Split(row, "|")
		if !found || len(cells) < 2 {
			if got := distance(model); !strings.Contains(got, "not counted") {
				t.Errorf("%s: %q, and docs/real.md does not compare it", model, got)
			}
			continue
		}
		compared++
		for i, where := range []string{"for a datagram between nodes", "more inside a node"} {
			ratio, err := strconv.ParseFloat(strings.Fields(cells[i])[0], 64)
			if err != nil {
				t.Fatal(err)
			}
			want := fmt.Sprintf("%.0f %% more", math.Round(100*(ratio-1)))
			if i == 0 {
				want += " instructions " + where
			} else {
				want = strings.TrimSuffix(want, " more") + " " + where
			}
			if got := distance(model); !strings.Contains(got, want) {
				t.Errorf("%s: %q, want %q as in docs/real.md", model, got, want)
			}
		}
	}
	if compared < 2 {
		t.Errorf("%d models are compared", compared)
	}
	if got := distance("cilium/geneve"); !strings.Contains(got, "not counted") {
		t.Errorf("cilium/geneve: %q", got)
	}
}
