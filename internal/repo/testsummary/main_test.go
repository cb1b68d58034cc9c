package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

// TestSummary reads what go test -json printed for packages that do not build,
// panic, run out of time, fail in TestMain, skip, and pass.
func TestSummary(t *testing.T) {
	for _, c := range []struct {
		name   string
		strict bool
		status int
	}{
		{"fine", false, 0},
		{"fine-in-ci", true, 0},
		{"skips", false, 0},
		{"skips-in-ci", true, 1},
		{"failures", false, 1},
		{"stopped", false, 1},
		{"empty", false, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			in, err := os.Open(filepath.Join("testdata", strings.TrimSuffix(c.name, "-in-ci")+".json"))
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			var stdout, stderr strings.Builder
			if status := run(in, &stdout, &stderr, c.strict, nil); status != c.status {
				t.Errorf("status %d, want %d", status, c.status)
			}
			if stderr.Len() > 0 {
				t.Errorf("stderr: %s", stderr.String())
			}
			golden := filepath.Join("testdata", c.name+".txt")
			if *update {
				if err := os.WriteFile(golden, []byte(stdout.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), stdout.String()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestAgain runs what failed once more: a test that passes then is listed and does not fail
// the run, one that fails again does, and where a package broke or much failed nothing runs
// again.
func TestAgain(t *testing.T) {
	event := func(action, pkg, test string) string {
		return fmt.Sprintf(`{"Action":%q,"Package":%q,"Test":%q}`+"\n", action, pkg, test)
	}
	packageEnds := func(action, pkg string) string {
		return fmt.Sprintf(`{"Action":%q,"Package":%q}`+"\n", action, pkg)
	}
	passes := event("pass", "p", "TestA/one") + event("pass", "p", "TestA") + packageEnds("pass", "p")
	fails := event("fail", "p", "TestA/one") + event("fail", "p", "TestA") + packageEnds("fail", "p")
	many := ""
	for i := range mostAgain + 1 {
		many += event("fail", "p", fmt.Sprintf("Test%d", i))
	}
	for _, c := range []struct {
		name, first, second string
		status, runs        int
		count               string
	}{
		{"passes then", fails, passes, 0, 1, "2 passed, 0 failed"},
		{"fails again", fails, fails, 1, 1, "0 passed, 2 failed"},
		{"does not run then", fails, packageEnds("pass", "p"), 1, 1, "0 passed, 2 failed"},
		{"nothing failed", passes, fails, 0, 0, "2 passed, 0 failed"},
		{"the package broke", event("output", "p", "TestB") + event("fail", "p", "TestA") + packageEnds("fail", "p"), passes, 1, 0, "0 passed, 2 failed"},
		{"much failed", many + packageEnds("fail", "p"), passes, 1, 0, fmt.Sprintf("0 passed, %d failed", mostAgain+1)},
	} {
		t.Run(c.name, func(t *testing.T) {
			runs := 0
			again := func(args ...string) ([]byte, error) {
				runs++
				if want := []string{"-run", "^TestA$", "p"}; !slices.Equal(args, want) {
					t.Errorf("ran %q, want %q", args, want)
				}
				return []byte(c.second), nil
			}
			var stdout, stderr strings.Builder
			status := run(strings.NewReader(c.first), &stdout, &stderr, true, again)
			if status != c.status || runs != c.runs || stderr.Len() > 0 {
				t.Errorf("status %d after %d more runs, want %d after %d; stderr %q", status, runs, c.status, c.runs, stderr.String())
			}
			if !strings.Contains(stdout.String(), c.count) || (c.status == 0 && c.runs > 0) != strings.Contains(stdout.String(), "passed when they ran again alone:\n  p TestA\n") {
				t.Errorf("printed\n%s", stdout.String())
			}
		})
	}
}

// TestAgainCommand runs a real command, and one that does not exist.
func TestAgainCommand(t *testing.T) {
	printed, err := output(t.Context(), []string{"sh", "-c", "echo one; exit 3"})
	if err != nil || string(printed) != "one\n" {
		t.Errorf("printed %q, %v", printed, err)
	}
	if _, err := output(t.Context(), []string{"./no-such-program"}); err == nil {
		t.Error("a command that cannot start has no error")
	}
}
