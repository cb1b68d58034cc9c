package repo

import (
	"strconv"
	"strings"
	"testing"
)

// TestImporters: only few folders import each of these packages. ARCHITECTURE.md has the rules
// for imports of this project's own folders (architecture_test.go). The linter has the same
// rule; this test enforces it where no linter runs.
func TestImporters(t *testing.T) {
	for _, rule := range []struct {
		imports []string
		only    []string
	}{
		{[]string{"os/exec"}, []string{"internal/exec", "internal/labtest"}},
		{
			[]string{"github.com/vishvananda/netlink", "github.com/vishvananda/netns", "github.com/mdlayher/netlink"},
			[]string{"internal/netns", "internal/network", "internal/cni"},
		},
		{[]string{"k8s.io/client-go"}, []string{"internal/kubeclient", "tools"}}, // tools are modules of their own
	} {
		for _, s := range sources(t) {
			if within(s.dir, rule.only) {
				continue
			}
			for _, spec := range s.file.Imports {
				path, err := strconv.Unquote(spec.Path.Value)
				if err != nil {
					t.Fatal(err)
				}
				if within(path, rule.imports) {
					t.Errorf("%s imports %s, which only %s may", s.path, path, strings.Join(rule.only, ", "))
				}
			}
		}
	}
}

// within reports whether a path is one of the folders or below one.
func within(path string, folders []string) bool {
	for _, f := range folders {
		if path == f || strings.HasPrefix(path, f+"/") {
			return true
		}
	}
	return false
}
