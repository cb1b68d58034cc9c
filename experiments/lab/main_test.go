package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestNeedsNamesWhatIsMissing(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	for _, program := range []string{"mn", "brctl"} {
		path := filepath.Join(dir, program)
		for _, other := range []string{"mn", "brctl"} {
			if err := os.WriteFile(filepath.Join(dir, other), nil, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := needs(); err != nil {
			t.Error(err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := needs(); err == nil || !strings.Contains(err.Error(), "no "+program+")") || !strings.Contains(err.Error(), "apt-get install mininet bridge-utils") {
			t.Errorf("without %s: %v", program, err)
		}
	}
}
