package repo

import (
	"strconv"
	"strings"
	"testing"
)

// TestDoors: each of these packages is imported in few folders alone. What a folder of
// ours may import of the others is in ARCHITECTURE.md (architecture_test.go). The
// linter says the same while one writes; this holds it where no linter runs.
func TestDoors(t *testing.T) {
	for _, door := range []struct {
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
			if within(s.dir, door.only) {
				continue
			}
			for _, spec := range s.file.Imports {
				path, err := strconv.Unquote(spec.Path.Value)
				if err != nil {
					t.Fatal(err)
				}
				if within(path, door.imports) {
					t.Errorf("%s imports %s, which only %s may", s.path, path, strings.Join(door.only, ", "))
				}
			}
		}
	}
}

// within tells whether a path is one of the folders or below one.
func within(path string, folders []string) bool {
	for _, f := range folders {
		if path == f || strings.HasPrefix(path, f+"/") {
			return true
		}
	}
	return false
}
