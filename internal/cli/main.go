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

	"github.com/cnibench/cnibench/internal/plain"
)

// usageError is wrong usage or bad input: exit status 2.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

// Main runs the command line and returns the exit status (see ExitStatuses).
func Main(args []string, stdout, stderr io.Writer) int {
	if handled, exit := asCNIPlugin(os.Args[0], os.Environ()); handled {
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

// withoutSilent is what went wrong in addition to a silentError; nil where nothing did.
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

// Root is the tree of commands.
func Root(stdout, stderr io.Writer) *cobra.Command {
	said, results := &messages{w: stderr}, &resultWriter{w: stdout}
	root := &cobra.Command{
		Use:   "cnibench",
		Short: "measure what a Kubernetes pod network costs",
		Long:  rootLong,
		Example: `  sudo cnibench doctor
  sudo cnibench run
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
	root.SetFlagErrorFunc(flagError)
	root.CompletionOptions.HiddenDefaultCmd = false
	root.PersistentFlags().BoolVarP(&said.quiet, "quiet", "q", false, "print results and errors only, no progress or notes")
	root.PersistentFlags().BoolVarP(&said.verbose, "verbose", "v", false, "report every sample that run measures")
	root.PersistentFlags().StringVar(&results.color, "color", colorAuto, "colour: auto (on terminals, unless NO_COLOR is set), always, never")
	root.PersistentPreRunE = func(*cobra.Command, []string) error {
		if said.quiet && said.verbose {
			return usageError{errors.New("--quiet and --verbose contradict each other: use one of them")}
		}
		return oneOf("color", results.color, colors())
	}
	root.AddCommand(
		initCommand(results),
		runCommand(results, said),
		reportCommand(results),
		compareCommand(results, said),
		reproduceCommand(results, said),
		explainCommand(results),
		recommendCommand(results),
		doctorCommand(results),
		listCommand(results),
		labCommand(results, said),
		hostsCommand(said),
		pushCommand(results),
		imageCommand(results, said),
		cleanCommand(results, said),
		rbacCommand(results, said),
		versionCommand(results),
		agentCommand(stdout), // its peer speaks a protocol and has no terminal
		tunnelCommand(),
	)
	root.AddCommand(topics()...)
	refuseUnknownHelp(root)
	arrange(root)
	return root
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
