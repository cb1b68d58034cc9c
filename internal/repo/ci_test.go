package repo

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/labtest"
)

// TestCIReportsEveryCheck: .ci/run goes on after a check that failed, names each of those at
// the end, shows the output of each check in one piece, and that of the tests last.
func TestCIReportsEveryCheck(t *testing.T) {
	bash := labtest.Tool(t, "bash", "bash")
	labtest.Tool(t, "git", "git")
	tree, programs := t.TempDir(), t.TempDir()
	write := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(tree, ".ci/run"), read(t, ".ci/run"))
	// Two lines with a pause between them, in which other checks print.
	stub := func(name string) string {
		return fmt.Sprintf("#!/bin/sh\necho \"begin %s $*\"; sleep 0.05; echo \"end %s $*\"\ncase \"%s $*\" in $FAILING) exit 1 ;; esac\n", name, name, name)
	}
	for _, name := range []string{"install-deps", "fuzz", "race", "dist-test", "supply-chain"} {
		write(filepath.Join(tree, "scripts", name+".sh"), stub(name))
	}
	write(filepath.Join(programs, "go"), stub("go"))
	write(filepath.Join(programs, "make"), stub("make"))
	write(filepath.Join(programs, "gofmt"), "#!/bin/sh\n")
	r := exec.NewRunner()
	t.Cleanup(r.Close)
	run := func(turn, failing string) exec.Result {
		t.Helper()
		res, _ := r.Run(t.Context(), exec.Cmd{Argv: []string{bash, filepath.Join(tree, ".ci/run")},
			Env: []string{"PATH=" + programs + ":" + os.Getenv("PATH"), "HOME=" + tree, "FAILING=" + failing, "CNIBENCH_TURN=" + turn}})
		return res
	}
	if _, err := r.Run(t.Context(), exec.Cmd{Argv: []string{"git", "init", "-q", tree}}); err != nil {
		t.Fatal(err)
	}
	for turn, own := range map[string][]string{
		"clusters": {"go vet ./..."}, "studies": {"make lint", "race quick", "fuzz rotation"},
		"hosts": {"go vet ./...", "dist-test"}, "vm": {"make lint", "make site", "fuzz rotation"},
	} {
		res := run(turn, "none")
		out := string(res.Stdout)
		if res.ExitCode != 0 {
			t.Errorf("%s: all checks pass, status %d:\n%s%s", turn, res.ExitCode, out, res.Stderr)
		}
		lines := strings.Split(strings.TrimSpace(out), "\n")
		for i, line := range lines {
			if what, is := strings.CutPrefix(line, "begin "); is && (i+1 == len(lines) || lines[i+1] != "end "+what) {
				t.Errorf("%s: the output of %s is not in one piece:\n%s", turn, what, out)
			}
		}
		if !regexp.MustCompile(`end make test\n== \d+ s\n$`).MatchString(out) {
			t.Errorf("%s: the tests are not last:\n%s", turn, out)
		}
		for _, check := range []string{"make lint", "scripts/race.sh quick", "scripts/dist-test.sh", "scripts/fuzz.sh rotation", "site"} {
			here := slices.ContainsFunc(own, func(o string) bool {
				return strings.Contains(check, strings.Fields(strings.TrimPrefix(o, "make "))[0])
			})
			if named := strings.Contains(out, "== not in this run: "+check+" ("); named == here {
				t.Errorf("%s: that it runs no %s is named: %v:\n%s", turn, check, named, out)
			}
		}
		if strings.Contains(out, "not in this run: go vet") {
			t.Errorf("%s: go vet is said to be left out, and make lint has its checks:\n%s", turn, out)
		}
		for _, failing := range append([]string{"go mod tidy -diff", "supply-chain licences", "make test"}, own...) {
			res := run(turn, failing+"*")
			if !strings.Contains(string(res.Stderr), "failed: ") || res.ExitCode != 1 || strings.Count(string(res.Stderr), "\n") != 1 {
				t.Errorf("%s: %s fails: status %d, %q", turn, failing, res.ExitCode, res.Stderr)
			}
			if got := strings.Count(string(res.Stdout), "begin "); got != strings.Count(out, "begin ") {
				t.Errorf("%s: %s fails: %d checks ran, want %d", turn, failing, got, strings.Count(out, "begin "))
			}
		}
	}
	if res := run("sun", "none"); res.ExitCode != 2 || !strings.Contains(string(res.Stderr), "want one of clusters studies hosts vm") {
		t.Errorf("a part that does not exist: status %d, %q", res.ExitCode, res.Stderr)
	}
}
