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

	"golang.org/x/sys/unix"
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

// Clear removes the folders that killed owners left, and names them. What is no folder of
// this user's is left alone: a FIFO, a link, somebody else's folder. It never waits.
func Clear(pattern string) ([]string, error) {
	left, err := filepath.Glob(filepath.Join(Dir(), pattern))
	errs := []error{err}
	var cleared []string
	for _, path := range left {
		f, err := claim(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if f != nil {
			err = errors.Join(err, os.RemoveAll(path), f.Close())
			cleared = append(cleared, path)
		}
		errs = append(errs, err)
	}
	return cleared, errors.Join(errs...)
}

// claim opens and locks a folder of this user's. It returns nil where the path is
// something else or its owner lives, and fs.ErrNotExist where it is gone.
func claim(path string) (*os.File, error) {
	// Without O_NONBLOCK a FIFO would be waited for; O_NOFOLLOW refuses a link.
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	switch {
	case errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP), errors.Is(err, unix.EACCES):
		return nil, nil
	case err != nil:
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	f := os.NewFile(uintptr(fd), path)
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if of, ok := info.Sys().(*syscall.Stat_t); !ok || int(of.Uid) != os.Geteuid() {
		return nil, f.Close()
	}
	err = unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, f.Close()
	}
	var there os.FileInfo
	if err == nil {
		there, err = os.Lstat(path)
	}
	if err == nil && !os.SameFile(info, there) {
		err = fs.ErrNotExist // another has the name by now
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
