package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/labtest"
)

// event is one line of go test -json (go doc test2json). Builds report under
// their import path instead of a package.
type event struct {
	Action      string
	Package     string
	ImportPath  string
	Test        string
	Elapsed     float64 // seconds
	Output      string
	FailedBuild string
}

// key names a test, or with an empty test a package.
type key struct{ pkg, test string }

// skip is a test that did not run, and why.
type skip struct {
	key
	reason string
}

// summary gathers a run.
type summary struct {
	w       io.Writer
	output  map[key][]string    // of what has not ended yet
	builds  map[string][]string // compiler output by import path
	shown   map[string]bool     // builds that were shown
	failedN map[string]int      // failed tests by package
	passed  int
	failed  []key
	skipped []skip
	slow    []timed

	broken   bool  // a package did not build, or ended in the middle of its tests
	unsteady []key // failed, and passed when they ran once more
}

// timed is a test and what it took, seconds, without the time that it waited for its turn
// beside others.
type timed struct {
	key
	seconds float64
}

const (
	slowSeconds = 20 // from here on a test is listed as slow
	mostSlow    = 12 // so many are
)

func newSummary(w io.Writer) *summary {
	return &summary{w: w, output: map[key][]string{}, builds: map[string][]string{}, shown: map[string]bool{}, failedN: map[string]int{}}
}

// read takes events until the end. A line that is no event (go's own words) is
// shown as it is.
func (s *summary) read(in io.Reader) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			var e event
			if jsonErr := json.Unmarshal([]byte(line), &e); jsonErr != nil {
				s.print(line)
			} else {
				s.take(e)
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read test events: %w", err)
		}
	}
}

func (s *summary) take(e event) {
	k := key{e.Package, e.Test}
	switch e.Action {
	case "output":
		s.output[k] = append(s.output[k], e.Output)
	case "build-output":
		s.builds[e.ImportPath] = append(s.builds[e.ImportPath], e.Output)
	case "pass", "fail", "skip":
		if e.Test == "" {
			s.endPackage(k, e)
		} else {
			s.endTest(k, e)
		}
		delete(s.output, k)
	}
}

func (s *summary) endTest(k key, e event) {
	if e.Elapsed >= slowSeconds && !strings.Contains(k.test, "/") {
		s.slow = append(s.slow, timed{k, e.Elapsed})
	}
	switch e.Action {
	case "pass":
		s.passed++
	case "fail":
		s.fail(k, s.output[k])
	case "skip":
		s.skipped = append(s.skipped, skip{k, reason(s.output[k])})
	}
}

func (s *summary) fail(k key, output []string) {
	s.failed = append(s.failed, k)
	s.failedN[k.pkg]++
	s.print("\nFAIL " + k.String() + "\n" + strings.Join(output, ""))
}

// endPackage shows the package's line. A package that failed although none of
// its tests did (it does not build, it panicked, it ran out of time) counts as
// one failure.
func (s *summary) endPackage(k key, e event) {
	if e.Action != "fail" {
		if e.Action == "pass" {
			s.print(fmt.Sprintf("ok   %s  %.1f s\n", k, e.Elapsed))
		}
		return
	}
	var output []string
	if e.FailedBuild != "" && !s.shown[e.FailedBuild] {
		s.shown[e.FailedBuild] = true
		output = append(output, s.builds[e.FailedBuild]...)
	}
	// What a test was in the middle of when the package ended.
	for _, open := range s.unfinished(k.pkg) {
		s.broken = true
		s.fail(open, s.output[open])
		delete(s.output, open)
	}
	output = append(output, s.output[k]...)
	if s.failedN[k.pkg] == 0 {
		s.broken = true
		s.fail(k, output)
		return
	}
	s.print(strings.Join(output, ""))
}

// unfinished is every test of a package, or of all where pkg is "", that began
// and did not end.
func (s *summary) unfinished(pkg string) []key {
	var open []key
	for k := range s.output {
		if k.test != "" && (pkg == "" || k.pkg == pkg) {
			open = append(open, k)
		}
	}
	slices.SortFunc(open, func(a, b key) int { return strings.Compare(a.String(), b.String()) })
	return open
}

// finish prints what failed, what was skipped and the counts, and gives the
// exit status.
func (s *summary) finish(strict bool) int {
	for _, open := range s.unfinished("") {
		s.fail(open, append(s.output[open], "did not end: go test itself was stopped\n"))
	}
	status := 0
	if len(s.failed) > 0 {
		status = 1
		s.print("\nFailed:\n")
	}
	for _, k := range s.failed {
		s.print("  " + k.String() + "\n")
	}
	if len(s.unsteady) > 0 {
		s.print("\nFailed, and passed when they ran again alone:\n")
	}
	for _, k := range s.unsteady {
		s.print("  " + k.String() + "\n")
	}
	if len(s.skipped) > 0 {
		s.print("\nSkipped:\n")
	}
	avoidable := 0
	for _, sk := range s.skipped {
		mark := "  "
		if strict && !strings.HasPrefix(sk.reason, "kernel has no ") && !labtest.OfAnotherRun(sk.reason) {
			mark = "! "
			avoidable++
		}
		s.print(mark + sk.String() + ": " + sk.reason + "\n")
	}
	if avoidable > 0 {
		status = 1
		s.print("\nIn CI as root only a kernel without a feature may skip a test, and a long one is left to make test-all or to another run: the lines marked ! fail this run.\n")
	}
	if s.passed+len(s.failed) == 0 {
		status = 1
		s.print("\nNo test ran.\n")
	}
	s.printSlow()
	s.print(fmt.Sprintf("\n%d passed, %d failed, %d skipped\n", s.passed, len(s.failed), len(s.skipped)))
	return status
}

// printSlow lists the tests that took longest.
func (s *summary) printSlow() {
	if len(s.slow) > 0 {
		s.print("\nSlowest:\n")
	}
	slices.SortStableFunc(s.slow, func(a, b timed) int { return cmp.Compare(b.seconds, a.seconds) })
	for _, t := range s.slow[:min(len(s.slow), mostSlow)] {
		s.print(fmt.Sprintf("  %4.0f s  %s\n", t.seconds, t))
	}
}

func (s *summary) print(text string) { _, _ = io.WriteString(s.w, text) }

func (k key) String() string {
	pkg := strings.TrimPrefix(k.pkg, "github.com/cnibench/cnibench/")
	if k.test == "" {
		return pkg
	}
	return pkg + " " + k.test
}

// logged is a line that a test logged: "    lab_test.go:12: why".
var logged = regexp.MustCompile(`^\s+\S+\.go:\d+: (.*)$`)

// reason is the last thing that a skipped test logged, in one line.
func reason(output []string) string {
	var words []string
	for _, line := range strings.Split(strings.Join(output, ""), "\n") {
		if m := logged.FindStringSubmatch(line); m != nil {
			words = []string{m[1]}
		} else if t := strings.TrimSpace(line); words != nil && t != "" && !strings.HasPrefix(t, "--- ") {
			words = append(words, t)
		}
	}
	if words == nil {
		return "no reason given"
	}
	return strings.Join(words, " ")
}
