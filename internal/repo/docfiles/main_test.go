package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestWrite: every public verb has a page with its flags, hidden ones have none, the
// completions name the program, and two runs give the same bytes.
func TestWrite(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	first, second := filesOf(t), filesOf(t)
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("two runs differ:\n%s", diff)
	}
	for file, want := range map[string]string{
		"man/cnibench.1":            "measure what a Kubernetes pod network costs",
		"man/cnibench-run.1":        "--resume",
		"man/cnibench-lab-up.1":     "--kubernetes",
		"completions/cnibench.bash": "complete -o default -F __start_cnibench cnibench",
		"completions/_cnibench":     "#compdef cnibench",
		"completions/cnibench.fish": "complete -c cnibench",
	} {
		if !strings.Contains(strings.ReplaceAll(first[file], `\-`, "-"), want) {
			t.Errorf("%s does not contain %q", file, want)
		}
	}
	if !strings.Contains(first["man/cnibench.1"], `"Nov 2023"`) {
		t.Errorf("the page's date is not that of SOURCE_DATE_EPOCH:\n%.200s", first["man/cnibench.1"])
	}
	for _, hidden := range []string{"man/cnibench-agent.1", "man/cnibench-tunnel.1"} {
		if _, is := first[hidden]; is {
			t.Errorf("%s: a hidden command has a page", hidden)
		}
	}
}

// filesOf runs write and reads what it wrote.
func filesOf(t *testing.T) map[string]string {
	t.Helper()
	dir := t.TempDir()
	if err := write(dir); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	paths, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			t.Fatal(err)
		}
		all[rel] = string(data)
	}
	return all
}
