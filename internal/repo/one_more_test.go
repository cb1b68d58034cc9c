package repo

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/labtest"
)

// maxFactorFiles is how many files an added factor touches, tests and generated files
// aside: the table, the campaign's key in two files, the workload that acts on it, and
// the schema of records. It may only fall; the goal is 3.
const maxFactorFiles = 5

// An added factor builds, becomes cells and columns, and touches few files.
func TestOneMoreFactor(t *testing.T) {
	patch, err := filepath.Abs("testdata/one-more/factor.patch")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(patch)
	if err != nil {
		t.Fatal(err)
	}
	touched := productionFiles(string(text))
	t.Logf("an added factor touches %d production files: %s", len(touched), strings.Join(touched, ", "))
	if len(touched) != maxFactorFiles {
		t.Errorf("an added factor touches %d files, and maxFactorFiles is %d: %v", len(touched), maxFactorFiles, touched)
	}
	git, goTool := labtest.Tool(t, "git", "git"), labtest.Tool(t, "go", "golang")
	dir := t.TempDir()
	copyTree(t, dir)
	r := exec.NewRunner()
	t.Cleanup(r.Close)
	for _, argv := range [][]string{
		{git, "apply", patch},
		{goTool, "build", "./internal/..."},
		{goTool, "test", "-run", "TestEveryFieldHasAFactor|TestPlacesOfFactors|TestBaselineFollowsTheTable|TestSchemaHasEveryFactor|TestTypeOfService", "./internal/result", "./internal/plan"},
		{goTool, "test", "-run", "TestEveryFactorIsExported", "./internal/report"},
	} {
		if _, err := r.Run(t.Context(), exec.Cmd{Argv: argv, Dir: dir, Env: append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))}); err != nil {
			t.Fatal(err)
		}
	}
}

// productionFiles are the files that a patch touches, without tests, test data and the
// pages that tests write.
func productionFiles(patch string) []string {
	var out []string
	for line := range strings.Lines(patch) {
		path, ok := strings.CutPrefix(strings.TrimSpace(line), "+++ b/")
		generated := slices.Contains([]string{"docs/campaign.md", "docs/campaign.schema.json"}, path)
		if ok && !generated && !strings.HasSuffix(path, "_test.go") && !strings.Contains(path, "testdata/") {
			out = append(out, path)
		}
	}
	return out
}

// copyTree copies what the tree's packages are built and tested from.
func copyTree(t *testing.T, to string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		switch {
		case d.IsDir() && (slices.Contains([]string{"bin", "results", "node_modules"}, d.Name()) || d.Name() == ".git"):
			return filepath.SkipDir
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		case !d.Type().IsRegular() || d.Name() == ".git":
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), text, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
}
