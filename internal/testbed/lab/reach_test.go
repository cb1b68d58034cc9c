package lab

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/labtest"
)

// TestNothingLeadsIntoALab: while a lab is up, the machine's own namespace has no device,
// address or route that it had not before. So only root, who can enter namespaces, reaches
// a port that is open in a lab.
func TestNothingLeadsIntoALab(t *testing.T) {
	needLab(t)
	dir := stateDir(t)
	ours := labtest.Ours{Dir: dir, Program: "/nonexistent/cnibench"}
	before := labtest.TakeTrace(t, ours)
	l := New(options(newRunner(t), dir))
	all := cells("host", "bridge", "flannel/vxlan", "macvlan")
	if _, err := l.Build(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	for _, c := range all {
		ends, err := l.Ends(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if !ends.ServerAddress.IsValid() {
			t.Errorf("%s: no address", c.Network)
		}
	}
	now := labtest.TakeTrace(t, ours)
	for _, k := range []struct {
		what          string
		before, after []string
	}{{"devices", before.Devices, now.Devices}, {"addresses", before.Addresses, now.Addresses}, {"routes", before.Routes, now.Routes}} {
		if diff := cmp.Diff(k.before, k.after); diff != "" {
			t.Errorf("%s of the machine's own namespace (-before +while the lab is up):\n%s", k.what, diff)
		}
	}
}
