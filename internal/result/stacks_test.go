package result

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/labtest/fuzzed"
)

func TestStacks(t *testing.T) {
	d := &Dir{Path: t.TempDir()}
	text := "[user] 7\ndo_syscall_64;br_forward [bridge] 42\n"
	if err := d.SaveStacks("b01-c000", "server", text); err != nil {
		t.Fatal(err)
	}
	var got []Stack
	s := &Sample{Raw: RawDir + "/b01-c000"}
	if err := EachStack(d.Path, s, func(s Stack) { got = append(got, s) }); err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[1].Microseconds != 42 || strings.Join(got[1].Frames, ",") != "do_syscall_64,br_forward [bridge]" {
		t.Errorf("%+v", got)
	}
	for _, none := range []*Sample{{}, {Raw: RawDir + "/b01-c001"}} {
		if err := EachStack(d.Path, none, func(Stack) { t.Error("a stack of nothing") }); err != nil {
			t.Error(err)
		}
	}
	if err := os.WriteFile(filepath.Join(d.Path, RawDir, "b01-c000", "server.folded.gz"), []byte("torn"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := EachStack(d.Path, s, func(Stack) {}); err == nil || !strings.Contains(err.Error(), "server.folded.gz") {
		t.Errorf("a torn file: %v", err)
	}
}

func FuzzStacks(f *testing.F) {
	f.Add("a;b 1\n")
	f.Add("no number\n")
	f.Add(" 1\n")
	f.Fuzz(func(t *testing.T, text string) {
		defer fuzzed.Within(t)()
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		_ = readStacks(&packed, func(s Stack) {
			if len(s.Frames) == 0 || s.Microseconds < 0 {
				t.Errorf("%q gave %+v", text, s)
			}
		})
	})
}
