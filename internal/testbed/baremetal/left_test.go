package baremetal

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/scratch"
)

// TestClearEndsWorkers: the workers of a killed Ansible are killed before its folder is
// removed, as they would make it again; those of a living owner go on.
func TestClearEndsWorkers(t *testing.T) {
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		t.Skip("no /proc")
	}
	t.Setenv("TMPDIR", labtest.OpenTempDir(t))
	r := exec.NewRunner()
	t.Cleanup(r.Close) // it ends those that live
	worker := func(dir string) *exec.Process {
		p, err := r.StartPiped(t.Context(), exec.Cmd{Argv: []string{"sh", "-c", "while mkdir -p " + dir + "/local; do :; done"}, Env: []string{homeOf(dir)}})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	living, err := scratch.Make(scratchPattern)
	if err != nil {
		t.Fatal(err)
	}
	killed, err := scratch.Make(scratchPattern)
	if err != nil {
		t.Fatal(err)
	}
	goesOn, orphan := worker(living.Name()), worker(killed.Name())
	if err := killed.Close(); err != nil { // as the kernel does
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- orphan.Wait() }() // as init does
	if cleared, err := ClearScratch(); err != nil || !slices.Equal(cleared, []string{killed.Name()}) {
		t.Errorf("cleared %q (%v), want %s", cleared, err, killed.Name())
	}
	if err := <-done; err == nil || !strings.Contains(err.Error(), "signal: killed") {
		t.Errorf("the worker ended with %v", err)
	}
	if _, err := os.Stat(killed.Name()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder that was cleared is there again (%v)", err)
	}
	if err := goesOn.Signal(0); err != nil {
		t.Errorf("the worker of a living owner: %v", err)
	}
	if err := goesOn.Kill(); err != nil {
		t.Error(err)
	}
	_ = goesOn.Wait() // it was killed
	if err := living.Close(); err != nil {
		t.Error(err)
	}
}
