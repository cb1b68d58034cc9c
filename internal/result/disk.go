package result

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// disk is where files go. A file is on it for good when it is synced and, after it
// was made or renamed, its folder is too: power may be lost at any moment.
type disk struct {
	// before is called before each step, and may fail it; nil: nothing is.
	before func(step) error
	// forgets leaves out the waits for the disk, which are steps all the same: for tests
	// of thousands of them.
	forgets bool
}

// A step is one change of the file system, or a wait until changes are on the disk.
type step struct {
	kind     string
	path, to string // to: of a rename
	at       int64  // offset of a write, length after a truncation
	data     []byte // of a write
}

// The kinds of step. A folder is removed with all that is in it.
const (
	stepMkdir      = "mkdir"
	stepCreate     = "create"
	stepWrite      = "write"
	stepTruncate   = "truncate"
	stepRename     = "rename"
	stepRemove     = "remove"
	stepSync       = "sync"
	stepSyncFolder = "sync folder"
)

// begin is called before each step.
func (d disk) begin(s step) error {
	if d.before == nil {
		return nil
	}
	if err := d.before(s); err != nil {
		return &fs.PathError{Op: s.kind, Path: s.path, Err: err}
	}
	return nil
}

// file is one that is written, on a disk. What it inherits in addition to reading is not for
// writing: only the methods below are steps of the disk.
type file struct {
	*os.File
	disk disk
}

// Write writes at the file's offset.
func (f *file) Write(p []byte) (int, error) {
	if f.disk.before == nil {
		return f.File.Write(p)
	}
	at, err := f.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0, err
	}
	if err := f.disk.begin(step{kind: stepWrite, path: f.Name(), at: at, data: slices.Clone(p)}); err != nil {
		n, _ := f.File.Write(p[:len(p)/2]) // a disk fails in the middle of a write
		return n, err
	}
	return f.File.Write(p)
}

// Truncate cuts the file off.
func (f *file) Truncate(size int64) error {
	if err := f.disk.begin(step{kind: stepTruncate, path: f.Name(), at: size}); err != nil {
		return err
	}
	return f.File.Truncate(size)
}

// Sync returns when the file's contents are on the disk.
func (f *file) Sync() error {
	if err := f.disk.begin(step{kind: stepSync, path: f.Name()}); err != nil || f.disk.forgets {
		return err
	}
	return f.File.Sync()
}

// open opens a file to read and write it. It follows no link and waits for no FIFO: who
// wrote a result directory may have put one in place of a file.
func (d disk) open(path string, flag int) (*file, error) {
	if flag&os.O_CREATE != 0 {
		if err := d.begin(step{kind: stepCreate, path: path}); err != nil {
			return nil, err
		}
	}
	f, err := os.OpenFile(path, os.O_RDWR|flag|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o644)
	if errors.Is(err, unix.ELOOP) {
		return nil, fmt.Errorf("%s is a link: name the folder that has the file itself", path)
	}
	if err != nil {
		return nil, err
	}
	if err := isRegular(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &file{f, d}, nil
}

// temporary makes a new file, as os.CreateTemp does.
func (d disk) temporary(dir, pattern string) (*file, error) {
	f, err := os.CreateTemp(dir, pattern)
	if err != nil {
		return nil, err
	}
	if err := d.begin(step{kind: stepCreate, path: f.Name()}); err != nil {
		return nil, errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	return &file{f, d}, nil
}

func (d disk) mkdir(path string) error {
	if err := d.begin(step{kind: stepMkdir, path: path}); err != nil {
		return err
	}
	return os.Mkdir(path, 0o755)
}

func (d disk) rename(from, to string) error {
	if err := d.begin(step{kind: stepRename, path: from, to: to}); err != nil {
		return err
	}
	return os.Rename(from, to)
}

// remove removes a file or an empty folder, removeAll a folder with all in it; what does
// not exist is no error.
func (d disk) remove(path string) error { return d.removeBy(os.Remove, path) }

func (d disk) removeAll(path string) error { return d.removeBy(os.RemoveAll, path) }

func (d disk) removeBy(how func(string) error, path string) error {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := d.begin(step{kind: stepRemove, path: path}); err != nil {
		return err
	}
	if err := how(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// syncDir returns when the names in a folder are on the disk.
func (d disk) syncDir(dir string) error {
	if err := d.begin(step{kind: stepSyncFolder, path: dir}); err != nil || d.forgets {
		return err
	}
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = f.Sync()
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) {
		err = nil // some file systems have no such sync, and need none
	}
	return errors.Join(err, f.Close())
}

// WriteFile replaces a file whole or not at all: a reader never sees half of it,
// and after a loss of power it is the old one or the new one.
func WriteFile(path string, data []byte) error { return disk{}.writeFile(path, data) }

func (d disk) writeFile(path string, data []byte) error {
	if err := d.replace(path, data); err != nil {
		return err
	}
	return d.syncDir(filepath.Dir(path))
}

// replace is writeFile without the sync of the folder.
func (d disk) replace(path string, data []byte) (err error) {
	f, err := d.temporary(filepath.Dir(path), strings.TrimSuffix(tornPattern, "*")+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.remove(f.Name()))
		}
	}()
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close())
	if err != nil {
		return err
	}
	return d.rename(f.Name(), path)
}

// mkdirAll makes a folder with those above it.
func (d disk) mkdirAll(path string) error {
	var missing []string
	for dir := filepath.Clean(path); ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir) {
			break // it exists, or mkdir has the error
		}
		missing = append(missing, dir)
	}
	for _, dir := range slices.Backward(missing) {
		if err := d.mkdir(dir); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if err := d.syncDir(filepath.Dir(dir)); err != nil {
			return err
		}
	}
	return nil
}

// rawDir makes the folder of a sample below raw/. It does not make the result
// directory again where somebody has deleted it: what would be in its place then is
// no result, and in the way of the next run.
func (d *Dir) rawDir(sample string) (string, error) {
	raw := filepath.Join(d.Path, RawDir)
	dir := filepath.Join(raw, sample)
	for _, path := range []string{raw, dir} {
		switch err := d.disk.mkdir(path); {
		case err == nil:
			if err := d.disk.syncDir(filepath.Dir(path)); err != nil {
				return "", err
			}
		case errors.Is(err, fs.ErrNotExist):
			return "", fmt.Errorf("%w: %w", errVanished, err)
		case !errors.Is(err, fs.ErrExist):
			return "", err
		}
		if info, err := os.Lstat(path); err != nil || !info.IsDir() {
			return "", errors.Join(fmt.Errorf("%s is no folder: remove it", path), err)
		}
	}
	return dir, nil
}
