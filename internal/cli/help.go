package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
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
func rootLong() string {
	return `cnibench compares Kubernetes pod networks (CNI plugins) with the bare network
under them, and reports how certain each figure is.

On one machine with root it builds its own testbed, the lab, from network
namespaces; nothing is created in the machine's own namespace. It also measures
clusters (--context) and bare machines (--testbed hosts).

Exit statuses:

` + exitTable() + `

Colour is used on terminals only, and never when NO_COLOR is set; --color always and
--color never decide otherwise.`
}
