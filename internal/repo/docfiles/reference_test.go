package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/cnibench/cnibench/internal/cli"
)

var update = flag.Bool("update", false, "write docs/cli.md")

// TestReferenceIsFresh: docs/cli.md is what the commands give.
func TestReferenceIsFresh(t *testing.T) {
	const path = "../../../docs/cli.md"
	if *update {
		if err := os.WriteFile(path, []byte(reference()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(path)
	if err != nil || string(have) != reference() {
		t.Errorf("docs/cli.md is stale (%v): go test ./internal/repo/docfiles -update", err)
	}
}

// TestReferenceIsComplete: every command that people use, and every flag of it, is in
// docs/cli.md and in a man page; so is every exit status.
func TestReferenceIsComplete(t *testing.T) {
	have, err := os.ReadFile("../../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	pages := filesOf(t)
	sections := map[string]string{}
	for _, section := range strings.Split(string(have), "\n## ")[1:] {
		title, body, _ := strings.Cut(section, "\n")
		sections[title] = body
	}
	root := cli.Root(io.Discard, io.Discard)
	root.InitDefaultCompletionCmd()
	commands := commandsOf(root)
	if len(commands) < 20 {
		t.Fatalf("only %d commands", len(commands))
	}
	for _, c := range commands {
		section, is := sections[c.CommandPath()]
		page := strings.ReplaceAll(pages["man/"+anchorOf(c)+".1"], `\-`, "-")
		if !is || page == "" {
			t.Errorf("%s: no section (%v) or no man page (%v)", c.CommandPath(), !is, page == "")
			continue
		}
		c.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			if f.Hidden || f.Name == "help" {
				return
			}
			if !strings.Contains(section, "--"+f.Name) {
				t.Errorf("docs/cli.md, %s: no --%s", c.CommandPath(), f.Name)
			}
			if !strings.Contains(page, "--"+f.Name) {
				t.Errorf("the man page of %s: no --%s", c.CommandPath(), f.Name)
			}
		})
	}
	help := strings.ReplaceAll(pages["man/cnibench.1"], `\-`, "-")
	for _, s := range cli.ExitStatuses() {
		if !strings.Contains(sections["Exit statuses"], fmt.Sprintf("| %d |", s.Status)) {
			t.Errorf("docs/cli.md has no exit status %d", s.Status)
		}
		if !strings.Contains(help, fmt.Sprintf("%d  %s", s.Status, s.Meaning)) {
			t.Errorf("the man page of cnibench has no exit status %d: %s", s.Status, s.Meaning)
		}
	}
}

// TestProse checks how help becomes Markdown.
func TestProse(t *testing.T) {
	for text, want := range map[string]string{
		"with --format csv":          "with `--format` csv",
		"-o wide (--long)":           "`-o` wide (`--long`)",
		"see\n--a":                   "see\n`--a`",
		"a\n\n  b  c":                "a\n\n```text\n  b  c\n```",
		"run * < 3, cross-check":     `run \* &lt; 3, cross-check`,
		"names of nodes: --a, --b-c": "names of nodes: `--a`, `--b-c`",
	} {
		if got := prose(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if got := tableText("a|b --c"); got != "a\\|b `--c`" {
		t.Errorf("%q", got)
	}
}
