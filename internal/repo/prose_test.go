package repo

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cnibench/cnibench/internal/cli"
)

// avoided are phrases that nobody searches for, with what to write in their place.
func avoided() rules {
	return compiled([][2]string{
		{`\b(held|hold|holds|holding)\b[^.;:]{0,60}\bagainst\b`, "compare with"},
		{`\bin vain\b`, "without a match"},
		{`\bmend(s|ed|ing)?\b`, "fix, correct"},
		{`\bput (it |them )?right\b`, "fix, correct"},
		{`\bwho (may|can) make none\b`, "users who cannot create one"},
		{`\bwho administers\b`, "a cluster admin"},
		{`\b(that|which|there) (is|are) there\b`, "existing"},
		{`\bwhat did not get there\b`, "cells that missed the target"},
		{`\b(told|tell|tells|telling) [^.;:]{0,40}\bapart\b`, "tied, significant difference"},
		{`\bbe told from\b`, "tied, no significant difference"},
		{`\bcannot be told\b`, "cannot be determined, tied"},
		{`\b(is|are) of (the lab|a lab|pods|a pod|the testbed|a Kubernetes|networks?)\b`, "belongs to, is for, requires"},
		{`\bgoes by\b`, "uses"},
		{`\b(of|by) (itself|themselves)\b|\bof (its|their) own accord\b`, "on its own"},
		{`\btold\b`, "reported, shown, given, informed; who does it"},
		{`\bbesides\b`, "in addition, except"},
		{`\bstand(s|ing)?\b([^ \-\w]|\s+([^ifo\s]|i[^n]|f[^o]|o[^u]))`, "is, exists, is running"},
		{`\b(is|are) not there\b`, "does not exist, is missing"},
		{`\bwho may\b`, "who can, with the right to"},
		{`\bwithout a word\b`, "without an answer for"},
		{`\bno word of\b`, "does not mention"},
		{`\bwhat becomes of\b`, "what happens to"},
		{`\bcame of it\b`, "the result"},
		{`\bit is said\b|\bthat is said\b|\bis said\b|\bare said\b`, "is reported, is listed"},
		{`\b(share|shares) the first place\b`, "are tied for 1st"},
		{`\bspan of places\b`, "ranks"},
		{`\banew\b`, "again, from the beginning"},
		{`\bwritten as can be\b`, "as far as possible"},
		{`\bcome(s)? to (its|an|the) end\b`, "finish"},
		{`\bgo(es)? on with\b`, "resume, continue"},
		{`\bsay (one of them|what for|which)\b`, "use, name"},
		{`\b(spots?|jury|juries|contests?|doors?|rungs?)\b`, "docs/glossary.md has the word"},
	})
}

// avoidedInComments are phrases that comments in Go avoid, in addition to those of avoided.
func avoidedInComments() rules {
	return append(avoided(), compiled([][2]string{
		{`\bthe (former|latter)\b`, "the name of the thing"},
		{`\bwhatever became of\b`, "whatever happened to"},
	})...)
}

// rules are the phrases that a kind of text avoids.
type rules []phrase

// phrase is what not to write, and what to write in its place.
type phrase struct {
	avoid *regexp.Regexp
	write string
}

func compiled(list [][2]string) rules {
	var out rules
	for _, p := range list {
		out = append(out, phrase{regexp.MustCompile("(?i)" + p[0]), p[1]})
	}
	return out
}

// TestProse: documents, help texts and messages avoid the phrases of the list.
func TestProse(t *testing.T) {
	avoid, found := avoided(), map[string][]string{}
	for _, path := range files(t, ".md") {
		found[path] = avoid.find(path, proseOf(read(t, path)))
	}
	for _, s := range sources(t) {
		if !s.test && within(s.path, []string{"internal"}) && !within(s.path, []string{"internal/labtest"}) {
			found[s.path] = avoid.inMessages(s)
		}
	}
	avoid.inHelp(cli.Root(io.Discard, io.Discard), found)
	for _, path := range slices.Sorted(maps.Keys(found)) {
		for _, f := range found[path] {
			t.Error(f)
		}
	}
}

// TestProseOfComments: comments in Go, also those of tests, avoid these phrases and a few more.
func TestProseOfComments(t *testing.T) {
	avoid := avoidedInComments()
	for _, s := range sources(t) {
		for _, f := range avoid.inComments(s) {
			t.Error(f)
		}
	}
}

// TestProseOfOtherFiles: scripts, the Makefile, YAML, templates, C and the report's script
// avoid the phrases of the list in their comments and texts. What a paper says in its own
// words is quoted and stays.
func TestProseOfOtherFiles(t *testing.T) {
	avoid := avoided()
	kinds := map[string]string{".sh": "#", ".yaml": "#", ".yml": "#", ".py": "#", ".flows": "#", ".gohtml": "", ".js": "//", ".mjs": "//", ".css": "", ".c": "*", ".h": "*", ".txt": ""}
	n := 0
	for _, path := range append(files(t, slices.Collect(maps.Keys(kinds))...), ".ci/run", "Makefile", "Dockerfile") {
		mark, is := kinds[filepath.Ext(path)]
		switch {
		case slices.Contains([]string{".ci/run", "Makefile", "Dockerfile"}, path):
			mark = "#"
		case !is || strings.Contains(path, "testdata/") || strings.HasPrefix(path, "web/LICENSES") || strings.HasSuffix(path, "templates/report.js") || filepath.Base(path) == "requirements.txt":
			continue
		}
		n++
		for _, f := range avoid.find(path, withoutMarks(read(t, path), mark)) {
			t.Error(f)
		}
	}
	if n < 60 {
		t.Errorf("only %d files: is the search for them broken?", n)
	}
}

// quotation is a line of a paper's data with the paper's own words.
var quotation = regexp.MustCompile(`^\s*(- )?(quote|published|counts_as): `)

// withoutMarks is a text without the marks that begin its comments, so that a phrase may be
// broken over lines, and without the words of others.
func withoutMarks(text, mark string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = strings.TrimLeft(strings.TrimSpace(l), mark+" ")
		if quotation.MatchString(l) {
			lines[i] = ""
		}
	}
	return strings.Join(lines, "\n")
}

// proseOf is a document without its blocks of code, which keep their lines.
func proseOf(text string) string {
	lines, fenced := strings.Split(text, "\n"), false
	for i, l := range lines {
		fence := strings.HasPrefix(strings.TrimSpace(l), "```")
		if fence {
			fenced = !fenced
		}
		if fence || fenced {
			lines[i] = ""
		}
	}
	return strings.Join(lines, "\n")
}

// find names each avoided phrase in a text with its line. A phrase may be broken over
// lines.
func (r rules) find(where, text string) []string { return r.findFrom(where, 1, text) }

// findFrom is find for a text whose first line has a number in its file.
func (r rules) findFrom(where string, line int, text string) []string {
	var out []string
	flat := strings.ReplaceAll(text, "\n", " ")
	for _, p := range r {
		for _, at := range p.avoid.FindAllStringIndex(flat, -1) {
			out = append(out, fmt.Sprintf("%s:%d: %q: write: %s", where, line+strings.Count(text[:at[0]], "\n"), flat[at[0]:at[1]], p.write))
		}
	}
	return out
}

// inComments checks the comments of a Go file. Lines that follow each other are one text.
func (r rules) inComments(s source) []string {
	var out []string
	for _, group := range s.file.Comments {
		var lines []string
		for _, c := range group.List {
			for l := range strings.Lines(c.Text) {
				lines = append(lines, strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(l), "//")))
			}
		}
		out = append(out, r.findFrom(s.path, s.set.Position(group.Pos()).Line, strings.Join(lines, "\n"))...)
	}
	return out
}

// inMessages checks the texts of a Go file: its string literals with a space.
func (r rules) inMessages(s source) []string {
	var out []string
	ast.Inspect(s.file, func(n ast.Node) bool {
		lit, ok := n.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING {
			return true
		}
		if text, err := strconv.Unquote(lit.Value); err == nil && strings.Contains(text, " ") {
			out = append(out, r.findFrom(s.path, s.set.Position(lit.Pos()).Line, text)...)
		}
		return true
	})
	return out
}

// inHelp checks the help of a command and of all below it.
func (r rules) inHelp(cmd *cobra.Command, found map[string][]string) {
	where := cmd.CommandPath() + " --help"
	out := r.find(where, cmd.Short+"\n"+cmd.Long)
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		out = append(out, r.find(where+" --"+f.Name, f.Usage)...)
	})
	found[where] = out
	for _, c := range cmd.Commands() {
		r.inHelp(c, found)
	}
}

// TestProseSearch checks the search itself.
func TestProseSearch(t *testing.T) {
	avoid := avoided()
	for text, want := range map[string]int{
		"Networks are held\nagainst the bare one.":            1,
		"Networks are compared with the bare one.":            0,
		"These cannot be told apart.":                         3,
		"A policy that the traffic is held against in vain":   2,
		"`--image is of pods`":                                1,
		"It reports what is missing, and how to fix it.":      0,
		"All clusters stand.":                                 1,
		"The cluster stands\nbeside another.":                 1,
		"A folder stands in for /proc; null stands for none.": 0,
		"The file is\nnot there.":                             1,
	} {
		if got := avoid.find("x", text); len(got) != want {
			t.Errorf("%q: %d findings, want %d: %v", text, len(got), want, got)
		}
	}
	text := "package x\n\n// What is held\n// against it, as told.\nvar told = \"was told\" // plain\n"
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "x.go", text, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{`x.go:3: "held against": write: compare with`, `x.go:4: "told": write: reported, shown, given, informed; who does it`}
	if got := avoidedInComments().inComments(source{path: "x.go", set: set, file: file}); !slices.Equal(got, want) {
		t.Errorf("comments: %q, want %q", got, want)
	}
	if got := proseOf("a\n```console\nheld against\n```\nb"); got != "a\n\n\n\nb" {
		t.Errorf("%q", got)
	}
}
