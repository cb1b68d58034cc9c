package lab

import (
	"testing"

	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/probe"
	"github.com/cnibench/cnibench/internal/unit"
)

// TestServicesAreTimed: nodes with services have the time that it took to program them,
// others have none.
func TestServicesAreTimed(t *testing.T) {
	eachProxy(t, func(t *testing.T, p network.ServiceProxy) {
		if p.Family != "" {
			return // it is timed by the same code
		}
		t.Parallel()
		l, _ := buildServices(t, "bridge", p.Name, 20, 2, 1)
		for _, cell := range serviceCells("bridge", p.Name, 20)[:2] {
			r := l.WatchNodes(t.Context(), cell, []string{probe.NetfilterName})(t.Context())
			for node, values := range map[string]map[string]float64{"client": r.Client, "server": r.Server} {
				if took := values[unit.ServicesSetUpSeconds]; took <= 0 {
					t.Errorf("%s: the %s's node took %v s for 20 services", cell.Placement, node, took)
				}
			}
		}
	})
	l := New(options(newRunner(t), t.TempDir()))
	all := cells("bridge")
	buildLab(t, l, all)
	r := l.WatchNodes(t.Context(), all[0], []string{probe.NetfilterName})(t.Context())
	if took, there := r.Client[unit.ServicesSetUpSeconds]; there {
		t.Errorf("a node without services took %v s for them", took)
	}
}
