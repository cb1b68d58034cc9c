package repo

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// root is the top of the tree.
const root = "../.."

// module is the path of go.mod.
const module = "github.com/cnibench/cnibench/"

// source is one Go file.
type source struct {
	path  string // from the top, "internal/exec/exec.go"
	dir   string
	test  bool
	set   *token.FileSet
	file  *ast.File
	lines int
}

// parsedOnce keeps what sources gives: parsing a thousand files takes longer than most
// tests that look at them. Nothing changes what it has.
var parsedOnce = sync.OnceValues(parse)

// sources are the Go files of the tree, parsed, but generated ones, which nobody reads.
func sources(t *testing.T) []source {
	t.Helper()
	all, err := parsedOnce()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 20 {
		t.Fatalf("found only %d Go files below %s", len(all), root)
	}
	return all
}

func parse() ([]source, error) {
	paths, err := filesOf(".go")
	if err != nil {
		return nil, err
	}
	var all []source
	for _, path := range paths {
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, filepath.Join(root, path), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		if ast.IsGenerated(f) {
			continue
		}
		all = append(all, source{
			path: path, dir: filepath.Dir(path), test: strings.HasSuffix(path, "_test.go"),
			set: set, file: f, lines: set.File(f.FileStart).LineCount(),
		})
	}
	return all, nil
}

// files gives the paths of the tree's files with one of the endings, without
// what is built, measured, hidden or a fixture.
func files(t *testing.T, endings ...string) []string {
	t.Helper()
	paths, err := filesOf(endings...)
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

func filesOf(endings ...string) ([]string, error) {
	var paths []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			name := d.Name()
			if slices.Contains([]string{"testdata", "bin", "dist", "results", "node_modules"}, name) || strings.HasPrefix(name, ".") && path != root {
				return filepath.SkipDir
			}
			return nil
		}
		rel, err := filepath.Rel(root, path)
		if err == nil && slices.Contains(endings, filepath.Ext(path)) {
			paths = append(paths, rel)
		}
		return err
	})
	return paths, err
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// allowed is an exception to a rule, with the reason for it.
type allowed map[string]string

// check reports a finding that is not allowed, and keeps which exceptions were
// used.
func (a allowed) check(t *testing.T, used map[string]bool, what, finding string) {
	t.Helper()
	if a[what] != "" {
		used[what] = true
		return
	}
	t.Errorf("%s: %s", what, finding)
}

// unused reports exceptions that are no longer needed.
func (a allowed) unused(t *testing.T, used map[string]bool) {
	t.Helper()
	for what := range a {
		if !used[what] {
			t.Errorf("%s: needs its exception no longer, take it off the list", what)
		}
	}
}
