package repo

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestSecurityNamesTests: each promise of docs/security.md has a test, and that test
// exists.
func TestSecurityNamesTests(t *testing.T) {
	var all strings.Builder
	for _, s := range sources(t) {
		if s.test {
			all.WriteString(read(t, s.path))
		}
	}
	text := read(t, "docs/security.md")
	named := regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z0-9]+)`").FindAllStringSubmatch(text, -1)
	if len(named) == 0 {
		t.Error("no test is named")
	}
	slices.SortFunc(named, func(a, b []string) int { return strings.Compare(a[1], b[1]) })
	for _, n := range named {
		if !strings.Contains(all.String(), "func "+n[1]+"(") {
			t.Errorf("%s is named, and does not exist", n[1])
		}
	}
	for line := range strings.Lines(text) {
		if cells := strings.Split(strings.TrimSpace(line), " | "); len(cells) == 4 && !strings.HasPrefix(cells[0], "| who") && !strings.HasPrefix(cells[0], "| ---") &&
			!strings.Contains(cells[3], "`Test") && !strings.Contains(cells[3], "`Fuzz") {
			t.Errorf("no test shows this: %s", line)
		}
	}
}

// TestSecurityNamesEveryFuzzTarget: docs/security.md states how many targets the tree has,
// and names each.
func TestSecurityNamesEveryFuzzTarget(t *testing.T) {
	text, targets := read(t, "docs/security.md"), fuzzTargets(t)
	if want := fmt.Sprintf("The tree has %d targets", len(targets)); !strings.Contains(text, want) {
		t.Errorf("docs/security.md does not state: %s", want)
	}
	for target := range targets {
		if _, name, _ := strings.Cut(target, " "); !strings.Contains(text, "`"+name+"`") {
			t.Errorf("%s is not named", target)
		}
	}
}
