package repo

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/cli"
)

var exitStatus = regexp.MustCompile(`exit\s+status(?:es)?\s+(?:is\s+)?([0-9]+)`)

// TestExitStatusesInDocuments: documents name only statuses that the program has, and
// what they say of each is in the one table, which README links to.
func TestExitStatusesInDocuments(t *testing.T) {
	var known []int
	for _, s := range cli.ExitStatuses() {
		known = append(known, s.Status)
	}
	if !slices.IsSorted(known) || len(slices.Compact(slices.Clone(known))) != len(known) {
		t.Errorf("the statuses are not sorted and distinct: %v", known)
	}
	n := 0
	for _, path := range files(t, ".md") {
		for _, m := range exitStatus.FindAllStringSubmatch(read(t, path), -1) {
			n++
			if status, err := strconv.Atoi(m[1]); err != nil || !slices.Contains(known, status) {
				t.Errorf("%s: %q: the program has no such status", path, m[0])
			}
		}
	}
	if n < 3 {
		t.Errorf("only %d exit statuses found in the documents: is the search for them broken?", n)
	}
	if !strings.Contains(read(t, "README.md"), "docs/cli.md#exit-statuses") {
		t.Error("README.md does not link to the table of exit statuses")
	}
}
