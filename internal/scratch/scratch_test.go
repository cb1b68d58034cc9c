package scratch

import (
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/labtest"
)

func openTemp(t *testing.T) string {
	t.Helper()
	dir := labtest.OpenTempDir(t)
	t.Setenv("TMPDIR", dir)
	return dir
}

// TestDirIsReachable: tools run as nobody where cnibench is root, so a TMPDIR that is
// closed to others is not used there, as libpam-tmpdir gives one to every user.
func TestDirIsReachable(t *testing.T) {
	open := openTemp(t)
	if got := Dir(); got != open {
		t.Errorf("Dir() = %s, want TMPDIR, which all may enter: %s", got, open)
	}
	closed := filepath.Join(open, "closed")
	within := filepath.Join(closed, "user")
	if err := os.MkdirAll(within, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	want := within
	if os.Geteuid() == 0 {
		want = everybodys
	}
	for _, dir := range []string{within, within + "/"} {
		t.Setenv("TMPDIR", dir)
		if got := filepath.Clean(Dir()); got != want {
			t.Errorf("TMPDIR=%s: Dir() = %s, want %s", dir, got, want)
		}
	}
}

// TestClearTrustsNoName: next to the folder of a killed owner there are a living owner's, a
// FIFO (on which 83aa48e hung as root), a link and another user's folder.
func TestClearTrustsNoName(t *testing.T) {
	tmp := openTemp(t)
	const pattern = "cnb-agent-*"
	living, err := Make(pattern)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := living.Stat(); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	killed, err := Make(pattern)
	if err != nil {
		t.Fatal(err)
	}
	if err := killed.Close(); err != nil { // as the kernel does
		t.Fatal(err)
	}
	mine := filepath.Join(t.TempDir(), "mine")
	if err := os.Mkdir(mine, 0o700); err != nil {
		t.Fatal(err)
	}
	stay := []string{living.Name()}
	for name, err := range map[string]error{
		"cnb-agent-fifo": unix.Mkfifo(filepath.Join(tmp, "cnb-agent-fifo"), 0o666),
		"cnb-agent-link": os.Symlink(mine, filepath.Join(tmp, "cnb-agent-link")),
		"cnb-agent-file": os.WriteFile(filepath.Join(tmp, "cnb-agent-file"), nil, 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
		stay = append(stay, filepath.Join(tmp, name))
	}
	if os.Geteuid() == 0 {
		other := filepath.Join(tmp, "cnb-agent-other")
		if err := os.Mkdir(other, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(other, 65534, 65534); err != nil {
			t.Fatal(err)
		}
		stay = append(stay, other)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		cleared, err := Clear(pattern)
		if err != nil || !slices.Equal(cleared, []string{killed.Name()}) {
			t.Errorf("cleared %q, %v, want %s", cleared, err, killed.Name())
		}
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("it waits for a FIFO")
	}
	for _, path := range append(stay, mine) {
		if _, err := os.Lstat(path); err != nil {
			t.Errorf("it is gone: %v", err)
		}
	}
	if err := living.Close(); err != nil {
		t.Error(err)
	}
}

// TestMakeBesideClear: a folder that Make returns is never removed by a Clear at the same
// time.
func TestMakeBesideClear(t *testing.T) {
	openTemp(t)
	stop := make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := Clear("cnb-x-*"); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for range 200 {
		f, err := Make("cnb-x-*")
		if err != nil {
			t.Error(err)
			break
		}
		if err := os.WriteFile(filepath.Join(f.Name(), "a"), nil, 0o600); err != nil {
			t.Errorf("a locked folder was removed: %v", err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	wait.Wait()
}
