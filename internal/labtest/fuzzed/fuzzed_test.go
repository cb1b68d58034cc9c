package fuzzed

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestSince(t *testing.T) {
	begin := time.Now()
	for name, c := range map[string]struct {
		after usage
		want  string // part of the error, "" is none
	}{
		"within all":        {usage{begin.Add(4 * time.Second), 900 * time.Millisecond, 255 << 20}, ""},
		"too much computed": {usage{begin.Add(2 * time.Second), 1100 * time.Millisecond, 0}, "processor time"},
		"too long a wait":   {usage{begin.Add(6 * time.Second), 0, 0}, "took 6s"},
		"too much memory":   {usage{begin, 0, 257 << 20}, "bytes, more than"},
	} {
		err := c.after.since(usage{wall: begin})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// What exceeds a limit fails under go test -fuzz, with the limit it exceeded.
func TestFuzzFailsBeyondLimits(t *testing.T) {
	if testing.Short() {
		t.Skip("builds with the instructions of fuzzing")
	}
	template, err := os.ReadFile("testdata/target.txt")
	if err != nil {
		t.Fatal(err)
	}
	for what, want := range map[string]string{
		"for b := used(); used().since(b) == nil; {\n}":  "of processor time, more than 1s",
		"b := make([]byte, 300<<20); clear(b)\nsink = b": "bytes, more than",
		"": "",
	} {
		dir := t.TempDir()
		target := filepath.Join(dir, "target_test.go")
		text := strings.ReplaceAll(string(template), "WHAT", what)
		if err := os.WriteFile(target, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		here, err := os.Getwd()
		if err != nil {
			t.Fatal(err)
		}
		overlay := filepath.Join(dir, "overlay.json")
		replace := map[string]map[string]string{"Replace": {filepath.Join(here, "target_test.go"): target}}
		if text, err := json.Marshal(replace); err != nil {
			t.Fatal(err)
		} else if err := os.WriteFile(overlay, text, 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), "go", "test", "-overlay="+overlay, "-vet=off", "-run=^$", "-fuzz=^FuzzTarget$", "-fuzztime=1x", "-parallel=1", ".")
		out, err := cmd.CombinedOutput()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(string(out), want)) {
			t.Errorf("%q: %v, want %q:\n%s", what, err, want, out)
		}
	}
}
