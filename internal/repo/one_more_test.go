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

// oneMore is one patch of testdata/one-more: something added to one of the lists that
// a reader can see.
type oneMore struct {
	name string
	// files is how many files it touches, tests and generated files aside. It may only
	// fall.
	files int
	// argv is a verb of the patched program, and want what it then shows; none where no
	// verb lists such things.
	argv []string
	want string
}

func oneMores() []oneMore {
	return []oneMore{
		// The table of factors, the workload that acts on it, the schema of records.
		{"factor", 3, nil, ""},
		// Each of these is one file and one entry of a list.
		{"network", 2, []string{"list", "networks"}, "flannel/vxlan-iana-port"},
		{"workload", 2, []string{"list", "workloads"}, "tcp_rpc"},
		{"probe", 2, []string{"list", "probes"}, "switches"},
		{"export", 2, []string{"report", "--help"}, "tsv"},
		// A row of the table of relations.
		{"relation", 1, nil, ""},
	}
}

// TestOneMore adds one of each to a copy of the tree, builds it and tests what was
// added. Adding touches few files: a list that had to be typed twice would show here.
func TestOneMore(t *testing.T) {
	git, goTool := labtest.Tool(t, "git", "git"), labtest.Tool(t, "go", "golang")
	dir := t.TempDir()
	copyTree(t, dir)
	r := exec.NewRunner()
	t.Cleanup(r.Close)
	env := append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
	run := func(argv ...string) string {
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
		if len(touched) != m.files {
			t.Errorf("one more %s touches %d files, and oneMores says %d: %v", m.name, len(touched), m.files, touched)
		}
		run(git, "apply", patch)
	}
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
		path, ok := strings.CutPrefix(strings.TrimSpace(line), "+++ b/")
		if ok && !slices.Contains(generated, path) && !strings.HasSuffix(path, "_test.go") && !strings.Contains(path, "testdata/") {
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
