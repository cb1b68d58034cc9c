package wholefile

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// A file is replaced whole, with its mode; where the writing fails, the old one stays and
// nothing is beside it.
func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	if err := Write(path, ".new-*", 0o640, Bytes([]byte("old"))); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("no more")
	err := Write(path, ".new-*", 0o600, func(f *os.File) error {
		_, err := f.WriteString("half")
		return errors.Join(err, broken)
	})
	if !errors.Is(err, broken) {
		t.Errorf("the error is %v", err)
	}
	if err := Write(filepath.Join(dir, "none", "file"), ".new-*", 0o600, Bytes(nil)); err == nil {
		t.Error("a folder that does not exist is no error")
	}
	text, err := os.ReadFile(path)
	if err != nil || string(text) != "old" {
		t.Errorf("%q, %v", text, err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("%d files are left, %v", len(left), err)
	}
}
