package doctor

import (
	"testing"

	"github.com/cnibench/cnibench/internal/probe"
)

// A machine whose /proc shows nothing has a reason and a cure for each probe, and
// this machine has neither.
func TestFirstEdge(t *testing.T) {
	empty := Options{Proc: t.TempDir(), Sys: t.TempDir()}.filled()
	for _, c := range empty.edges() {
		if c.Status != Missing || c.Detail == "" || c.Cure == "" {
			t.Errorf("of an empty /proc: %+v", c)
		}
	}
	took, err := firstEdge(probe.Roots{Proc: "/proc", Sys: "/sys"}, probe.CPUName)
	if err != nil || took <= 0 {
		t.Errorf("this machine's: %v (%v)", took, err)
	}
}
