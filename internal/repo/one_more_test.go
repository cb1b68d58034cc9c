package repo

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/labtest"
)

// oneMore is one patch of testdata/one-more: something added to one of the lists that
// a reader can see.
type oneMore struct {
	name string
	// argv is a verb of the patched program, and want what it then shows; none where no
	// verb lists such things.
	argv []string
	want string
}

func oneMores() []oneMore {
	return []oneMore{
		// The table of factors, the workload that acts on it, the schema of records.
		{"factor", nil, ""},
		// Each of these is one file and one entry of a list.
		{"network", []string{"list", "networks"}, "flannel/vxlan-iana-port"},
		{"workload", []string{"list", "workloads"}, "tcp_rpc"},
		{"probe", []string{"list", "probes"}, "switches"},
		{"export", []string{"report", "--help"}, "tsv"},
		// A row of the table of relations.
		{"relation", nil, ""},
	}
}

// mostFiles is how many files one more of a kind may touch, tests and generated files aside.
func mostFiles(kind string) int {
	if kind == "factor" {
		return 3
	}
	return 2
}

// tooMany is the error of a patch that touches more files than one more of its kind may.
func tooMany(kind, patch string) error {
	touched := productionFiles(patch)
	if len(touched) == 0 || len(touched) > mostFiles(kind) {
		return fmt.Errorf("one more %s touches %d production files, at most %d are right: %s", kind, len(touched), mostFiles(kind), strings.Join(touched, ", "))
	}
	return nil
}

// TestOneMoreFileIsTooMany: each patch that touched a file more than it may would be found,
// also where it removed or renamed the file.
func TestOneMoreFileIsTooMany(t *testing.T) {
	for _, m := range oneMores() {
		text, err := os.ReadFile(filepath.Join("testdata/one-more", m.name+".patch"))
		if err != nil {
			t.Fatal(err)
		}
		patch := string(text)
		for _, harmless := range []string{"+++ b/docs/campaign.md\n", "+++ b/internal/probe/testdata/a.txt\n", "+++ b/internal/probe/more_test.go\n"} {
			if err := tooMany(m.name, patch+harmless); err != nil {
				t.Errorf("with %q: %v", harmless, err)
			}
		}
		for i := range mostFiles(m.name) + 1 - len(productionFiles(patch)) {
			if err := tooMany(m.name, patch); err != nil {
				t.Error(err)
			}
			patch += fmt.Sprintf("+++ b/internal/more%d.go\n", i)
		}
		if tooMany(m.name, patch) == nil {
			t.Errorf("one more %s: %q are not too many", m.name, productionFiles(patch))
		}
	}
	for change, line := range map[string]string{"removed": "--- a/internal/a.go\n+++ /dev/null\n", "renamed": "rename from internal/a.go\nrename to internal/b.go\n"} {
		if got := productionFiles(line); len(got) == 0 {
			t.Errorf("a file that is %s is not counted", change)
		}
	}
}

// patched is a copy of the tree with the patches, and what runs a program in it and gives its
// output.
func patched(t *testing.T) (dir string, run func(argv ...string) string) {
	t.Helper()
	git := labtest.Tool(t, "git", "git")
	dir = t.TempDir()
	copyTree(t, dir)
	r := exec.NewRunner()
	t.Cleanup(r.Close)
	env := append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
	run = func(argv ...string) string {
		t.Helper()
		res, err := r.Run(t.Context(), exec.Cmd{Argv: argv, Dir: dir, Env: env})
		if err != nil {
			t.Fatalf("%v\n%s", err, res.Stdout)
		}
		return string(res.Stdout)
	}
	for _, m := range oneMores() {
		patch, err := filepath.Abs(filepath.Join("testdata/one-more", m.name+".patch"))
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(patch)
		if err != nil {
			t.Fatal(err)
		}
		touched := productionFiles(string(text))
		t.Logf("one more %s touches %d production files: %s", m.name, len(touched), strings.Join(touched, ", "))
		if err := tooMany(m.name, string(text)); err != nil {
			t.Error(err)
		}
		run(git, "apply", patch)
	}
	return dir, run
}

// TestOneMoreTouchesFewFiles: adding one of each touches few files. A list that had to be
// typed twice would show here.
func TestOneMoreTouchesFewFiles(t *testing.T) {
	patched(t)
}

// TestOneMore builds a copy of the tree with one more of each, and tests what was added.
func TestOneMore(t *testing.T) {
	labtest.Turn(t, labtest.VM)
	goTool := labtest.Tool(t, "go", "golang")
	dir, run := patched(t)
	// -trimpath, as of make build: packages that no patch changes come out of the cache.
	run(goTool, "build", "-trimpath", "-buildvcs=false", "-o", "bin/cnibench", ".")
	for _, m := range oneMores() {
		if m.argv == nil {
			continue
		}
		if got := run(append([]string{filepath.Join(dir, "bin/cnibench")}, m.argv...)...); !strings.Contains(got, m.want) {
			t.Errorf("one more %s: cnibench %s does not show %s", m.name, strings.Join(m.argv, " "), m.want)
		}
	}
	test := func(pattern string, rest ...string) {
		t.Helper()
		run(append([]string{goTool, "test", "-trimpath", "-run", pattern}, rest...)...)
	}
	// What is generated is written by the tests that check it.
	test("^(TestExamplesAreWhole|TestDocsAreFresh|TestConflists|TestFormatsAreDocumented|TestManual.*|TestSchemas.*)$",
		"./internal/campaign", "./internal/network/catalog", "./internal/report/format", "./internal/paper", "-update")
	test("^(TestOneMore.*|TestEveryFieldHasAFactor|TestPlacesOfFactors|TestBaselineFollowsTheTable|TestSchemaHasEveryFactor|TestKeysOfWorkloadsAreFactors|"+
		"TestExamples|TestExamplesAreWhole|TestDocsAreFresh|TestSpecs|TestListIsWhole|TestChoices|TestConflists|TestEveryFactorIsExported|TestFormatsAreDocumented)$",
		"./internal/result", "./internal/campaign", "./internal/network/catalog", "./internal/workload", "./internal/probe", "./internal/report/format", "./internal/paper")
	for page, want := range map[string][]string{
		"docs/campaign.md":       {"`type_of_service`", "`tcp_rpc`", "`switches`", "flannel/vxlan-iana-port"},
		"docs/exports.md":        {"`tsv`"},
		"docs/adding-a-paper.md": {"`at_most_half`"},
	} {
		text, err := os.ReadFile(filepath.Join(dir, page))
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			if !strings.Contains(string(text), w) {
				t.Errorf("the generated %s does not have %s", page, w)
			}
		}
	}
}

// productionFiles are the files that a patch touches, without tests, test data and what
// tests write.
func productionFiles(patch string) []string {
	generated := []string{"docs/campaign.md", "docs/campaign.schema.json", "docs/exports.md", "docs/adding-a-paper.md", "examples/datapaths.yaml", "examples/tools.yaml"}
	var out []string
	for line := range strings.Lines(patch) {
		for _, head := range []string{"--- a/", "+++ b/", "rename from ", "rename to "} {
			path, ok := strings.CutPrefix(strings.TrimSpace(line), head)
			if ok && !slices.Contains(append(generated, out...), path) && !strings.HasSuffix(path, "_test.go") && !strings.Contains(path, "testdata/") {
				out = append(out, path)
			}
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
