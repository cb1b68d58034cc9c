package repo

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/labtest"
)

// linked is a package of the program, as go list prints it.
type linked struct {
	ImportPath, Dir string
	GoFiles         []string
	ImportMap       map[string]string
	Module          *struct{ Main bool }
}

// TestProgramIsForMacOS type-checks the program for macOS, where report, compare, recommend
// and runs on clusters work. scripts/dist.sh builds it, which takes minutes: this takes
// seconds, because bodies of functions are checked in this tree alone.
func TestProgramIsForMacOS(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of all CPUs, and is left out by -short: run make test")
	}
	goTool := labtest.Tool(t, "go", "golang")
	r := exec.NewRunner()
	t.Cleanup(r.Close)
	res, err := r.Run(t.Context(), exec.Cmd{
		Argv: []string{goTool, "list", "-deps", "-json=ImportPath,Dir,GoFiles,ImportMap,Module", "."}, Dir: root,
		Env: []string{"GOOS=darwin", "GOARCH=arm64", "CGO_ENABLED=0"},
	})
	if err != nil {
		t.Fatal(err)
	}
	set, done := token.NewFileSet(), map[string]*types.Package{"unsafe": types.Unsafe}
	ours := 0
	for in := json.NewDecoder(strings.NewReader(string(res.Stdout))); ; {
		var p linked
		if err := in.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if p.ImportPath == "unsafe" {
			continue
		}
		var errs []error
		done[p.ImportPath], errs = p.check(set, done)
		if len(errs) > 10 {
			errs = append(errs[:10], fmt.Errorf("and %d more", len(errs)-10))
		}
		for _, err := range errs {
			t.Errorf("GOOS=darwin go build fails: %v", err)
		}
		if p.own() {
			ours++
		}
	}
	if ours < 20 {
		t.Errorf("only %d packages of this tree were checked", ours)
	}
	if t.Failed() {
		t.Log("what only Linux has goes into files that begin with //go:build linux, as in internal/traffic; " +
			"what reports and runs on clusters use of it gets a counterpart for other systems, as in internal/cli/elsewhere.go")
	}
}

func (p linked) own() bool { return p.Module != nil && p.Module.Main }

// check type-checks a package whose imports are done. Errors of other modules are left
// out: their bodies are not read.
func (p linked) check(set *token.FileSet, done map[string]*types.Package) (*types.Package, []error) {
	var files []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(set, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, []error{err}
		}
		files = append(files, f)
	}
	var errs []error
	config := types.Config{
		IgnoreFuncBodies: !p.own(), Sizes: types.SizesFor("gc", "arm64"),
		Importer: importer(func(path string) (*types.Package, error) {
			if other, ok := p.ImportMap[path]; ok {
				path = other
			}
			if done[path] == nil {
				return nil, fmt.Errorf("%s is not among the dependencies", path)
			}
			return done[path], nil
		}),
		Error: func(err error) {
			if p.own() {
				errs = append(errs, err)
			}
		},
	}
	checked, _ := config.Check(p.ImportPath, set, files, nil) // its error is the first of errs
	return checked, errs
}

// importer is a types.Importer.
type importer func(path string) (*types.Package, error)

func (i importer) Import(path string) (*types.Package, error) { return i(path) }
