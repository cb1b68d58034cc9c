package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

// TestSummary reads what go test -json printed for packages that do not build,
// panic, run out of time, fail in TestMain, skip, and pass.
func TestSummary(t *testing.T) {
	for _, c := range []struct {
		name   string
		strict bool
		status int
	}{
		{"fine", false, 0},
		{"fine-in-ci", true, 0},
		{"skips", false, 0},
		{"skips-in-ci", true, 1},
		{"failures", false, 1},
		{"stopped", false, 1},
		{"empty", false, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			in, err := os.Open(filepath.Join("testdata", strings.TrimSuffix(c.name, "-in-ci")+".json"))
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			var stdout, stderr strings.Builder
			if status := run(in, &stdout, &stderr, c.strict); status != c.status {
				t.Errorf("status %d, want %d", status, c.status)
			}
			if stderr.Len() > 0 {
				t.Errorf("stderr: %s", stderr.String())
			}
			golden := filepath.Join("testdata", c.name+".txt")
			if *update {
				if err := os.WriteFile(golden, []byte(stdout.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), stdout.String()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
