package result

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// forgetful is a disk that remembers which names of each folder are on it for good.
type forgetful struct {
	t    *testing.T
	kept map[string][]string
	// cut says, at each sync, how long the samples file is once the torn line is
	// in a file of its own.
	cut []int64
}

func (f *forgetful) disk() disk {
	return disk{before: func(s step) error {
		if s.kind == stepSyncFolder {
			return f.sync(s.path)
		}
		return nil
	}}
}

func (f *forgetful) sync(dir string) error {
	names := f.names(dir)
	f.kept[dir] = names
	if slices.ContainsFunc(names, func(n string) bool { return strings.Contains(n, ".cut-") }) {
		info, err := os.Stat(filepath.Join(dir, SamplesFile))
		if err != nil {
			f.t.Error(err)
			return nil
		}
		f.cut = append(f.cut, info.Size())
	}
	return nil
}

func (f *forgetful) names(dir string) []string {
	f.t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		f.t.Error(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// survives checks that a loss of power now loses no name below a folder.
func (f *forgetful) survives(root, after string) {
	f.t.Helper()
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			if now := f.names(path); !slices.Equal(now, f.kept[path]) {
				f.t.Errorf("after %s, %s holds %v, of which the disk has %v", after, path, now, f.kept[path])
			}
		}
		return err
	})
	if err != nil {
		f.t.Error(err)
	}
}

func TestNamesAreOnTheDisk(t *testing.T) {
	root := t.TempDir()
	f := &forgetful{t: t, kept: map[string][]string{}}
	path := filepath.Join(root, "results", "r")
	d, err := create(path, []byte("name: x\n"), map[string]int{"schema": 1}, f.disk())
	if err != nil {
		t.Fatal(err)
	}
	f.survives(root, "create")
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"environment", func() error { return d.WriteJSON(EnvironmentFile, 1) }},
		{"raw output", func() error { return d.SaveRaw("b01-c000", "client", nil, "", "") }},
		{"raw output of another", func() error { return d.SaveRaw("b01-c001", "client", nil, "", "") }},
		{"stacks", func() error { return d.SaveStacks("b01-c001", "client", "a;b 1\n") }},
		{"record", func() error { return d.Append(sample("b01-c000")) }},
	} {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		f.survives(root, step.name)
	}
	whole := d.end
	if _, err := d.samples.WriteString("torn"); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	d, _, cut, err := resume(path, f.disk())
	if err != nil || cut.Bytes != 4 || d.Close() != nil {
		t.Fatalf("%+v, %v", cut, err)
	}
	f.survives(root, "repair")
	if !slices.Equal(f.cut, []int64{whole + 4}) {
		t.Errorf("the torn line was safe when the samples file had %v bytes, want %d", f.cut, whole+4)
	}
}

// WriteFile syncs a real folder; what it cannot open is an error.
func TestWriteFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	if err := WriteFile(path, []byte("1")); err != nil {
		t.Fatal(err)
	}
	if err := (disk{}).syncDir(path + "/nonesuch"); err == nil {
		t.Error("a folder that does not exist was synced")
	}
}
