package agent

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/labtest"
)

// Any user may put anything into /tmp. A FIFO there once stopped root for good.
func TestClearScratchPassesForeignThingsOver(t *testing.T) {
	dir := labtest.OpenTempDir(t)
	t.Setenv("TMPDIR", dir)
	at := func(name string) string { return filepath.Join(dir, "cnb-agent-"+name) }
	precious := filepath.Join(dir, "precious")
	err := errors.Join(unix.Mkfifo(at("fifo"), 0o666), os.WriteFile(at("file"), nil, 0o600), os.Mkdir(at("left"), 0o700),
		os.Mkdir(precious, 0o700), os.Symlink(precious, at("link")))
	if os.Getuid() == 0 {
		err = errors.Join(err, os.Mkdir(at("theirs"), 0o700), os.Chown(at("theirs"), 65534, -1))
	}
	if err != nil {
		t.Fatal(err)
	}
	var s scratch
	if _, err := s.folder(); err != nil {
		t.Fatal(err)
	}
	type answer struct {
		cleared []string
		err     error
	}
	answered := make(chan answer, 1)
	go func() {
		cleared, err := ClearScratch()
		answered <- answer{cleared, err}
	}()
	select {
	case got := <-answered:
		if got.err != nil || !slices.Equal(got.cleared, []string{at("left")}) {
			t.Errorf("cleared %v (%v), want what was left alone", got.cleared, got.err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it waits for something in /tmp")
	}
	if _, err := os.Stat(s.dir.Name()); err != nil {
		t.Errorf("the folder of a living agent: %v", err)
	}
	if _, err := os.Stat(precious); err != nil {
		t.Error(err)
	}
	if err := s.remove(); err != nil {
		t.Error(err)
	}
}
