package result

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// within runs f, which must not wait for ever.
func within(t *testing.T, what string, f func() error) error {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- f() }()
	select {
	case err := <-ended:
		return err
	case <-time.After(20 * time.Second):
		t.Fatalf("%s does not end", what)
		return nil
	}
}

// TestFilesThatAreNone: whoever wrote a result directory may have put a FIFO, which is
// waited for, or a device, which has no end, in place of a file.
func TestFilesThatAreNone(t *testing.T) {
	for _, name := range []string{SamplesFile, CampaignFile, PlanFile, EnvironmentFile} {
		for kind, put := range map[string]func(path string) error{
			"FIFO":   func(path string) error { return unix.Mkfifo(path, 0o644) },
			"device": func(path string) error { return os.Symlink("/dev/zero", path) },
			"folder": func(path string) error { return os.Mkdir(path, 0o755) },
		} {
			d := newDir(t)
			path := filepath.Join(d.Path, name)
			if err := errors.Join(d.Append(sample("b01-c000")), d.WriteJSON(EnvironmentFile, Environment{Schema: Schema}), d.Close(), os.Remove(path), put(path)); err != nil {
				t.Fatal(err)
			}
			err := within(t, "reading a "+kind+" as "+name, func() error {
				_, err := Read(d.Path)
				return err
			})
			if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "no file") {
				t.Errorf("%s is a %s: %v", name, kind, err)
			}
			err = within(t, "resuming with a "+kind+" as "+name, func() error {
				d, _, _, err := Resume(d.Path)
				if err == nil {
					err = errors.Join(d.Close(), errors.New("resumed"))
				}
				return err
			})
			if name != EnvironmentFile && name != CampaignFile && (err == nil || err.Error() == "resumed") {
				t.Errorf("%s is a %s, and is resumed", name, kind)
			}
		}
	}
}

// TestResumeFollowsNoLink: root once would have cut the last line off whatever file
// samples.jsonl led to.
func TestResumeFollowsNoLink(t *testing.T) {
	d := newDir(t)
	precious := filepath.Join(t.TempDir(), "precious")
	samples := filepath.Join(d.Path, SamplesFile)
	if err := errors.Join(d.Close(), os.WriteFile(precious, []byte("one line, no record"), 0o600), os.Remove(samples), os.Symlink(precious, samples)); err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := Resume(d.Path); err == nil || !strings.Contains(err.Error(), "is a link") {
		t.Errorf("resume: %v", err)
	}
	if text, err := os.ReadFile(precious); err != nil || string(text) != "one line, no record" {
		t.Errorf("the file holds %q (%v)", text, err)
	}
}

// TestLongLines: a line of samples.jsonl may fill the memory of its reader; one above the
// bound is refused with its place, whether it ends or not, and none is written.
func TestLongLines(t *testing.T) {
	long := strings.Repeat("x", maxLine)
	good := string(read(t, "b01-c000"))
	for name, c := range map[string]struct {
		text string
		line int
	}{
		"without an end":    {good + long + "x", 2},
		"with an end":       {good + good + long + "\n" + good, 3},
		"longer than twice": {long + long + long, 1},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, SamplesFile), []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Each(dir, func(*Sample) {})
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%s:%d: not a record: the line is longer than 16 MiB", SamplesFile, c.line)) {
			t.Errorf("%s: %.200v", name, err)
		}
	}
	d := newDir(t)
	s := sample("b01-c000")
	s.Warnings = []string{long}
	if err := d.Append(s); !errors.Is(err, ErrTooLong) {
		t.Errorf("append: %.200v", err)
	}
	s.Warnings[0] = long[:len(long)/2]
	if err := errors.Join(d.Append(s), d.Close()); err != nil {
		t.Errorf("append: %.200v", err)
	}
	if r, err := Read(d.Path); err != nil || len(r.Samples) != 1 {
		t.Errorf("%d records, %v", len(r.Samples), err)
	}
}

// read is a record's line.
func read(t *testing.T, id string) []byte {
	t.Helper()
	d := newDir(t)
	if err := errors.Join(d.Append(sample(id)), d.Close()); err != nil {
		t.Fatal(err)
	}
	line, err := os.ReadFile(filepath.Join(d.Path, SamplesFile))
	if err != nil {
		t.Fatal(err)
	}
	return line
}

// TestRawLeadsNowhereElse: the folder that a record names is one of its own directory.
func TestRawLeadsNowhereElse(t *testing.T) {
	for _, raw := range []string{"..", "../other", "/etc", "raw/../../other"} {
		s := sample("b01-c000")
		s.Raw = raw
		if err := EachStack(t.TempDir(), &s, func(Stack) {}); err == nil || !strings.Contains(err.Error(), "no folder of the result directory") {
			t.Errorf("%s: %v", raw, err)
		}
	}
}

// TestResumeWritesNowhereElse: raw/, or a folder in it, may be a link: nothing is removed
// or written where it leads to.
func TestResumeWritesNowhereElse(t *testing.T) {
	for _, link := range []string{RawDir, RawDir + "/b01-c000"} {
		d := newDir(t)
		other := t.TempDir()
		precious := filepath.Join(other, "x", tornPattern[:len(tornPattern)-1]+"precious")
		if link != RawDir {
			precious = filepath.Join(other, filepath.Base(precious))
		}
		err := errors.Join(d.Append(sample("b01-c001")), d.Close(), os.MkdirAll(filepath.Dir(precious), 0o755), os.WriteFile(precious, nil, 0o600),
			os.MkdirAll(filepath.Dir(filepath.Join(d.Path, link)), 0o755), os.Symlink(other, filepath.Join(d.Path, link)))
		if err != nil {
			t.Fatal(err)
		}
		d, _, _, err = Resume(d.Path)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.SaveRaw("b01-c000", "client", []string{"tool"}, "out", ""); err == nil || !strings.Contains(err.Error(), "is no folder") {
			t.Errorf("%s is a link: %v", link, err)
		}
		d.Close()
		if _, err := os.Stat(precious); err != nil {
			t.Errorf("%s is a link: %v", link, err)
		}
		if left, err := filepath.Glob(filepath.Join(other, "*/client*")); err != nil || len(left) > 0 {
			t.Errorf("%s is a link: %v was written", link, left)
		}
	}
}
