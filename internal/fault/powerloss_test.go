package fault

import (
	"path/filepath"
	"testing"
)

// TestDiskForgets: of a file that is replaced, each order of syncs leaves what POSIX
// allows, and no more.
func TestDiskForgets(t *testing.T) {
	do := func(d *Disk, steps ...Step) {
		t.Helper()
		for _, s := range steps {
			s.Path = filepath.Join("/r", s.Path)
			if s.To != "" {
				s.To = filepath.Join("/r", s.To)
			}
			if err := d.Do(s); err != nil {
				t.Fatalf("%+v: %v", s, err)
			}
		}
	}
	losses := func(d *Disk) map[string]bool {
		all := map[string]bool{}
		for _, tree := range d.Losses() {
			if len(tree) > 1 {
				t.Errorf("more than one name: %v", tree)
			}
			text, exists := tree["f"]
			if !exists {
				text = "absent"
			}
			all[text] = true
		}
		return all
	}
	want := func(what string, d *Disk, texts ...string) {
		t.Helper()
		got := losses(d)
		for _, text := range texts {
			if !got[text] {
				t.Errorf("%s: %q cannot be left: %v", what, text, got)
			}
		}
		if len(got) != len(texts) {
			t.Errorf("%s: %v can be left, want %q", what, got, texts)
		}
	}
	d := NewDisk("/r")
	do(d, Step{Kind: Create, Path: "f"}, Step{Kind: Write, Path: "f", Data: []byte("abcd")})
	want("nothing synced", d, "absent", "", "ab", "abcd", "\x00\x00\x00\x00")
	do(d, Step{Kind: Sync, Path: "f"})
	want("contents synced", d, "absent", "abcd")
	do(d, Step{Kind: SyncFolder, Path: "."})
	want("both synced", d, "abcd")
	do(d, Step{Kind: Write, Path: "f", At: 4, Data: []byte("ef")})
	want("appended", d, "abcd", "abcde", "abcdef", "abcd\x00\x00")
	do(d, Step{Kind: Truncate, Path: "f", At: 4}, Step{Kind: Sync, Path: "f"})
	want("cut off", d, "abcd")
	d = NewDisk("/r")
	do(d, Step{Kind: Create, Path: "f"}, Step{Kind: Write, Path: "f", Data: []byte("old")}, Step{Kind: Sync, Path: "f"}, Step{Kind: SyncFolder, Path: "."})
	do(d, Step{Kind: Remove, Path: "f"})
	want("removed", d, "old", "absent")
	if err := d.Do(Step{Kind: Write, Path: "/r/f"}); err == nil {
		t.Error("a file that was removed is written")
	}
	if err := d.Do(Step{Kind: Create, Path: "/elsewhere"}); err == nil {
		t.Error("a file outside the root is taken")
	}
	if now := d.Now(); len(now) != 0 {
		t.Errorf("now %v", now)
	}
}

// TestRenameIsWhole: before the folder is synced the old or the new file exists, also
// where the new one's other name was never on the disk.
func TestRenameIsWhole(t *testing.T) {
	d := NewDisk("/r")
	for _, s := range []Step{
		{Kind: Mkdir, Path: "/r/d"}, {Kind: SyncFolder, Path: "/r"}, {Kind: Mkdir, Path: "/r/d"},
		{Kind: Create, Path: "/r/d/f"}, {Kind: Write, Path: "/r/d/f", Data: []byte("old")}, {Kind: Sync, Path: "/r/d/f"}, {Kind: SyncFolder, Path: "/r/d"},
		{Kind: Create, Path: "/r/d/tmp"}, {Kind: Write, Path: "/r/d/tmp", Data: []byte("new")}, {Kind: Sync, Path: "/r/d/tmp"},
		{Kind: Rename, Path: "/r/d/tmp", To: "/r/d/f"},
	} {
		if err := d.Do(s); err != nil {
			t.Fatalf("%+v: %v", s, err)
		}
	}
	for _, tree := range d.Losses() {
		if text := tree["d/f"]; text != "old" && text != "new" {
			t.Errorf("%q is left: %v", text, tree)
		}
	}
	root := t.TempDir()
	if err := d.Now().Write(root); err != nil {
		t.Fatal(err)
	}
	back, err := ReadTree(root)
	if err != nil || back.Key() != d.Now().Key() {
		t.Errorf("%v became %v (%v)", d.Now(), back, err)
	}
}
