package baremetal

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"

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
	worker := func(dir string) *exec.Cmd {
		cmd := exec.Command("sh", "-c", "while mkdir -p "+dir+"/local; do :; done")
		cmd.Env = append(os.Environ(), homeOf(dir))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill() }) // it may have ended
		return cmd
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
	if err := <-done; err == nil || err.Error() != "signal: killed" {
		t.Errorf("the worker ended with %v", err)
	}
	if _, err := os.Stat(killed.Name()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder that was cleared is there again (%v)", err)
	}
	if err := goesOn.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the worker of a living owner: %v", err)
	}
	if err := errors.Join(goesOn.Process.Kill(), living.Close()); err != nil {
		t.Error(err)
	}
	_ = goesOn.Wait() // it was killed
}
