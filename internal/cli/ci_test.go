package cli_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/labtest"
)

// gateCase is two results and what a gate must say of them.
type gateCase struct {
	name, base, new, baseline, failOn string
	status                            int
	verdict, says                     string
}

func gateCases() []gateCase {
	return []gateCase{
		{"passed", "results/base", "new", "result", "worse,broken", 0, "passed", "No regression was found"},
		{"undecided", "results/base", "new", "result", "", 5, "undecided", "To decide"},
		{"the newest base", "results", "new", "", "", 5, "undecided", "base: results/base"},
		{"worse", "results/base", "slow", "result", "", 3, "worse", "Regression"},
		{"refused", "results/kernel", "new", "result", "", 2, "refused", "--anyway"},
	}
}

// gateResults makes a folder with result directories: new, the same as slow with less
// throughput, a base like new, and one that was measured under another kernel.
func gateResults(t *testing.T) string {
	t.Helper()
	const recorded = "../result/testdata/v1"
	dir := t.TempDir()
	change := func(path, old, replacement string) {
		t.Helper()
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		changed := regexp.MustCompile(old).ReplaceAll(text, []byte(replacement))
		if string(changed) == string(text) {
			t.Fatalf("%s has no %s", path, old)
		}
		if err := os.WriteFile(path, changed, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"new", "slow", "results/base", "results/kernel"} {
		if err := os.CopyFS(filepath.Join(dir, name), os.DirFS(recorded)); err != nil {
			t.Fatal(err)
		}
	}
	change(filepath.Join(dir, "results/base/environment.json"), `"finished": "2026-11-21`, `"finished": "2026-11-25`)
	change(filepath.Join(dir, "slow/samples.jsonl"), `("(?:throughput_bits|transactions|packets)_per_second":)[0-9]+`, "${1}3")
	change(filepath.Join(dir, "results/kernel/environment.json"), `"kernel": "[^"]*"`, `"kernel": "7.0"`)
	return dir
}

// runGate runs a script of a template as the CI system does, and gives its output and
// exit status.
func runGate(t *testing.T, dir, script string, env []string) (string, int) {
	t.Helper()
	runner := exec.NewRunner()
	defer runner.Close()
	env = append(env, "PATH="+built+string(os.PathListSeparator)+os.Getenv("PATH"))
	res, err := runner.Run(t.Context(), exec.Cmd{Argv: []string{"sh", "-e", "-c", script}, Dir: dir, Env: env})
	if err != nil && res.ExitCode <= 0 {
		t.Fatal(err)
	}
	return string(res.Stdout) + string(res.Stderr), res.ExitCode
}

// TestGitHubAction runs the step of the action, with the inputs that a workflow gives
// and the action's own defaults.
func TestGitHubAction(t *testing.T) {
	t.Parallel()
	labtest.Slow(t)
	const folder = "../../examples/ci/github-action"
	var action struct {
		Inputs  map[string]struct{ Default string }
		Outputs map[string]struct{ Value string }
		Runs    struct {
			Steps []struct {
				ID, Run string
				Env     map[string]string
			}
		}
	}
	readYAML(t, filepath.Join(folder, "action.yml"), &action)
	if len(action.Runs.Steps) != 1 {
		t.Fatalf("%d steps", len(action.Runs.Steps))
	}
	step := action.Runs.Steps[0]
	path, err := filepath.Abs(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range gateCases() {
		t.Run(c.name, func(t *testing.T) {
			dir := gateResults(t)
			inputs := map[string]string{"base": c.base, "new": c.new}
			for name, value := range map[string]string{"baseline": c.baseline, "fail-on": c.failOn} {
				if value != "" {
					inputs[name] = value
				}
			}
			summary, output := filepath.Join(dir, "summary.md"), filepath.Join(dir, "output")
			env := []string{"GITHUB_ACTION_PATH=" + path, "GITHUB_STEP_SUMMARY=" + summary, "GITHUB_OUTPUT=" + output}
			used := map[string]bool{}
			for name, expression := range step.Env {
				input := strings.TrimSuffix(strings.TrimPrefix(expression, "${{ inputs."), " }}")
				value, given := inputs[input]
				if !given {
					value = action.Inputs[input].Default
				}
				used[input] = true
				env = append(env, name+"="+value)
			}
			if len(used) != len(action.Inputs) {
				t.Errorf("inputs %v, of which the step uses %v", action.Inputs, used)
			}
			said, status := runGate(t, dir, step.Run, env)
			if status != c.status || !strings.Contains(said, c.says) {
				t.Fatalf("exit status %d, want %d, and %q in:\n%s", status, c.status, c.says, said)
			}
			if want := "verdict=" + c.verdict + "\n"; !strings.Contains(contents(t, output), want) {
				t.Errorf("the outputs are %q, want %q", contents(t, output), want)
			}
			if c.verdict == "refused" {
				return
			}
			if text := contents(t, summary); !strings.HasPrefix(text, "## cnibench compare") {
				t.Errorf("the job's summary is %q", text)
			}
			if text := contents(t, filepath.Join(dir, "cnibench-gate", "junit.xml")); !strings.Contains(text, "<testsuite") {
				t.Errorf("junit.xml is %q", text)
			}
		})
	}
}

// TestGitLabTemplate runs the script of the template, line by line as a runner does.
func TestGitLabTemplate(t *testing.T) {
	t.Parallel()
	labtest.Slow(t)
	var template struct {
		Gate struct {
			Variables    map[string]string
			Script       []string
			AllowFailure struct {
				ExitCodes []int `json:"exit_codes"`
			} `json:"allow_failure"`
		} `json:".cnibench-gate"`
	}
	readYAML(t, "../../examples/ci/gitlab.yml", &template)
	if codes := template.Gate.AllowFailure.ExitCodes; len(codes) != 1 || codes[0] != 5 {
		t.Errorf("exit codes that only warn: %v", codes)
	}
	for _, c := range gateCases() {
		t.Run(c.name, func(t *testing.T) {
			dir := gateResults(t)
			values := map[string]string{"CNIBENCH_BASE": c.base, "CNIBENCH_NEW": c.new}
			for name, value := range template.Gate.Variables {
				values[name] = value
			}
			for name, value := range map[string]string{"CNIBENCH_BASELINE": c.baseline, "CNIBENCH_FAIL_ON": c.failOn} {
				if value != "" {
					values[name] = value
				}
			}
			var env []string
			for name, value := range values {
				env = append(env, name+"="+value)
			}
			said, status := runGate(t, dir, strings.Join(template.Gate.Script, "\n"), env)
			if status != c.status || !strings.Contains(said, c.says) {
				t.Fatalf("exit status %d, want %d, and %q in:\n%s", status, c.status, c.says, said)
			}
			if c.verdict == "refused" {
				return
			}
			if text := contents(t, filepath.Join(dir, "cnibench-gate", "junit.xml")); !strings.Contains(text, "<testsuite") {
				t.Errorf("junit.xml is %q", text)
			}
		})
	}
}

func readYAML(t *testing.T, path string, into any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(contents(t, path)), into); err != nil {
		t.Fatal(err)
	}
}

func contents(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
