// Command testsummary reads what go test -json prints and shows it to people:
// failures in full, then what was skipped and why, the slowest tests, and one line of
// counts. It ends with status 1 when anything failed, when no test ran, and, in CI as root,
// when a test was skipped for another reason than the kernel or its length.
//
// With a command, such as `testsummary go test -count=1 -json`, the few tests that failed
// run once more, alone. A test that passes then is listed, and does not fail the run: a
// machine that others slow down fails tests that watch time.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/labtest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var again runner
	if command := os.Args[1:]; len(command) > 0 {
		again = func(args ...string) ([]byte, error) { return output(ctx, append(command, args...)) }
	}
	os.Exit(run(os.Stdin, os.Stdout, os.Stderr, labtest.CI(), again))
}

// runner runs the command for tests with more arguments, and gives what it prints. That the
// tests failed is no error: it is in the events.
type runner func(args ...string) ([]byte, error)

// output is what a command prints, however it ends.
func output(ctx context.Context, argv []string) ([]byte, error) {
	r := exec.NewRunner()
	defer r.Close()
	res, err := r.Run(ctx, exec.Cmd{Argv: argv})
	if res.ExitCode > 0 {
		err = nil
	}
	return append(res.Stdout, res.Stderr...), err
}

// run is main with its streams; strict fails a skip that the machine's owner
// could have avoided; again runs tests once more, or is nil.
func run(in io.Reader, stdout, stderr io.Writer, strict bool, again runner) int {
	s := newSummary(stdout)
	err := s.read(in)
	if err == nil && again != nil {
		err = s.again(again)
	}
	if err != nil {
		_, _ = io.WriteString(stderr, "testsummary: "+err.Error()+"\n")
		return 1
	}
	return s.finish(strict)
}
