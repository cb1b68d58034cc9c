package repo

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestDoors: each of these packages is imported in few folders alone. The
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
		{[]string{"k8s.io/client-go"}, []string{"internal/kube", "tools"}}, // tools are modules of their own
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

// TestDirection: what only computes knows nothing of where and how it is
// measured. See the flow in ARCHITECTURE.md.
func TestDirection(t *testing.T) {
	// Not internal/exec: how a command is written so that it can be pasted is
	// its too.
	machinery := []string{"internal/bench", "internal/testbed", "internal/agent", "internal/traffic", "internal/netns",
		"internal/network", "internal/cni", "internal/probe", "internal/cli", "internal/kube"}
	for pkg, never := range map[string][]string{
		"internal/unit":    {"internal"},
		"internal/stat":    append(machinery, "internal/report"),
		"internal/plan":    append(machinery, "internal/report"),
		"internal/result":  append(machinery, "internal/report", "internal/stat"),
		"internal/report":  machinery,
		"internal/traffic": {"internal/agent", "internal/bench", "internal/testbed", "internal/cli"},
		"internal/bench":   {"internal/testbed/lab", "internal/netns", "internal/network", "internal/cli"},
	} {
		for _, s := range sources(t) {
			if s.dir != pkg || s.test {
				continue
			}
			for _, spec := range s.file.Imports {
				path := strings.TrimPrefix(strings.Trim(spec.Path.Value, `"`), module)
				if path != filepath.ToSlash(pkg) && within(path, never) {
					t.Errorf("%s imports %s, against the direction of the flow", s.path, path)
				}
			}
		}
	}
}
