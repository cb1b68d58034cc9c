package result

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/wholefile"
)

// disk is where files go. A file is on it for good when it is synced and, after it
// was made or renamed, its folder is too: power may be lost at any moment.
type disk struct {
	// inPlaceOf is called instead of syncDir; nil: syncDir is.
	inPlaceOf func(dir string) error
}

// syncDir returns when the names in a folder are on the disk.
func (d disk) syncDir(dir string) error {
	if d.inPlaceOf != nil {
		return d.inPlaceOf(dir)
	}
	return syncDir(dir)
}

func syncDir(dir string) error {
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
	if err := replace(path, data); err != nil {
		return err
	}
	return d.syncDir(filepath.Dir(path))
}

// replace is writeFile without the sync of the folder.
func replace(path string, data []byte) error {
	return wholefile.Write(path, strings.TrimSuffix(tornPattern, "*")+filepath.Base(path)+"-*", 0o644, wholefile.Bytes(data))
}

// mkdirAll makes a folder with those above it.
func (d disk) mkdirAll(path string) error {
	var above []string // of the folders that are made
	for dir := filepath.Clean(path); ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir) {
			break // it is there, or MkdirAll has the error
		}
		above = append(above, filepath.Dir(dir))
	}
	err := os.MkdirAll(path, 0o755)
	for _, dir := range above {
		if err == nil {
			err = d.syncDir(dir)
		}
	}
	return err
}

// rawDir makes the folder of a sample below raw/. It does not make the result
// directory anew where somebody has deleted it: what would stand there then is
// no result, and in the way of the next run.
func (d *Dir) rawDir(sample string) (string, error) {
	raw := filepath.Join(d.Path, RawDir)
	dir := filepath.Join(raw, sample)
	for _, path := range []string{raw, dir} {
		switch err := os.Mkdir(path, 0o755); {
		case err == nil:
			if err := d.disk.syncDir(filepath.Dir(path)); err != nil {
				return "", err
			}
		case errors.Is(err, fs.ErrNotExist):
			return "", fmt.Errorf("%w: %w", errVanished, err)
		case !errors.Is(err, fs.ErrExist):
			return "", err
		}
	}
	return dir, nil
}
