package catalog

import (
	"os"
	"regexp"
	"testing"
)

// TestRealDocument: docs/real.md lists each network with its kind.
func TestRealDocument(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/real.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (real|model|own plugin) \\|").FindAllStringSubmatch(string(doc), -1) {
		if listed[row[1]] != "" {
			t.Errorf("%s has two rows", row[1])
		}
		listed[row[1]] = row[2]
	}
	for _, n := range List() {
		if listed[n.Name] != n.Kind {
			t.Errorf("docs/real.md says that %s is %q: it is %s", n.Name, listed[n.Name], n.Kind)
		}
		delete(listed, n.Name)
	}
	for name := range listed {
		t.Errorf("docs/real.md has %s, which does not exist", name)
	}
}
