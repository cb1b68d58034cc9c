package cilium

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/network"
)

// TestDistances: how far the models are from Cilium's own agents is what docs/real.md has,
// and a model that was not compared says so.
func TestDistances(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/real.md")
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for real, models := range map[string][]network.Network{"cilium/native": {Native(), NativePolicy()}, "cilium/vxlan": {VXLAN(), VXLANPolicy()}, "cilium/geneve": {Geneve()}, "cilium/native+netkit": {NativeNetkit()}} {
		for _, model := range models {
			_, row, found := strings.Cut(string(doc), fmt.Sprintf("\n| `%s` in Kubernetes | `%s` |", real, model.Name))
			cells := strings.Split(row, "|")
			if !found || len(cells) < 2 {
				if model.Distance != nil || !strings.Contains(model.LeavesOut, "not counted") {
					t.Errorf("%s: %v; without %q, and docs/real.md does not compare it", model.Name, model.Distance, model.LeavesOut)
				}
				continue
			}
			compared++
			var want [2]float64
			for i := range want {
				ratio, err := strconv.ParseFloat(strings.Fields(cells[i])[0], 64)
				if err != nil {
					t.Fatal(err)
				}
				if want[i], err = strconv.ParseFloat(strconv.FormatFloat(ratio, 'f', 2, 64), 64); err != nil {
					t.Fatal(err)
				}
			}
			if d := model.Distance; d == nil || [2]float64{d.BetweenNodesRatio, d.InsideNodeRatio} != want {
				t.Errorf("%s: %v, want %v as in docs/real.md", model.Name, d, want)
			}
		}
	}
	if compared < 6 {
		t.Errorf("%d models are compared", compared)
	}
}
