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

	"github.com/cnibench/cnibench/internal/cni"
	"github.com/cnibench/cnibench/internal/plain"
)

// The exit statuses.
const (
	exitOK         = 0
	exitFailed     = 1
	exitUsage      = 2
	exitRegression = 3
)

// usageError is wrong usage or bad input: exit status 2.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

// Main runs the command line and gives the exit status: 0 fine, 1 failed, 2
// wrong usage or bad input, 3 a regression was found.
func Main(args []string, stdout, stderr io.Writer) int {
	if handled, exit := cni.RunAsPlugin(os.Args[0], os.Environ()); handled {
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
	var usage usageError
	var silent silentError
	switch {
	case errors.As(err, &silent):
		return silent.status
	case errors.As(err, &usage):
		printError(stderr, err)
		return exitUsage
	default:
		printError(stderr, err)
		return exitFailed
	}
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

// silentError ends with a status when all has been said already.
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

// Root is the tree of commands.
func Root(stdout, stderr io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use:   "cnibench",
		Short: "measure what a Kubernetes pod network costs",
		Long: `cnibench measures Kubernetes pod networks (CNI plugins) against the bare
network under them, and says how sure it is.

On one machine with root it builds its own testbed, the lab, out of network
namespaces; nothing is created in the machine's own namespace.`,
		Example: `  cnibench run examples/quickstart.yaml
  cnibench report results/quickstart --format markdown`,
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
	root.AddCommand(
		runCommand(stdout, stderr),
		reportCommand(stdout),
		compareCommand(stdout, stderr),
		reproduceCommand(stdout, stderr),
		explainCommand(stdout),
		recommendCommand(stdout),
		doctorCommand(stdout),
		listCommand(stdout),
		labCommand(stdout, stderr),
		hostsCommand(stderr),
		pushCommand(stdout),
		imageCommand(stdout, stderr),
		cleanCommand(stdout, stderr),
		rbacCommand(stdout, stderr),
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
		return "", usageError{fmt.Errorf("--json with --format %s: say one of them", format)}
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
