// Package wholefile replaces files in one step: a reader sees the old one or the new one,
// and never half of it.
package wholefile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Write makes a file beside path, lets write fill it, syncs it, and moves it to path with
// the given mode. pattern is that of the file beside it (os.CreateTemp). On an error path
// is as it was, and nothing is beside it. The folder is not synced.
func Write(path, pattern string, mode fs.FileMode, write func(*os.File) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), pattern)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	if err := errors.Join(write(f), f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// Bytes is a func for Write that writes data.
func Bytes(data []byte) func(*os.File) error {
	return func(f *os.File) error {
		_, err := f.Write(data)
		return err
	}
}
