// Command testsummary reads what go test -json prints and shows it to people:
// failures in full, then what was skipped and why, the slowest tests, and one line of
// counts. It ends with status 1 when anything failed, when no test ran, and, in CI as root,
// when a test was skipped for another reason than the kernel or its length.
package main

import (
	"io"
	"os"

	"github.com/cnibench/cnibench/internal/labtest"
)

func main() { os.Exit(run(os.Stdin, os.Stdout, os.Stderr, labtest.CI())) }

// run is main with its streams; strict fails a skip that the machine's owner
// could have avoided.
func run(in io.Reader, stdout, stderr io.Writer, strict bool) int {
	s := newSummary(stdout)
	if err := s.read(in); err != nil {
		_, _ = io.WriteString(stderr, "testsummary: "+err.Error()+"\n")
		return 1
	}
	return s.finish(strict)
}
