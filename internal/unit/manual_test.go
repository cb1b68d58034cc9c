package unit

import (
	"flag"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "write docs/metrics.md")

// TestManualIsFresh: docs/metrics.md is that of the lists.
func TestManualIsFresh(t *testing.T) {
	const path = "../../docs/metrics.md"
	if *update {
		if err := os.WriteFile(path, []byte(Manual()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(path)
	if err != nil || string(have) != Manual() {
		t.Errorf("docs/metrics.md is stale (%v): go test ./internal/unit -update", err)
	}
}
