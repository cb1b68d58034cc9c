package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
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
	inside := ""
	for line := range strings.Lines(text) {
		fence := strings.TrimSuffix(line, "\n")
		switch {
		case inside == "" && strings.HasPrefix(fence, "```"):
			if inside = fence; inside == "```"+language {
				all = append(all, "")
			}
		case inside != "" && fence == "```":
			inside = ""
		case inside == "```"+language:
			all[len(all)-1] += line
		}
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

// pythonWithPandas is the Python of tools/data/requirements.txt, which scripts/install-deps.sh
// installs. Without it the test is skipped; in CI it fails.
func pythonWithPandas(t *testing.T, requirements []byte) string {
	t.Helper()
	if labtest.Quick() {
		t.Skip("needs pandas and DuckDB, and is left out by make quick: run make test")
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(requirements)
	python := filepath.Join(cache, "cnibench", "data-"+hex.EncodeToString(sum[:])[:12], "bin", "python")
	if _, err := os.Stat(python); err == nil {
		return python
	}
	const cure = "pandas and DuckDB are not installed: scripts/venv.sh tools/data/requirements.txt"
	if labtest.CI() {
		t.Fatal(cure)
	}
	t.Skip(cure)
	return ""
}

// TestScriptsOfTheDataPage runs the examples for pandas and DuckDB: they print the
// efficiencies that jq computes.
func TestScriptsOfTheDataPage(t *testing.T) {
	requirements, err := os.ReadFile("../../../tools/data/requirements.txt")
	if err != nil {
		t.Fatal(err)
	}
	page := dataPage(t)
	efficiencies := strings.Fields(blocksOf(page, "text")[0])
	_, byJQ, _ := strings.Cut(blocksOf(page, "console")[1], "\n")
	whole := regexp.MustCompile(`(?m)\t(\d+)$`)
	if diff := cmp.Diff(strings.Fields(whole.ReplaceAllString(byJQ, "\t$1.0")), efficiencies); diff != "" {
		t.Errorf("the figures of jq and pandas differ (-jq +pandas):\n%s", diff)
	}
	python := pythonWithPandas(t, requirements)
	r := exec.NewRunner()
	t.Cleanup(r.Close)
	sql := `import duckdb, sys
for name, value in duckdb.sql(sys.argv[1].rstrip().rstrip(";")).fetchall(): print(name, value)`
	for name, argv := range map[string][]string{
		"pandas": {python, "-c", blocksOf(page, "python")[0]},
		"DuckDB": {python, "-c", sql, blocksOf(page, "sql")[0]},
	} {
		res, err := r.Run(t.Context(), exec.Cmd{Argv: argv})
		if err != nil {
			t.Error(err)
			continue
		}
		if diff := cmp.Diff(efficiencies, strings.Fields(string(res.Stdout))); diff != "" {
			t.Errorf("%s (-page +printed):\n%s", name, diff)
		}
	}
}

// TestRecordOfTheDataPage: the record that docs/data.md shows shortened is one of the recorded
// result.
func TestRecordOfTheDataPage(t *testing.T) {
	var shown map[string]any
	if err := json.Unmarshal([]byte(blocksOf(dataPage(t), "json")[0]), &shown); err != nil {
		t.Fatal(err)
	}
	records, err := os.ReadFile(filepath.Join(latest, "samples.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(records)) {
		var record map[string]any
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			t.Fatal(err)
		}
		if record["id"] == shown["id"] && record["attempt"] == shown["attempt"] {
			if diff := cmp.Diff(shown, only(record, shown)); diff != "" {
				t.Errorf("the record (-page +recorded):\n%s", diff)
			}
			return
		}
	}
	t.Errorf("the recorded result has no %v", shown["id"])
}

// only is what a record has of the keys that are shown, below which the same holds.
func only(record, shown map[string]any) map[string]any {
	out := map[string]any{}
	for key, value := range shown {
		have, is := record[key]
		if !is {
			continue
		}
		inner, ok := value.(map[string]any)
		if below, both := have.(map[string]any); ok && both {
			have = only(below, inner)
		}
		out[key] = have
	}
	return out
}

// checkedElsewhere are the documents whose outputs other tests compare with the program's:
// docs/cli.md is generated, data.md and tour.md are compared by the tests of this package.
func checkedElsewhere() []string {
	return []string{"docs/cli.md", "docs/data.md", "docs/tour.md"}
}

// drawings are blocks without a language that are no output.
func drawings() map[string]string {
	return map[string]string{"ARCHITECTURE.md": "campaign.yaml → campaign", "docs/lab.md": "cnb-ID-1-fabric", "docs/statistics.md": "go test -v"}
}

// TestSampleOutputs: README.md shows the summary of the recorded result as this program prints
// it, and no other document of the tree has an output that no test compares with the
// program's.
func TestSampleOutputs(t *testing.T) {
	run, docs := unpacked(t)
	tree := filepath.Dir(docs)
	summary, err := run("report", latest)
	if err != nil {
		t.Fatal(err)
	}
	var pages []string
	for _, pattern := range []string{"*.md", "*/*.md", "papers/*/*.md"} {
		found, err := filepath.Glob(filepath.Join(tree, pattern))
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	if len(pages) < 35 {
		t.Fatalf("%d documents", len(pages))
	}
	for _, path := range pages {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name, err := filepath.Rel(tree, path)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(checkedElsewhere(), name) {
			continue
		}
		outputs := outputsOf(name, string(text))
		if name == "README.md" && len(outputs) == 1 {
			if diff := cmp.Diff(strings.TrimSpace(summary), strings.TrimSpace(outputs[0])); diff != "" {
				t.Errorf("README.md is stale (-program +page):\n%s", diff)
			}
			continue
		}
		for _, output := range outputs {
			t.Errorf("%s has an output that no test compares with the program's: %.80s", name, output)
		}
	}
}

// outputsOf are the outputs that a document shows.
func outputsOf(name, text string) []string {
	outputs := blocksOf(text, "text")
	for _, block := range blocksOf(text, "") {
		if drawing := drawings()[name]; drawing == "" || !strings.Contains(block, drawing) {
			outputs = append(outputs, block)
		}
	}
	for _, block := range blocksOf(text, "console") {
		for line := range strings.Lines(block) {
			if !strings.HasPrefix(line, "$ ") && strings.TrimSpace(line) != "" {
				outputs = append(outputs, line)
			}
		}
	}
	return outputs
}
