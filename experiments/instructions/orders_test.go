package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// Every order that Qi et al. report is on the page that was counted last, and
// holds there, or the page says why it does not.
func TestOrdersOnThePage(t *testing.T) {
	page, err := os.ReadFile("../../docs/instructions.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, o := range orders() {
		if o.Source != qi {
			continue
		}
		seen[o.Claim] = true
		row := fmt.Sprintf("| %s | %s | %s %s | %s: ", o.Claim, o.Source, o.Workload, o.Placement, o.Less)
		found := false
		for line := range strings.Lines(string(page)) {
			if !strings.HasPrefix(line, row) || !strings.Contains(line, "| "+o.More.String()+": ") {
				continue
			}
			found = true
			if !strings.HasSuffix(strings.TrimSpace(line), "| yes |") && (o.Because == "" || !strings.Contains(string(page), o.Because)) {
				t.Errorf("it does not hold, and nothing says why: %s", line)
			}
		}
		if !found {
			t.Errorf("no row %q … %s", row, o.More)
		}
	}
	if len(seen) < 5 { // overlay, policy, policy by eBPF, eBPF inside a node, chains
		t.Errorf("orders of %v alone", seen)
	}
}
