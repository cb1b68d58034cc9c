package lab

import (
	"os"
	"testing"

	"github.com/cnibench/cnibench/internal/labtest"
)

// leavesNothing runs f and compares the machine before and after. id gives the
// lab that f made, as far as it is known.
func leavesNothing(t *testing.T, dir string, f func() (id string)) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	labtest.LeavesNothing(t, labtest.Ours{Dir: dir, Program: self}, func() []string {
		if id := f(); id != "" {
			return []string{id}
		}
		return nil
	})
}
