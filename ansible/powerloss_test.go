package ansible

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/fault"
	"github.com/cnibench/cnibench/internal/labtest"
)

// TestPowerLossOfATunedHost: a host is tuned twice, by tuned and by sysctls, and restored.
// Whatever a loss of power before any change of a file leaves, and after the last, the next
// command finds the host as it was before or makes it so, and leaves no file of its own.
func TestPowerLossOfATunedHost(t *testing.T) {
	python := labtest.Tool(t, "python3", "python3")
	r := exec.NewRunner()
	t.Cleanup(r.Close)
	run := func(args ...string) []byte {
		t.Helper()
		res, err := r.Run(t.Context(), exec.Cmd{Argv: append([]string{python, "-B", "testdata/powerloss.py"}, args...)})
		if err != nil {
			t.Fatal(err)
		}
		return res.Stdout
	}
	root := realDir(t)
	steps := run("record", root)
	disk := fault.NewDisk(root)
	do := func(s fault.Step) {
		t.Helper()
		if err := disk.Do(s); err != nil {
			t.Fatal(err)
		}
	}
	// What was on the disk before, synced.
	for _, dir := range []string{"etc", "etc/tuned", "etc/default", "var", "var/lib"} {
		do(fault.Step{Kind: fault.Mkdir, Path: filepath.Join(root, dir)})
	}
	for path, text := range map[string]string{"etc/tuned/active_profile": "balanced\n", "etc/default/grub": "GRUB_TIMEOUT=5\n"} {
		at := filepath.Join(root, path)
		do(fault.Step{Kind: fault.Create, Path: at})
		do(fault.Step{Kind: fault.Write, Path: at, Data: []byte(text)})
		do(fault.Step{Kind: fault.Sync, Path: at})
	}
	for _, dir := range []string{"etc/tuned", "etc/default", "etc", "var/lib", "var", "."} {
		do(fault.Step{Kind: fault.SyncFolder, Path: filepath.Join(root, dir)})
	}
	states, n := map[string]fault.Tree{}, 0
	look := func() {
		for _, tree := range disk.Losses() {
			states[tree.Key()] = tree
		}
	}
	look()
	for in := json.NewDecoder(bytes.NewReader(steps)); in.More(); n++ {
		var s fault.Step
		if err := in.Decode(&s); err != nil {
			t.Fatal(err)
		}
		do(s)
		look()
	}
	if now, err := fault.ReadTree(root); err != nil || now.Key() != disk.Now().Key() {
		t.Fatalf("the folder has (%v)\n%s\nthe disk has\n%s", err, now.Key(), disk.Now().Key())
	}
	if n < 25 || len(states) < 30 {
		t.Errorf("only %d steps and %d states", n, len(states))
	}
	left := realDir(t)
	byName := map[string]string{}
	for key, tree := range states {
		name := fmt.Sprintf("%04d", len(byName))
		byName[name] = key
		at := filepath.Join(left, name)
		if err := os.Mkdir(at, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := tree.Write(at); err != nil {
			t.Fatal(err)
		}
	}
	said := strings.TrimSpace(string(run("recover", left)))
	for line := range strings.Lines(said) {
		if line != "done" {
			name, _, _ := strings.Cut(line, ",")
			t.Errorf("%s\nthe loss of power left\n%s", strings.TrimSpace(line), byName[name])
		}
	}
	if !strings.HasSuffix(said, "done") {
		t.Error("not all was looked at")
	}
	t.Logf("%d steps, %d states", n, len(states))
}

// realDir is a new folder, by a path without links.
func realDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
