package main

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cnibench/cnibench/internal/cli"
)

// referenceHead is the beginning of docs/cli.md.
const referenceHead = `<!-- Made from the commands in internal/cli: go test ./internal/repo/docfiles -update -->
# Commands

Every command and flag of cnibench. The same text is in ` + "`cnibench help`" + ` and in the man pages
of the packages (` + "`man cnibench-run`" + `).

`

// reference is docs/cli.md: an index, what all commands share, and a section for each
// command that people use.
func reference() string {
	root := cli.Root(io.Discard, io.Discard)
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	var b strings.Builder
	b.WriteString(referenceHead)
	all := commandsOf(root)
	b.WriteString("| command | what it does |\n|---|---|\n")
	for _, c := range all {
		fmt.Fprintf(&b, "| [%s](#%s) | %s |\n", strings.TrimPrefix(c.CommandPath(), "cnibench "), anchorOf(c), tableText(c.Short))
	}
	b.WriteString("\nWith the name `kubectl-cnibench` on PATH the program is also `kubectl cnibench`.\n")
	b.WriteString("\n## Flags of every command\n\n")
	writeFlags(&b, root.PersistentFlags())
	b.WriteString("\n## Formats\n\nA command that prints a result has `-o FORMAT`. The first format is the default. `--json` is short for `-o json`.\n" +
		"YAML has the same keys as JSON. A command with `--to FILE` writes a file in place of standard output; its `-o` also takes the\nname of a file, which must contain a dot or a slash.\n\n")
	writeFormats(&b, all)
	b.WriteString("\n## Exit statuses\n\n| status | meaning |\n|---|---|\n")
	for _, s := range cli.ExitStatuses() {
		fmt.Fprintf(&b, "| %d | %s |\n", s.Status, tableText(s.Meaning))
	}
	b.WriteString("\n## Environment variables\n\n| variable | meaning |\n|---|---|\n")
	for _, v := range cli.Variables() {
		fmt.Fprintf(&b, "| `%s` | %s |\n", strings.ReplaceAll(v.Name, ", ", "`, `"), tableText(v.Meaning))
	}
	for _, c := range all {
		writeCommand(&b, c)
	}
	return b.String()
}

// commandsOf are the commands below one that people use, in the order of their names.
// Pages of help and commands for shells and agents are not among them.
func commandsOf(cmd *cobra.Command) []*cobra.Command {
	var all []*cobra.Command
	for _, c := range cmd.Commands() {
		if !c.IsAvailableCommand() || c.Name() == "help" || c.IsAdditionalHelpTopicCommand() {
			continue
		}
		all = append(append(all, c), commandsOf(c)...)
	}
	slices.SortStableFunc(all, func(a, b *cobra.Command) int { return cmp.Compare(a.CommandPath(), b.CommandPath()) })
	return all
}

func anchorOf(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

func writeCommand(b *strings.Builder, c *cobra.Command) {
	fmt.Fprintf(b, "\n## %s\n\n", c.CommandPath())
	b.WriteString(prose(cmp.Or(c.Long, sentence(c.Short))) + "\n")
	fmt.Fprintf(b, "\n```text\n%s\n```\n", c.UseLine())
	if c.Example != "" {
		fmt.Fprintf(b, "\n```sh\n%s\n```\n", strings.ReplaceAll(strings.TrimPrefix(c.Example, "  "), "\n  ", "\n"))
	}
	if c.LocalNonPersistentFlags().HasAvailableFlags() {
		b.WriteString("\n")
		writeFlags(b, c.LocalNonPersistentFlags())
	}
}

// sentence is a short description as a sentence.
func sentence(short string) string { return strings.ToUpper(short[:1]) + short[1:] + "." }

// writeFlags writes a table of flags, without hidden ones and --help.
func writeFlags(b *strings.Builder, flags *pflag.FlagSet) {
	b.WriteString("| flag | default | meaning |\n|---|---|---|\n")
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if value != "" {
			name += " " + value
		}
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", name, defaultOf(f), tableText(usage))
	})
}

// defaultOf is a flag's default for a table; empty where that says nothing.
func defaultOf(f *pflag.Flag) string {
	if slices.Contains([]string{"", "false", "0", "0s", "[]"}, f.DefValue) {
		return ""
	}
	return "`" + strings.Trim(f.DefValue, "[]") + "`"
}

// writeFormats writes which command has which formats.
func writeFormats(b *strings.Builder, all []*cobra.Command) {
	b.WriteString("| command | formats |\n|---|---|\n")
	for _, c := range all {
		if f := c.Flags().Lookup("output"); f != nil {
			fmt.Fprintf(b, "| %s | %s |\n", strings.TrimPrefix(c.CommandPath(), "cnibench "), strings.Join(f.Annotations[cli.FormatsAnnotation], ", "))
		}
	}
}

var flagInText = regexp.MustCompile(`(^|[ (\n])(--?[a-z][a-z-]*)`)

// prose is a text of help in Markdown: flags are code, and indented lines are a block.
func prose(text string) string {
	var out []string
	for _, paragraph := range strings.Split(strings.TrimSpace(text), "\n\n") {
		if strings.HasPrefix(paragraph, "  ") || strings.HasPrefix(paragraph, "\t") {
			out = append(out, "```text\n"+paragraph+"\n```")
			continue
		}
		out = append(out, quoteFlags(paragraph))
	}
	return strings.Join(out, "\n\n")
}

func quoteFlags(text string) string {
	text = strings.NewReplacer("<", "&lt;", "*", `\*`).Replace(text)
	return flagInText.ReplaceAllString(text, "$1`$2`")
}

// tableText is a text in a cell of a table.
func tableText(text string) string {
	return strings.ReplaceAll(quoteFlags(strings.ReplaceAll(text, "\n", " ")), "|", `\|`)
}
