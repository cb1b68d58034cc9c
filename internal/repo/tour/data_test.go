package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/labtest"
)

// blocksOf are the blocks of code of a document in a language.
func blocksOf(text, language string) []string {
	var all []string
	for _, part := range strings.Split(text, "\n```"+language+"\n")[1:] {
		block, _, _ := strings.Cut(part, "\n```")
		all = append(all, block+"\n")
	}
	return all
}

// dataPage changes into a folder with the recorded result, and gives docs/data.md.
func dataPage(t *testing.T) string {
	t.Helper()
	_, docs := unpacked(t)
	page, err := os.ReadFile(filepath.Join(docs, "data.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// TestQueriesOfTheDataPage runs the jq examples of docs/data.md on the recorded result: each
// prints what the page shows.
func TestQueriesOfTheDataPage(t *testing.T) {
	labtest.Tool(t, "jq", "jq")
	page := dataPage(t)
	r := exec.NewRunner()
	t.Cleanup(r.Close)
	ran := 0
	for _, block := range blocksOf(page, "console") {
		command, want, _ := strings.Cut(block, "\n")
		res, err := r.Run(t.Context(), exec.Cmd{Argv: []string{"sh", "-c", strings.TrimPrefix(command, "$ ")}})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(res.Stdout)); diff != "" {
			t.Errorf("%s (-page +printed):\n%s", command, diff)
		}
		ran++
	}
	for _, command := range blocksOf(page, "sh") {
		if _, err := r.Run(t.Context(), exec.Cmd{Argv: []string{"sh", "-c", command}}); err != nil {
			t.Error(err)
		}
		ran++
	}
	if ran != 3 {
		t.Errorf("%d examples were run, want 3", ran)
	}
}

// TestScriptsOfTheDataPage runs the examples for pandas and DuckDB where Python has them:
// they print the efficiencies that jq computes. Without them only the page's own figures are
// compared with each other.
func TestScriptsOfTheDataPage(t *testing.T) {
	page := dataPage(t)
	efficiencies := strings.Fields(blocksOf(page, "text")[0])
	_, byJQ, _ := strings.Cut(blocksOf(page, "console")[1], "\n")
	if diff := cmp.Diff(strings.Fields(strings.ReplaceAll(byJQ, "host\t100\n", "host\t100.0\n")), efficiencies); diff != "" {
		t.Errorf("the figures of jq and pandas differ (-jq +pandas):\n%s", diff)
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Log("python3 is not installed: the scripts were not run")
		return
	}
	r := exec.NewRunner()
	t.Cleanup(r.Close)
	sql := `import duckdb, sys
for name, value in duckdb.sql(sys.argv[1].rstrip().rstrip(";")).fetchall(): print(name, value)`
	for _, script := range []struct {
		module string
		argv   []string
	}{
		{"pandas", []string{"-c", blocksOf(page, "python")[0]}},
		{"duckdb", []string{"-c", sql, blocksOf(page, "sql")[0]}},
	} {
		if _, err := r.Run(t.Context(), exec.Cmd{Argv: []string{python, "-c", "import " + script.module}}); err != nil {
			t.Logf("Python has no %s: its example was not run", script.module)
			continue
		}
		res, err := r.Run(t.Context(), exec.Cmd{Argv: append([]string{python}, script.argv...)})
		if err != nil {
			t.Error(err)
			continue
		}
		if diff := cmp.Diff(efficiencies, strings.Fields(string(res.Stdout))); diff != "" {
			t.Errorf("%s (-page +printed):\n%s", script.module, diff)
		}
	}
}

// TestSampleOutputs: README.md shows the summary of the recorded result as this program prints
// it, and no other document has an output that no test compares with the program's.
func TestSampleOutputs(t *testing.T) {
	run, docs := unpacked(t)
	readme, err := os.ReadFile(filepath.Join(docs, "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	summary, err := run("report", latest)
	if err != nil {
		t.Fatal(err)
	}
	blocks := blocksOf(string(readme), "text")
	if len(blocks) != 1 {
		t.Fatalf("README.md has %d outputs, want one", len(blocks))
	}
	if diff := cmp.Diff(strings.TrimSpace(summary), strings.TrimSpace(blocks[0])); diff != "" {
		t.Errorf("README.md is stale (-program +page):\n%s", diff)
	}
	// docs/cli.md is generated; the tests of this package compare the other two.
	checked := []string{"cli.md", "data.md", "tour.md"}
	pages, err := filepath.Glob(filepath.Join(docs, "*.md"))
	if err != nil || len(pages) < 20 {
		t.Fatalf("%d documents, %v", len(pages), err)
	}
	for _, path := range pages {
		page, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(checked, filepath.Base(path)) {
			continue
		}
		if outputs := len(blocksOf(string(page), "text")); outputs > 0 {
			t.Errorf("%s has %d outputs that no test compares with the program's", path, outputs)
		}
		for _, block := range blocksOf(string(page), "console") {
			for line := range strings.Lines(block) {
				if !strings.HasPrefix(line, "$ ") && strings.TrimSpace(line) != "" {
					t.Errorf("%s has an output that no test compares with the program's: %s", path, line)
				}
			}
		}
	}
}
