package cli_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/fault"
	"github.com/cnibench/cnibench/internal/labtest"
)

// TestPluginThatNeverReturns: a run whose CNI plugin hangs can be interrupted, and leaves
// neither the plugin nor what that has started.
func TestPluginThatNeverReturns(t *testing.T) {
	t.Parallel()
	inCampaign(t, tiny("bridge"), func(s *survivor, _ labtest.Trace) {
		dir := filepath.Join(s.work, "plugins") // found before the real one
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		fault.Plugin(t, dir, "bridge", "[ \"$CNI_COMMAND\" = ADD ] || exit 0\n"+fault.NeverReturns)
		r := s.start(s.command("run", s.campaign(), "--out", s.out, "--cni-path", dir))
		r.until(t, func() bool {
			info, err := os.Stat(fault.Notes(dir, "bridge"))
			return err == nil && info.Size() > 0
		})
		if !r.running() {
			t.Fatalf("the run did not wait for its plugin:\n%s", r.Stderr())
		}
		begin := time.Now()
		if err := syscall.Kill(r.PID(), syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		if status := r.wait(t); status != 1 || time.Since(begin) > 30*time.Second {
			t.Errorf("status %d after %v:\n%s", status, time.Since(begin), r.Stderr())
		}
		if _, err := os.Stat(s.out); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a run that recorded nothing leaves its directory (%v)", err)
		}
	})
}

// TestTwoRunsOnOneMachine: two runs at the same time neither clear nor take what the other
// has.
func TestTwoRunsOnOneMachine(t *testing.T) {
	t.Parallel()
	inCampaign(t, tiny("bridge"), func(s *survivor, _ labtest.Trace) {
		first := s.run()
		other := filepath.Join(s.work, "other")
		second := s.start(s.command("run", s.campaign(), "--out", other, "--seed", "8"))
		for _, r := range []*started{first, second} {
			r.ends(t, 0)
			if strings.Contains(string(r.Stderr()), "cleared") {
				t.Errorf("it cleared what the other has:\n%s", r.Stderr())
			}
		}
		s.finished(nil)
		s.out = other
		for _, pattern := range []string{"other/.tmp-*", "other/raw/*/.tmp-*"} {
			if left, err := filepath.Glob(filepath.Join(s.work, pattern)); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v (%v)", left, err)
			}
		}
		s.finished(nil)
	})
}
