package repo

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/cnibench/cnibench/internal/cli"
)

// command is one that a document shows.
type command struct {
	where string // "README.md:12"
	line  string
	prose bool // in running text
}

// TestCommandsInDocuments: every cnibench and make command that a document
// shows, in a block (of console, after "$ "; of sh, bash or no language; of YAML, as a step
// of a CI system) or in running text between backquotes, is one that this program or the
// Makefile takes. Synopses (with …, [ or <) are not commands; a verb alone in running text
// is a name.
func TestCommandsInDocuments(t *testing.T) {
	n := 0
	for _, path := range files(t, ".md") {
		for _, c := range commands(path, read(t, path)) {
			if err := takes(t, c); err != nil {
				t.Errorf("%s: %q: %v", c.where, c.line, err)
			}
			n++
		}
	}
	if n < 10 {
		t.Errorf("only %d commands found in the documents: is the search for them broken?", n)
	}
}

var inline = regexp.MustCompile("`([^`]+)`")

// commands finds them in one document.
func commands(path, text string) []command {
	var found []command
	fence := "" // the language of the block that a line is in; "-" is none
	for i, line := range strings.Split(text, "\n") {
		where := fmt.Sprintf("%s:%d", path, i+1)
		if lang, is := strings.CutPrefix(strings.TrimSpace(line), "```"); is {
			switch {
			case fence != "":
				fence = ""
			case lang == "":
				fence = "-"
			default:
				fence = lang
			}
			continue
		}
		var candidates []string
		switch fence {
		case "":
			for _, m := range inline.FindAllStringSubmatch(line, -1) {
				candidates = append(candidates, m[1])
			}
		case "console":
			if c, is := strings.CutPrefix(strings.TrimSpace(line), "$ "); is {
				candidates = append(candidates, c)
			}
		case "sh", "bash", "-":
			candidates = append(candidates, strings.TrimSpace(line))
		case "yaml":
			if m := step.FindStringSubmatch(line); m != nil {
				candidates = append(candidates, m[1])
			}
		}
		for _, c := range candidates {
			for _, c := range inShell(c) {
				if isCommand.MatchString(c) && !strings.ContainsAny(c, "…[<") {
					found = append(found, command{where, c, fence == ""})
				}
			}
		}
	}
	return found
}

// step is a command in a pipeline of GitHub or GitLab.
var step = regexp.MustCompile(`(?:run: |script: \[)([^\]]+)`)

// inShell are the commands of a line, one after another. A comment stays with the last one.
func inShell(line string) []string {
	code, comment, is := strings.Cut(line, " #")
	all := strings.FieldsFunc(strings.NewReplacer(" && ", "\n", "; ", "\n", " | ", "\n").Replace(code), func(r rune) bool { return r == '\n' })
	for i, c := range all {
		all[i] = strings.TrimSpace(c)
	}
	if is && len(all) > 0 {
		all[len(all)-1] += " #" + comment
	}
	return all
}

var isCommand = regexp.MustCompile(`^(sudo )?(\S*bin/)?(cnibench|make) \S`)

// takes reports whether a command would be accepted; it runs nothing.
func takes(t *testing.T, c command) error {
	t.Helper()
	line, _, _ := strings.Cut(c.line, " #")
	for _, op := range []string{" > ", " 2>"} {
		line, _, _ = strings.Cut(line, op)
	}
	words := strings.Fields(line)
	if words[0] == "sudo" {
		words = words[1:]
	}
	for i, w := range words {
		words[i] = strings.Trim(w, `'"`)
	}
	if filepath.Base(words[0]) == "make" {
		return isTarget(t, words[1:])
	}
	for _, w := range words[1:] {
		if strings.HasPrefix(w, "examples/") {
			if _, err := os.Stat(filepath.Join(root, w)); err != nil {
				return err
			}
		}
	}
	return parses(words[1:], c.prose)
}

func isTarget(t *testing.T, words []string) error {
	t.Helper()
	for _, w := range words {
		if strings.Contains(w, "=") {
			continue // a variable
		}
		if !strings.Contains(read(t, "Makefile"), "\n"+w+":") {
			return fmt.Errorf("the Makefile has no target %s", w)
		}
	}
	return nil
}

// parses checks arguments with the command tree: verb, flags, their values'
// types, the number of arguments.
func parses(args []string, prose bool) error {
	top := cli.Root(io.Discard, io.Discard)
	if len(args) == 1 && slices.Contains([]string{"--help", "--version"}, args[0]) {
		return nil
	}
	top.InitDefaultHelpCmd() // as when it is run
	top.InitDefaultCompletionCmd(args...)
	cmd, rest, err := top.Find(args)
	if err != nil {
		return err
	}
	if cmd == top {
		return fmt.Errorf("no such verb")
	}
	if prose && len(rest) == 0 {
		return nil
	}
	cmd.InitDefaultHelpFlag()
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	return cmd.ValidateArgs(cmd.Flags().Args())
}

// TestLinksInDocuments: every file and every heading that a document links to in
// this tree exists.
func TestLinksInDocuments(t *testing.T) {
	for _, path := range files(t, ".md") {
		for _, problem := range brokenLinks(path, read(t, path), func(p string) (string, error) {
			text, err := os.ReadFile(filepath.Join(root, p))
			if err != nil {
				_, err = os.Stat(filepath.Join(root, p)) // a folder is not read
			}
			return string(text), err
		}) {
			t.Error(problem)
		}
	}
}

var link = regexp.MustCompile(`\]\(([^)#\s]*)(?:#([^)\s]*))?\)`)

// brokenLinks names the links of a document whose file or heading does not exist.
func brokenLinks(path, text string, open func(string) (string, error)) []string {
	var out []string
	for _, m := range link.FindAllStringSubmatch(proseOf(text), -1) {
		if strings.Contains(m[1], "://") {
			continue
		}
		target, there := path, text
		if m[1] != "" {
			var err error
			target = filepath.Join(filepath.Dir(path), m[1])
			if there, err = open(target); err != nil {
				out = append(out, fmt.Sprintf("%s links to %s: %v", path, m[1], err))
				continue
			}
		}
		if m[2] != "" && strings.HasSuffix(target, ".md") && !slices.Contains(anchors(there), m[2]) {
			out = append(out, fmt.Sprintf("%s links to %s#%s, a heading that does not exist", path, m[1], m[2]))
		}
	}
	return out
}

// anchors are the names that headings have in links: small letters, without
// punctuation, spaces as dashes.
func anchors(text string) []string {
	var out []string
	for _, line := range strings.Split(proseOf(text), "\n") {
		if title := strings.TrimLeft(line, "#"); title != line && strings.HasPrefix(title, " ") {
			out = append(out, strings.Map(func(r rune) rune {
				switch {
				case r == ' ':
					return '-'
				case r == '-', r == '_', unicode.IsLetter(r), unicode.IsDigit(r):
					return unicode.ToLower(r)
				}
				return -1
			}, strings.TrimSpace(title)))
		}
	}
	return out
}

// TestLinkSearch checks the search itself.
func TestLinkSearch(t *testing.T) {
	open := func(p string) (string, error) {
		if p == "docs/b.md" {
			return "# B: the *second*, in `full`\n", nil
		}
		return "", os.ErrNotExist
	}
	for text, want := range map[string]int{
		"[b](b.md)":                          0,
		"[b](b.md#b-the-second-in-full)":     0,
		"[b](b.md#second)":                   1,
		"[c](c.md#second)":                   1,
		"# Here\n[here](#here) [no](#there)": 1,
		"[x](https://example.invalid/a#b)":   0,
	} {
		if got := brokenLinks("docs/a.md", text, open); len(got) != want {
			t.Errorf("%q: %d findings, want %d: %v", text, len(got), want, got)
		}
	}
}

// TestCommandSearch checks the search itself.
func TestCommandSearch(t *testing.T) {
	text := "Say `cnibench doctor` or `cnibench run FILE [--seed N]`, not `cnibench`.\n" +
		"```console\n$ bin/cnibench list networks\ncnibench doctor: fine\n$ ls\n```\n" +
		"```sh\nsudo make test # all\nexport A=1\n```\n```\ncnibench nothing && make it\n```\n" +
		"```yaml\n- run: sudo cnibench run\nscript: [cnibench doctor]\nname: cnibench run\n```\n"
	var got []string
	for _, c := range commands("x.md", text) {
		got = append(got, c.where+" "+c.line)
	}
	want := []string{"x.md:1 cnibench doctor", "x.md:3 bin/cnibench list networks", "x.md:8 sudo make test # all",
		"x.md:12 cnibench nothing", "x.md:12 make it", "x.md:15 sudo cnibench run", "x.md:16 cnibench doctor"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	for line, ok := range map[string]bool{
		"cnibench doctor --json":       true,
		"bin/cnibench list networks":   true,
		"sudo make test CNIBENCH_CI=1": true,
		"cnibench doctor --jsn":        false,
		"cnibench list networks links": false,
		"cnibench list netwerks":       false,
		"cnibench docter":              false,
		"cnibench run":                 true,
		"cnibench run a b":             false,
		"make tests":                   false,
	} {
		if err := takes(t, command{line: line}); (err == nil) != ok {
			t.Errorf("%q: %v", line, err)
		}
	}
}
