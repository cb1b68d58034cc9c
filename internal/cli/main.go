// Package cli is the command line: one verb, one file. Results go to stdout,
// all else to stderr.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/plain"
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

// exitTable is the table of exit statuses: one line each, for help and documents.
func exitTable() []string {
	return []string{
		fmt.Sprintf("%d  success", exitOK),
		fmt.Sprintf("%d  failure", exitFailed),
		fmt.Sprintf("%d  wrong usage or bad input", exitUsage),
		fmt.Sprintf("%d  compare: a cell got worse or broke (see --fail-on)", exitRegression),
		fmt.Sprintf("%d  run: finished, but samples failed and no retry replaced them", exitSamplesFailed),
		fmt.Sprintf("%d  compare --fail-on undecided: no cell got worse, but some cannot be decided", exitUndecided),
	}
}

// usageError is wrong usage or bad input: exit status 2.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

// Main runs the command line and returns the exit status (see exitTable).
func Main(args []string, stdout, stderr io.Writer) int {
	if handled, exit := network.RunAsPlugin(os.Args[0], os.Environ()); handled {
		return exit
	}
	ctx, stop := untilSignal()
	defer stop()
	root := Root(stdout, stderr)
	root.SetArgs(asPlugin(root, os.Args[0], args))
	err := complete(root)
	if err == nil {
		err = root.ExecuteContext(ctx)
	}
	if err == nil {
		return exitOK
	}
	var silent silentError
	if errors.As(err, &silent) {
		if err = withoutSilent(err); err == nil {
			return silent.status
		}
	}
	printError(stderr, err)
	if usage := (usageError{}); errors.As(err, &usage) {
		return exitUsage
	}
	return exitFailed
}

// untilSignal is a context that ends with Ctrl-C, SIGTERM and, where that is not
// ignored as by nohup, with the terminal (SIGHUP): a dropped ssh session must not
// leave hosts tuned. After the first signal the terminal may be gone, and writing to
// it must not end the program before it has cleaned up.
func untilSignal() (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ctx, cancel := context.WithCancel(ctx)
	hangup := make(chan os.Signal, 1)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(hangup, syscall.SIGHUP) // for good: a shell and the kernel send one each
	}
	go func() {
		select {
		case <-hangup:
			cancel()
		case <-ctx.Done():
		}
		signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
		stop() // a second Ctrl-C ends the program at once
	}()
	return ctx, func() {
		cancel()
		stop()
	}
}

// withoutSilent is what else went wrong beside a silentError; nil where nothing did.
func withoutSilent(err error) error {
	var many interface{ Unwrap() []error }
	if !errors.As(err, &many) {
		if silent := (silentError{}); errors.As(err, &silent) {
			return nil
		}
		return err
	}
	var rest []error
	for _, e := range many.Unwrap() {
		rest = append(rest, withoutSilent(e))
	}
	return errors.Join(rest...)
}

// silentError ends with a status after everything was printed.
type silentError struct{ status int }

func (e silentError) Error() string { return fmt.Sprintf("exit status %d", e.status) }

func printError(w io.Writer, err error) {
	for i, line := range strings.Split(strings.TrimRight(plain.Text(err.Error()), "\n"), "\n") {
		if i == 0 {
			line = "cnibench: " + line
		}
		fmt.Fprintln(w, line)
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
  ` + strings.Join(exitTable(), "\n  ") + `

Colour is used on terminals only, and never when NO_COLOR is set.`
}

// Root is the tree of commands.
func Root(stdout, stderr io.Writer) *cobra.Command {
	said := &messages{w: stderr}
	root := &cobra.Command{
		Use:   "cnibench",
		Short: "measure what a Kubernetes pod network costs",
		Long:  rootLong(),
		Example: `  cnibench doctor
  cnibench run
  cnibench run --context admin@staging
  cnibench report results/latest --long`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version(),
		Args:          usageArgs(cobra.NoArgs),
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w\nsee: %s --help", err, cmd.CommandPath())}
	})
	root.CompletionOptions.HiddenDefaultCmd = false
	root.PersistentFlags().BoolVarP(&said.quiet, "quiet", "q", false, "print results and errors only, no progress or notes")
	root.PersistentFlags().BoolVarP(&said.verbose, "verbose", "v", false, "report every sample that run measures")
	root.PersistentPreRunE = func(*cobra.Command, []string) error {
		if said.quiet && said.verbose {
			return usageError{errors.New("--quiet and --verbose contradict each other: use one of them")}
		}
		return nil
	}
	root.AddCommand(
		initCommand(stdout),
		runCommand(stdout, said),
		reportCommand(stdout),
		compareCommand(stdout, said),
		reproduceCommand(stdout, said),
		explainCommand(stdout),
		recommendCommand(stdout),
		doctorCommand(stdout),
		listCommand(stdout),
		labCommand(stdout, said),
		hostsCommand(said),
		pushCommand(stdout),
		imageCommand(stdout, said),
		cleanCommand(stdout, said),
		rbacCommand(stdout, said),
		versionCommand(stdout),
		agentCommand(stdout),
		tunnelCommand(),
	)
	return root
}

// usageArgs makes wrong arguments a usage error.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usageError{fmt.Errorf("%w\nsee: %s --help", err, cmd.CommandPath())}
		}
		return nil
	}
}

// jsonFlag gives a command with --format the flag --json, for those who know it
// from other commands. formatAsked is what both together ask for.
func jsonFlag(cmd *cobra.Command, asJSON *bool) {
	cmd.Flags().BoolVar(asJSON, "json", false, "print JSON: the same as --format json")
}

func formatAsked(cmd *cobra.Command, format string, asJSON bool) (string, error) {
	if !asJSON {
		return format, nil
	}
	if cmd.Flags().Changed("format") && format != "json" {
		return "", usageError{fmt.Errorf("--json and --format %s contradict each other: use one of them", format)}
	}
	return "json", nil
}

// oneOf refuses a flag's value that is not in the list.
func oneOf(flag, value string, known []string) error {
	for _, k := range known {
		if value == k {
			return nil
		}
	}
	return usageError{fmt.Errorf("--%s %q: want one of %s", flag, value, strings.Join(known, ", "))}
}
