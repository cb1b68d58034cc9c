package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cnibench/cnibench/internal/campaign"
)

// The exit statuses.
const (
	exitOK            = 0
	exitFailed        = 1
	exitUsage         = 2
	exitRegression    = 3
	exitSamplesFailed = 4
	exitUndecided     = 5
)

// ExitStatus is a status that the program ends with, and when it does.
type ExitStatus struct {
	Status  int
	Meaning string
}

// ExitStatuses is every exit status: help and documents derive from it.
func ExitStatuses() []ExitStatus {
	return []ExitStatus{
		{exitOK, "success"},
		{exitFailed, "failure"},
		{exitUsage, "wrong usage or bad input"},
		{exitRegression, "compare: a cell got worse or broke (see --fail-on)"},
		{exitSamplesFailed, "run: finished, but samples failed and no retry replaced them"},
		{exitUndecided, "compare --fail-on undecided: no cell got worse, but some cannot be decided"},
	}
}

// exitTable is the table of exit statuses for help; indented so that man pages keep its
// lines.
func exitTable() string {
	var lines []string
	for _, s := range ExitStatuses() {
		lines = append(lines, fmt.Sprintf("    %d  %s", s.Status, s.Meaning))
	}
	return strings.Join(lines, "\n")
}

// Variable is an environment variable that the program reads.
type Variable struct{ Name, Meaning string }

// Variables is every environment variable that people may set.
func Variables() []Variable {
	return []Variable{
		{"NO_COLOR", "set to anything: no colour, unless --color always is given"},
		{"TERM", "dumb: no colour, unless --color always is given"},
		{"LC_ALL, LC_CTYPE, LANG", "tables use Unicode characters if one of them names UTF-8"},
		{"KUBECONFIG", "the kubeconfig, as for kubectl; --kubeconfig comes first"},
		{"CNI_PATH", "folders to search for CNI plugins, after --cni-path"},
		{"CNIBENCH_STATE_DIR", "the folder with the state of labs (default /run/cnibench)"},
		{"CNIBENCH_BIN_DIR", "where lab up --kubernetes looks for its programs; --bin-dir comes first"},
		{"PGPASSWORD, PGSSLMODE", "the password and the TLS mode of cnibench push, as for psql"},
	}
}

// variableTable is the table of environment variables for help.
func variableTable() string {
	var lines []string
	for _, v := range Variables() {
		lines = append(lines, fmt.Sprintf("    %-22s  %s", v.Name, v.Meaning))
	}
	return strings.Join(lines, "\n")
}

// topics are pages of help that are no commands: cnibench help exit-status.
func topics() []*cobra.Command {
	return []*cobra.Command{
		{
			Use: "exit-status", Short: "the exit statuses of every command",
			Long: "The exit statuses of every command:\n\n" + exitTable(),
		},
		{
			Use: "environment", Short: "the environment variables that cnibench reads",
			Long: "The environment variables that cnibench reads:\n\n" + variableTable(),
		},
	}
}

// refuseUnknownHelp makes help for a command or page that does not exist a usage error.
func refuseUnknownHelp(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	help, _, err := root.Find([]string{"help"})
	if err != nil {
		return // no help command, and nothing to refuse
	}
	help.RunE = func(_ *cobra.Command, args []string) error {
		cmd, rest, err := root.Find(args)
		if err != nil || cmd.HasSubCommands() && len(rest) > 0 {
			return usageError{fmt.Errorf("no help for %q\nsee: %s --help", strings.Join(args, " "), root.CommandPath())}
		}
		cmd.InitDefaultHelpFlag()
		return cmd.Help()
	}
}

// rootLong is the help of the program.
const rootLong = `cnibench compares Kubernetes pod networks (CNI plugins) with the bare network
under them: what each costs in throughput, round-trip time and CPU, and how
certain each figure is.

"cnibench run", as root on Linux, measures five networks in 90 seconds. It builds
its own testbed, the lab, from network namespaces, and removes it at the end.
"cnibench run --context NAME" measures the network of a cluster in your
kubeconfig.`

// EndOfHelp is what the help of the program ends with: what all commands have in common.
func EndOfHelp() string {
	return "Exit statuses:\n\n" + exitTable() + `

Colour is used on terminals only, and never when NO_COLOR is set; --color always and
--color never decide otherwise.`
}

// commandGroup is a part of the list of commands in the help of the program.
type commandGroup struct {
	title    string
	commands []string
}

// commandGroups are all of them, in their order. Commands of cobra, and version, are in none.
func commandGroups() []commandGroup {
	return []commandGroup{
		{"Measure:", []string{"doctor", "run", "init", "list", "reproduce"}},
		{"Read a result:", []string{"report", "recommend", "explain", "compare", "push"}},
		{"Labs, clusters and bare machines:", []string{"lab", "image", "rbac", "clean", "hosts"}},
	}
}

// arrange puts the commands of the program into their groups, and ends its help with what
// they have in common.
func arrange(root *cobra.Command) {
	for _, g := range commandGroups() {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
		for _, c := range root.Commands() {
			if slices.Contains(g.commands, c.Name()) {
				c.GroupID = g.title
			}
		}
	}
	root.SetUsageTemplate(root.UsageTemplate() + "{{if not .HasParent}}\n" + EndOfHelp() + "\n{{end}}")
}

// usageArgs makes wrong arguments a usage error that names what the command takes.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if check(cmd, args) == nil {
			return nil
		}
		return usageError{fmt.Errorf("%s\nsee: %s --help", wrongArguments(cmd, args), cmd.CommandPath())}
	}
}

// wrongArguments says what is wrong with the arguments of a command.
func wrongArguments(cmd *cobra.Command, args []string) string {
	switch {
	case cmd.HasAvailableSubCommands() && len(args) > 0:
		var known []string
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() {
				known = append(known, c.Name())
			}
		}
		return fmt.Sprintf("unknown command %q for %q; %s", args[0], cmd.CommandPath(), campaign.Suggest("command", args[0], known))
	case len(cmd.ValidArgs) > 0 && len(args) == 1:
		return fmt.Sprintf("%s: unknown %q; %s", cmd.CommandPath(), args[0], campaign.Suggest("name", args[0], cmd.ValidArgs))
	case len(args) == 0:
		return "arguments are missing: " + cmd.UseLine()
	}
	return fmt.Sprintf("wrong number of arguments (%d): %s", len(args), cmd.UseLine())
}

// flagError makes a wrong flag a usage error, with the nearest flag of the command.
func flagError(cmd *cobra.Command, err error) error {
	hint := ""
	if unknown := (*pflag.NotExistError)(nil); errors.As(err, &unknown) && len(unknown.GetSpecifiedName()) > 1 {
		var known []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				known = append(known, f.Name)
			}
		})
		if near := campaign.Suggest("flag", unknown.GetSpecifiedName(), known); strings.HasPrefix(near, "did you mean") {
			hint = "; " + strings.Replace(near, `"`, `"--`, 1)
		}
	}
	return usageError{fmt.Errorf("%w%s\nsee: %s --help", err, hint, cmd.CommandPath())}
}
