package repo

import (
	"errors"
	"fmt"
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A row of ARCHITECTURE.md's table of folders, as a rule.
type folderRule struct {
	folders []string
	// never are the folders and packages that no file of them imports; except are those
	// below never that it may.
	never, except []string
}

var (
	quoted = regexp.MustCompile("`([^`]+)`")
	// A term of the third column: words, and packages in brackets.
	ruleTerm = regexp.MustCompile(`^[^()]+ \(([^()]+)\)$`)
	// A package of a term, or a group of packages.
	ruleItem = regexp.MustCompile("^(`[a-z0-9/_.-]+`|\\*[a-z]+\\*)$")
	// The sentence that says what a group is.
	groupSentence = regexp.MustCompile(`(?s)\*([a-z]+)\* is (.*?)\.(?:\s|$)`)
)

// folderRules reads the table of folders. Every row has to be understood.
func folderRules(text string) (rules []folderRule, err error) {
	groups := map[string][]string{}
	for _, m := range groupSentence.FindAllStringSubmatch(text, -1) {
		groups["*"+m[1]+"*"] = names(m[2])
	}
	_, table, ok := strings.Cut(text, "| folder | what it is | what it must not know |\n|---|---|---|\n")
	if !ok {
		return nil, errors.New("there is no table of folders")
	}
	for row := range strings.Lines(table) {
		if !strings.HasPrefix(row, "|") {
			break
		}
		columns := strings.Split(strings.Trim(strings.TrimSpace(row), "|"), "|")
		if len(columns) != 3 {
			err = errors.Join(err, fmt.Errorf("a row of %d columns: %s", len(columns), row))
			continue
		}
		rule := folderRule{folders: append(names(columns[0]), groups[strings.TrimSpace(columns[0])]...)}
		if len(rule.folders) == 0 {
			err = errors.Join(err, fmt.Errorf("a row without a folder: %s", row))
		}
		for _, term := range strings.Split(columns[2], ";") {
			never, except, termErr := packagesOf(strings.TrimSpace(term), groups)
			if termErr != nil {
				err = errors.Join(err, fmt.Errorf("%v: %w", rule.folders, termErr))
			}
			rule.never, rule.except = append(rule.never, never...), append(rule.except, except...)
		}
		rules = append(rules, rule)
	}
	return rules, err
}

// names are what is between backquotes, without a last slash.
func names(text string) []string {
	var out []string
	for _, m := range quoted.FindAllStringSubmatch(text, -1) {
		out = append(out, strings.TrimSuffix(m[1], "/"))
	}
	return out
}

// packagesOf reads one term: "statistics (`internal/stat`)", "how it is run (*machinery*
// but `internal/cli`)".
func packagesOf(term string, groups map[string][]string) (never, except []string, err error) {
	m := ruleTerm.FindStringSubmatch(term)
	if m == nil {
		return nil, nil, fmt.Errorf("%q is no words with packages in brackets", term)
	}
	list, but, _ := strings.Cut(m[1], " but ")
	for part, to := range map[string]*[]string{list: &never, but: &except} {
		for _, item := range strings.Split(part, ", ") {
			switch {
			case item == "" && part == but:
			case !ruleItem.MatchString(item):
				return nil, nil, fmt.Errorf("%q in %q is no package", item, term)
			case item[0] == '*' && groups[item] == nil:
				return nil, nil, fmt.Errorf("%s in %q is not explained", item, term)
			case item[0] == '*':
				*to = append(*to, groups[item]...)
			default:
				*to = append(*to, strings.Trim(item, "`"))
			}
		}
	}
	return never, except, nil
}

// ruleFor is the row of the nearest folder above a file.
func ruleFor(rules []folderRule, path string) (best folderRule, folder string) {
	for _, r := range rules {
		for _, f := range r.folders {
			if within(path, []string{f}) && len(f) > len(folder) {
				best, folder = r, f
			}
		}
	}
	return best, folder
}

// breach says why a file of a folder may not import a package; "" where it may.
func (r folderRule) breach(folder, imported string) string {
	switch {
	case within(imported, []string{folder}) || within(imported, r.except):
		return ""
	case within(imported, r.never):
		return fmt.Sprintf("imports %s, which %s must not know", imported, folder)
	}
	return ""
}

// TestFoldersKnowWhatTheyMay: the table of folders in ARCHITECTURE.md is true. Every
// folder with Go files has a row, every row is understood, and no import breaks one.
func TestFoldersKnowWhatTheyMay(t *testing.T) {
	rules, err := folderRules(read(t, "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	if len(rules) < 30 {
		t.Fatalf("only %d rows were found", len(rules))
	}
	for _, r := range rules {
		for _, path := range slices.Concat(r.folders, r.never, r.except) {
			ours := slices.Contains(r.folders, path) || strings.HasPrefix(path, "internal")
			if _, err := os.Stat(filepath.Join(root, path)); err != nil && ours {
				t.Errorf("the row of %v names %s: %v", r.folders, path, err)
			}
		}
	}
	for _, s := range sources(t) {
		rule, folder := ruleFor(rules, s.path)
		if folder == "" {
			t.Errorf("%s is in no folder of ARCHITECTURE.md's table: add a row", s.path)
			continue
		}
		if s.test {
			continue
		}
		for _, spec := range s.file.Imports {
			if why := rule.breach(folder, strings.TrimPrefix(strings.Trim(spec.Path.Value, `"`), module)); why != "" {
				t.Errorf("%s %s", s.path, why)
			}
		}
	}
}

// TestFolderRules checks the reading of the table itself.
func TestFolderRules(t *testing.T) {
	const text = "| folder | what it is | what it must not know |\n|---|---|---|\n" +
		"| `internal/a`, `b/` | an a | files (`os`); the rest (*machinery* but `internal/m/ok`) |\n" +
		"| `internal/a/c` | a c | nothing (`internal`) |\n| *kin* | two | each other (*kin*) |\n\n" +
		"Here *machinery* is `internal/m`, `internal/n`. More `internal/o`. A *kin* is `internal/k/one` or\n`internal/k/two`.\n"
	rules, err := folderRules(text)
	if err != nil || len(rules) != 3 {
		t.Fatalf("%v, %v", rules, err)
	}
	for _, c := range []struct {
		file, imported string
		breach         bool
	}{
		{"internal/a/x.go", "os", true}, {"internal/a/x.go", "os/exec", true}, {"internal/a/x.go", "internal/m", true},
		{"internal/a/x.go", "internal/m/ok", false}, {"internal/a/x.go", "internal/o", false}, {"b/x.go", "internal/n/deep", true},
		{"internal/a/c/x.go", "os", false}, {"internal/a/c/x.go", "internal/o", true}, {"internal/a/c/x.go", "internal/a/c/d", false},
		{"internal/k/one/x.go", "internal/k/two", true}, {"internal/k/one/x.go", "internal/k/one", false}, {"internal/k/two/x.go", "internal/k", false},
	} {
		rule, folder := ruleFor(rules, c.file)
		if got := rule.breach(folder, c.imported) != ""; got != c.breach {
			t.Errorf("%s imports %s: a breach %v, want %v", c.file, c.imported, got, c.breach)
		}
	}
	if _, folder := ruleFor(rules, "internal/d/x.go"); folder != "" {
		t.Errorf("a folder without a row has that of %s", folder)
	}
	for _, bad := range []string{"labs, pods", "labs (internal/lab)", "(`os`)", "", "labs (`os`) and more", "labs (*labs*)"} {
		if _, err := folderRules(strings.Replace(text, "files (`os`)", bad, 1)); err == nil {
			t.Errorf("the rule %q is taken", bad)
		}
	}
}

var place = regexp.MustCompile("`((?:[a-z0-9_-]+/)+[a-z0-9_]+\\.go)(?:: ([A-Za-z0-9_., ]+))?`")

// TestPlacesInArchitecture: the files that ARCHITECTURE.md names exist, and declare what
// it says: `internal/plan/cells.go: Cells`.
func TestPlacesInArchitecture(t *testing.T) {
	declared := map[string][]string{}
	for _, s := range sources(t) {
		declared[s.path] = declarations(s.file)
	}
	functions := 0
	for _, m := range place.FindAllStringSubmatch(read(t, "ARCHITECTURE.md"), -1) {
		there, ok := declared[m[1]]
		if !ok {
			t.Errorf("ARCHITECTURE.md names %s, which does not exist", m[1])
			continue
		}
		for _, name := range strings.FieldsFunc(m[2], func(r rune) bool { return r == ',' || r == ' ' }) {
			functions++
			if !slices.Contains(there, name) {
				t.Errorf("ARCHITECTURE.md: %s declares no %s", m[1], name)
			}
		}
	}
	if functions < 20 {
		t.Errorf("ARCHITECTURE.md names only %d functions: is the search for them broken?", functions)
	}
}

// declarations are the names of a file: functions, methods as Type.Method, types,
// constants and variables.
func declarations(f *ast.File) []string {
	var out []string
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			name := d.Name.Name
			if d.Recv != nil {
				on := d.Recv.List[0].Type
				if star, ok := on.(*ast.StarExpr); ok {
					on = star.X
				}
				if id, ok := on.(*ast.Ident); ok {
					name = id.Name + "." + name
				}
			}
			out = append(out, name)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					out = append(out, spec.Name.Name)
				case *ast.ValueSpec:
					for _, n := range spec.Names {
						out = append(out, n.Name)
					}
				}
			}
		}
	}
	return out
}
