package flock

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestLockIsExclusiveAndNamesItsHolder(t *testing.T) {
	dir := t.TempDir()
	f, err := Lock(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(dir, 20*time.Millisecond); !errors.Is(err, ErrHeld) || !strings.Contains(err.Error(), fmt.Sprintf("process %d (", os.Getpid())) {
		t.Errorf("a second lock: %v", err)
	}
	time.AfterFunc(50*time.Millisecond, func() { _ = f.Close() })
	again, err := Lock(dir, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(filepath.Join(dir, "absent"), 0); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that does not exist: %v", err)
	}
}

// Another user may have made anything in a folder that all may write to.
func TestOpenRefusesWhatIsNoFolderOfOurs(t *testing.T) {
	dir := t.TempDir()
	fifo, link, file := filepath.Join(dir, "fifo"), filepath.Join(dir, "link"), filepath.Join(dir, "file")
	err := errors.Join(unix.Mkfifo(fifo, 0o666), os.Symlink(dir, link), os.WriteFile(file, nil, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	foreign := []string{fifo, link, file}
	if os.Getuid() == 0 {
		theirs := filepath.Join(dir, "theirs")
		if err := errors.Join(os.Mkdir(theirs, 0o755), os.Chown(theirs, 65534, -1)); err != nil {
			t.Fatal(err)
		}
		foreign = append(foreign, theirs)
	}
	for _, path := range foreign {
		if _, err := Open(path); !errors.Is(err, ErrForeign) {
			t.Errorf("%s: %v", path, err)
		}
	}
}
