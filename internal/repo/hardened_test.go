package repo

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/labtest"
)

// script runs one of scripts/ with programs that stand in for those of the machine.
func script(t *testing.T, programs map[string]string, env []string, argv ...string) (exec.Result, error) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range programs {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	r := exec.NewRunner()
	t.Cleanup(r.Close)
	argv = append([]string{labtest.Tool(t, "bash", "bash"), filepath.Join(root, "scripts", argv[0])}, argv[1:]...)
	return r.Run(t.Context(), exec.Cmd{Argv: argv, Env: append([]string{"PATH=" + dir + ":" + os.Getenv("PATH"), "HOME=" + dir, "BIN=" + dir}, env...)})
}

var fuzzTarget = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(`)

// fuzzTargets are those of the tree, as fuzz.sh names them.
func fuzzTargets(t *testing.T) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for _, s := range sources(t) {
		if s.test {
			for _, m := range fuzzTarget.FindAllStringSubmatch(read(t, s.path), -1) {
				all["./"+s.dir+" "+m[1]] = true
			}
		}
	}
	return all
}

// A target that the script does not find is never run.
func TestFuzzFindsEveryTarget(t *testing.T) {
	want := fuzzTargets(t)
	res, err := script(t, nil, nil, "fuzz.sh", "list")
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Split(strings.TrimSpace(string(res.Stdout)), "\n")
	for _, target := range got {
		if !want[target] {
			t.Errorf("%s is listed, and no such target exists", target)
		}
		delete(want, target)
	}
	for target := range want {
		t.Errorf("%s is not listed", target)
	}
}

// Each target fails an input that takes too long or too much memory.
func TestFuzzTargetsAreBounded(t *testing.T) {
	body := regexp.MustCompile(`f\.Fuzz\(func\(t \*testing\.T, .*\{\n(.*)\n`)
	found := 0
	for _, s := range sources(t) {
		if !s.test || s.dir == "internal/labtest/fuzzed" {
			continue
		}
		for _, m := range body.FindAllStringSubmatch(read(t, s.path), -1) {
			found++
			if strings.TrimSpace(m[1]) != "defer fuzzed.Within(t)()" {
				t.Errorf("%s: a fuzz target does not begin with `defer fuzzed.Within(t)()`", s.path)
			}
		}
	}
	if want := len(fuzzTargets(t)); found != want {
		t.Errorf("%d targets seen, want %d", found, want)
	}
}

// The rotation of enough days has run every target.
func TestFuzzRotationReachesEveryTarget(t *testing.T) {
	want := fuzzTargets(t)
	days := len(want)/2 + 1
	for day := range days {
		res, err := script(t, map[string]string{"go": "exit 0"}, []string{"FUZZ_DAY=" + strconv.Itoa(day)}, "fuzz.sh", "rotation")
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(res.Stdout)) {
			fields := strings.Split(strings.TrimSpace(line), "\t")
			if fields[0] != "ok" {
				t.Errorf("day %d: %s", day, line)
			}
			delete(want, fields[len(fields)-1])
		}
	}
	for target := range want {
		t.Errorf("%s is never run in %d days", target, days)
	}
}

// A target that fails makes the script fail, after it has run the others.
func TestFuzzFailsWithATarget(t *testing.T) {
	for _, beside := range []string{"1", "3"} {
		res, err := script(t, map[string]string{"go": `case "$*" in *FuzzLine*) echo boom; exit 1 ;; esac`}, []string{"FUZZTIME=1s", "FUZZ_BESIDE=" + beside}, "fuzz.sh", "all")
		out := string(res.Stdout)
		if err == nil || res.ExitCode != 1 || !strings.Contains(out, "boom\nFAILED\t") || strings.Count("\n"+out, "\nok\t") != len(fuzzTargets(t))-1 {
			t.Errorf("%s at a time: status %d (%v):\n%s", beside, res.ExitCode, err, out)
		}
	}
}

// Go may fail a target that ran until its time was over (golang/go#75804). Only that is no failure.
func TestFuzzKnowsTheEndOfItsTime(t *testing.T) {
	const over = `printf 'fuzz: elapsed: 10s, execs: 7 (0/sec)\n--- FAIL: FuzzLine (10.15s)\n    context deadline exceeded\n'; `
	for name, c := range map[string]struct {
		prints string
		status int
	}{
		"its time was over": {over, 0},
		"an input failed":   {over + `echo '    Failing input written to testdata/fuzz/FuzzLine/1'; `, 1},
		"it ended early":    {over + `echo 'panic: boom'; `, 1},
		"another deadline":  {`printf -- '--- FAIL: FuzzLine (0.15s)\n    --- FAIL: FuzzLine (0.00s)\n        line_test.go:1: context deadline exceeded\n'; `, 1},
		"two failures":      {over + `printf -- '--- FAIL: TestMain (0.15s)\n    boom\n'; `, 1},
	} {
		res, err := script(t, map[string]string{"go": c.prints + "exit 1"}, []string{"FUZZTIME=1s"}, "fuzz.sh", "one", "./internal/agent", "FuzzLine")
		out := string(res.Stdout)
		if res.ExitCode != c.status || (err == nil) != (c.status == 0) || strings.HasPrefix(out, "ok\t7 executions\t") != (c.status == 0) {
			t.Errorf("%s: status %d (%v), want %d:\n%s", name, res.ExitCode, err, c.status, out)
		}
	}
}

// What could not be looked up is neither a finding nor a clean bill.
func TestSupplyChainSaysWhatItCouldNotCheck(t *testing.T) {
	const report, refused = `echo '{"auditReportVersion":2}'`, `echo '{"message":"405"}'; exit 1`
	for name, c := range map[string]struct {
		check, npm string
		status     int
		want       string
	}{
		"all is well":    {"exit 0", report, 0, "no finding"},
		"no database":    {"echo govulncheck: fetching vulnerabilities: no such host; exit 1", report, 4, "NOT CHECKED: vulnerabilities of Go modules"},
		"no audit":       {"exit 0", refused, 4, "NOT CHECKED: vulnerabilities of npm packages"},
		"vulnerable":     {"exit 3", refused, 1, "FAILED: vulnerabilities of Go modules"},
		"it breaks":      {"echo no packages; exit 1", report, 1, "FAILED: govulncheck failed"},
		"vulnerable npm": {"exit 0", report + "; exit 1", 1, "FAILED: vulnerabilities of npm packages"},
	} {
		t.Run(name, func(t *testing.T) {
			programs := map[string]string{
				"go":  `printf '#!/bin/sh\n%s\n' "$CHECK" >"$BIN/govulncheck"; chmod +x "$BIN/govulncheck"`,
				"npm": c.npm,
			}
			res, _ := script(t, programs, []string{"CHECK=" + c.check}, "supply-chain.sh", "vulnerabilities")
			if out := string(res.Stdout) + string(res.Stderr); res.ExitCode != c.status || !strings.Contains(out, c.want) {
				t.Errorf("status %d, want %d: %s", res.ExitCode, c.status, out)
			}
		})
	}
}

// TestSurviveScript: the flags of survive.sh reach the test that it runs.
func TestSurviveScript(t *testing.T) {
	programs := map[string]string{"id": "echo 0", "go": `echo "$*" "$CNIBENCH_SURVIVE_KILLS" "$CNIBENCH_SURVIVE_SEED" "$CNIBENCH_SURVIVE_SECONDS"`}
	for want, args := range map[string][]string{
		"-run ^TestSurvive$ ./internal/cli 1000  ":     nil,
		"-run ^TestSurvive$ ./internal/cli 7 8 9":      {"-n", "7", "-seed", "8", "-for", "9"},
		"-run ^TestSurvive$/^3$ ./internal/cli 10 8  ": {"-seed", "8", "-n", "10", "-only", "3"},
	} {
		res, err := script(t, programs, nil, append([]string{"survive.sh"}, args...)...)
		if out := string(res.Stdout); err != nil || !strings.HasSuffix(strings.TrimSpace(out), strings.TrimSpace(want)) {
			t.Errorf("%v: %q (%v), want %q", args, out, err, want)
		}
	}
	for _, args := range [][]string{{"-n"}, {"-n", "many"}, {"-x", "1"}} {
		if res, err := script(t, programs, nil, append([]string{"survive.sh"}, args...)...); err == nil || res.ExitCode != 2 {
			t.Errorf("%v: status %d", args, res.ExitCode)
		}
	}
}
