package repo

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	maxFileLines     = 400
	maxFunctionLines = 60
	maxMethods       = 4
)

func TestPackageComments(t *testing.T) {
	docs, any := map[string][]string{}, map[string]bool{}
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		any[s.dir] = true
		if s.file.Doc != nil {
			docs[s.dir] = append(docs[s.dir], s.path)
		}
	}
	for dir := range any {
		if len(docs[dir]) != 1 {
			t.Errorf("%s: %d package comments, want one: %v", dir, len(docs[dir]), docs[dir])
		}
	}
}

func TestPackageNames(t *testing.T) {
	for _, s := range sources(t) {
		name := strings.TrimSuffix(s.file.Name.Name, "_test")
		if slices.Contains([]string{"util", "utils", "common", "helper", "helpers", "misc"}, name) {
			t.Errorf("%s: package %s says nothing", s.path, name)
		}
	}
}

func TestLengths(t *testing.T) {
	exceptions, used := allowed{}, map[string]bool{}
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		if s.lines > maxFileLines {
			exceptions.check(t, used, s.path, fmt.Sprintf("%d lines, at most %d", s.lines, maxFileLines))
		}
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if n := s.set.Position(f.End()).Line - s.set.Position(f.Pos()).Line + 1; n > maxFunctionLines {
				exceptions.check(t, used, s.path+" "+f.Name.Name, fmt.Sprintf("%d lines, at most %d", n, maxFunctionLines))
			}
		}
	}
	exceptions.unused(t, used)
}

func TestInterfacesAreSmall(t *testing.T) {
	for _, s := range sources(t) {
		ast.Inspect(s.file, func(n ast.Node) bool {
			if i, ok := n.(*ast.InterfaceType); ok && i.Methods.NumFields() > maxMethods {
				t.Errorf("%s: an interface of %d methods, at most %d", s.set.Position(i.Pos()), i.Methods.NumFields(), maxMethods)
			}
			return true
		})
	}
}

func TestNoInit(t *testing.T) {
	for _, s := range sources(t) {
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				t.Errorf("%s: func init: make an explicit list instead", s.path)
			}
		}
	}
}

// TestNoGlobalState: a package-level variable is an error, a compiled regular
// expression, an embedded file, an assertion that a type fits an interface, or
// one of the exceptions. A table is a func that gives it. In tests a flag may
// be one too.
func TestNoGlobalState(t *testing.T) {
	exceptions := allowed{
		"internal/cli linkedVersion": "only the linker sets it",
		"internal/cli built":         "the tests' TestMain sets it once, before any test",
		"internal/paper loadedOnce":  "the papers, loaded once for all tests; nothing changes them",
		"internal/repo parsedOnce":   "the files of the tree, parsed once for all tests; nothing changes them",
	}
	used := map[string]bool{}
	for _, s := range sources(t) {
		for _, d := range s.file.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.VAR {
				continue
			}
			for _, spec := range g.Specs {
				v := spec.(*ast.ValueSpec)
				for i, name := range v.Names {
					if name.Name == "_" || embedded(g, v) || i < len(v.Values) && harmless(v.Values[i], s.test) {
						continue
					}
					exceptions.check(t, used, s.dir+" "+name.Name, "a package-level variable: make it a field, a const or a func ("+s.path+")")
				}
			}
		}
	}
	exceptions.unused(t, used)
}

// embedded reports whether a variable is filled by //go:embed.
func embedded(g *ast.GenDecl, v *ast.ValueSpec) bool {
	for _, doc := range []*ast.CommentGroup{g.Doc, v.Doc} {
		if doc == nil {
			continue
		}
		for _, c := range doc.List {
			if strings.HasPrefix(c.Text, "//go:embed ") {
				return true
			}
		}
	}
	return false
}

func harmless(value ast.Expr, test bool) bool {
	if _, ok := value.(*ast.CompositeLit); ok {
		return test
	}
	call, ok := value.(*ast.CallExpr)
	if !ok {
		return false
	}
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	pkg, ok := f.X.(*ast.Ident)
	if !ok {
		return false
	}
	switch pkg.Name + "." + f.Sel.Name {
	case "errors.New", "fmt.Errorf", "regexp.MustCompile":
		return true
	}
	return test && pkg.Name == "flag"
}

func TestNoPromisesLeft(t *testing.T) {
	// In parts, so that this file does not hold them.
	promise := regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X|HA` + `CK)\b`)
	for _, path := range files(t, ".go", ".c", ".h", ".sh", ".py", ".md", ".yml", ".yaml") {
		for i, line := range strings.Split(read(t, path), "\n") {
			if word := promise.FindString(line); word != "" {
				t.Errorf("%s:%d: %s: keep the promise, or write in the document what is missing", path, i+1, word)
			}
		}
	}
}

func TestLicense(t *testing.T) {
	text := read(t, "LICENSE")
	for _, want := range []string{"Apache License", "Version 2.0, January 2004", "END OF TERMS AND CONDITIONS"} {
		if !strings.Contains(text, want) {
			t.Errorf("LICENSE lacks %q", want)
		}
	}
}
