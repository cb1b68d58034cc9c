// Package scratch makes folders for temporary files that a later command finds and removes
// where their owner was killed. They are in a folder that everybody may write to, so
// nothing there is trusted by its name alone.
package scratch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/cnibench/cnibench/internal/flock"
)

// tries bounds how often Make begins again, as each time somebody else removed its folder.
const tries = 10

// everybodys is where every Linux has a folder that every user may enter (FHS 3.0).
const everybodys = "/tmp"

// Dir is where Make makes its folders: the system's folder for temporary files. Root's own
// TMPDIR is often closed to others (libpam-tmpdir), and root's tools run as nobody: a
// folder that they could not reach would fail them, so root then gets /tmp.
func Dir() string {
	dir := os.TempDir()
	if os.Geteuid() != 0 || enteredByAll(dir) {
		return dir
	}
	return everybodys
}

// enteredByAll reports whether every user may pass through a folder and all above it.
func enteredByAll(dir string) bool {
	for dir = filepath.Clean(dir); ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil || info.Mode().Perm()&0o001 == 0 {
			return false
		}
		if dir == filepath.Dir(dir) {
			return true
		}
	}
}

// Make makes a folder that only this user may enter, in Dir, and locks it for as long as
// the file is open: the lock of a living owner keeps Clear away. pattern is that of
// os.MkdirTemp. The owner removes the folder.
func Make(pattern string) (*os.File, error) {
	for range tries {
		path, err := os.MkdirTemp(Dir(), pattern)
		if err != nil {
			return nil, fmt.Errorf("scratch folder: %w", err)
		}
		// Until it is locked another command may take it for one of a killed owner.
		f, err := claim(path)
		if err == nil && f != nil {
			return f, nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("scratch folder: %w", errors.Join(err, os.RemoveAll(path)))
		}
	}
	return nil, fmt.Errorf("scratch folder: %d new ones were removed by others before they could be locked", tries)
}

// Fresh clears the folders of a pattern that killed owners left, and makes a new one, which
// remove removes with all that is in it.
func Fresh(pattern string) (dir string, remove func() error, err error) {
	if _, err := Clear(pattern); err != nil {
		return "", nil, err
	}
	f, err := Make(pattern)
	if err != nil {
		return "", nil, err
	}
	return f.Name(), func() error { return errors.Join(os.RemoveAll(f.Name()), f.Close()) }, nil
}

// Clear removes the folders that killed owners left, and names them. What is no folder of
// this user's is left alone: a FIFO, a link, somebody else's folder. It never waits, but for
// first, which is called with each folder before it is removed: a folder whose first fails
// stays.
func Clear(pattern string, first ...func(dir string) error) ([]string, error) {
	left, err := filepath.Glob(filepath.Join(Dir(), pattern))
	errs := []error{err}
	var cleared []string
	for _, path := range left {
		f, err := claim(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if f != nil {
			for _, one := range first {
				err = errors.Join(err, one(path))
			}
			if err == nil {
				err = os.RemoveAll(path)
				cleared = append(cleared, path)
			}
			err = errors.Join(err, f.Close())
		}
		errs = append(errs, err)
	}
	return cleared, errors.Join(errs...)
}

// claim opens and locks a folder of this user's. It returns nil where the path is
// something else or its owner lives, and fs.ErrNotExist where it is gone.
func claim(path string) (*os.File, error) {
	f, err := flock.Lock(path, 0)
	if errors.Is(err, flock.ErrForeign) || errors.Is(err, flock.ErrHeld) || errors.Is(err, fs.ErrPermission) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if of, ok := info.Sys().(*syscall.Stat_t); !ok || int(of.Uid) != os.Geteuid() { // root's
		return nil, f.Close()
	}
	return f, nil
}
