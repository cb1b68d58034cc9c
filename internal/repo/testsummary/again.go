package main

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// mostAgain is how many tests may run once more. Where more fail, the cause is not one slow
// moment.
const mostAgain = 5

// again runs the tests that failed once more, one after the other. What passes then is no
// failure: it and its subtests move from failed to unsteady. Nothing runs again where a
// package ended in the middle of its tests or did not build, because then it is not known
// what failed.
func (s *summary) again(run runner) error {
	tests := s.failedTests()
	if s.broken || len(tests) == 0 || len(tests) > mostAgain {
		return nil
	}
	s.print("\nRunning again, alone, what failed:\n")
	for _, k := range tests {
		if err := s.once(k, run); err != nil {
			return err
		}
	}
	return nil
}

// failedTests are the tests that failed, without subtests.
func (s *summary) failedTests() []key {
	var tests []key
	for _, k := range s.failed {
		k.test, _, _ = strings.Cut(k.test, "/")
		if !slices.Contains(tests, k) {
			tests = append(tests, k)
		}
	}
	return tests
}

// once runs one test again.
func (s *summary) once(k key, run runner) error {
	events, err := run("-run", "^"+regexp.QuoteMeta(k.test)+"$", k.pkg)
	second := newSummary(s.w)
	if err == nil {
		err = second.read(bytes.NewReader(events))
	}
	if err != nil {
		return fmt.Errorf("run %s again: %w", k, err)
	}
	if len(second.failed) > 0 || len(second.unfinished("")) > 0 || second.passed == 0 {
		return nil
	}
	before := len(s.failed)
	s.failed = slices.DeleteFunc(s.failed, func(f key) bool {
		test, _, _ := strings.Cut(f.test, "/")
		return f.pkg == k.pkg && test == k.test
	})
	s.passed += before - len(s.failed)
	s.unsteady = append(s.unsteady, k)
	return nil
}
