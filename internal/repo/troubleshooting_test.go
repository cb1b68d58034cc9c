package repo

import (
	"regexp"
	"strings"
	"testing"
)

// TestTroubleshootingQuotesErrors: each error in a table of docs/troubleshooting.md is a
// part of a text in the program.
func TestTroubleshootingQuotesErrors(t *testing.T) {
	var program strings.Builder
	for _, s := range sources(t) {
		if !s.test && strings.HasPrefix(s.path, "internal/") {
			program.WriteString(read(t, s.path))
		}
	}
	quoted := regexp.MustCompile("(?m)^\\| `([^`]+)` \\|")
	rows := quoted.FindAllStringSubmatch(read(t, "docs/troubleshooting.md"), -1)
	if len(rows) < 20 {
		t.Errorf("only %d errors found: is the search for them broken?", len(rows))
	}
	for _, m := range rows {
		if !strings.Contains(program.String(), m[1]) {
			t.Errorf("no message of the program has %q", m[1])
		}
	}
}
