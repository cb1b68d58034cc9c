package vm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/labtest"
)

// timeout bounds tests in a guest. They end on their own a minute before, and say
// what they were in the middle of.
const timeout = 30 * time.Minute

// Tests boots Debian's stock kernel and runs tests of the calling test's package in there,
// those that -test.run takes for the pattern. Each is shown as a subtest with
// its output. One that is skipped there fails: the kernel has every feature that
// tests ask for, and the tools are those of this machine.
func Tests(t *testing.T, pattern string) {
	t.Helper()
	TestsIn(t, ForTests(t), pattern)
}

// TestsOnBackports does the same with the kernel of Debian's backports.
func TestsOnBackports(t *testing.T, pattern string) {
	t.Helper()
	TestsIn(t, ForTestsOnBackports(t), pattern)
}

// TestsIn does the same in a machine of ForTests or ForTestsOnBackports, which the caller may
// have given more memory.
func TestsIn(t *testing.T, m Machine, pattern string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	var out bytes.Buffer
	runErr := m.Run(ctx, Program{
		Path: self, Dir: dir, Env: []string{labtest.VMEnv + "=1", "CNIBENCH_CI=1"},
		Args: []string{"-test.v=test2json", "-test.timeout=" + (timeout - time.Minute).String(), "-test.run=" + pattern},
	}, &out)
	var ended *ExitError
	if runErr != nil && !errors.As(runErr, &ended) {
		t.Error(runErr)
	}
	toJSON := exec.Cmd{Argv: []string{"go", "tool", "test2json"}, Stdin: &out}
	events, err := m.Runner.Run(t.Context(), toJSON)
	if err != nil {
		t.Fatal(err)
	}
	all, rest, err := readTests(events.Stdout)
	if err != nil {
		t.Error(err)
	}
	if failed := show(t, all); !failed && runErr != nil || len(all) == 0 {
		t.Errorf("%d tests ran in the virtual machine, %v; its other output:\n%s", len(all), runErr, rest)
	}
}

// fetcher gives a kernel, from the cache or into it.
type fetcher func(ctx context.Context, r *exec.Runner, cache string) (Kernel, error)

// ForTests gives a machine of two CPUs with Debian's stock kernel. A test that lacks something
// for it is skipped, and fails in CI.
func ForTests(t testing.TB) Machine {
	t.Helper()
	return machineFor(t, FetchKernel)
}

// ForTestsOnBackports gives the same machine with the kernel of Debian's backports.
func ForTestsOnBackports(t testing.TB) Machine {
	t.Helper()
	return machineFor(t, FetchBackports)
}

func machineFor(t testing.TB, fetch fetcher) Machine {
	t.Helper()
	if labtest.InVM() {
		t.Fatal("a virtual machine in a virtual machine: the pattern takes this test too")
	}
	labtest.Turn(t, labtest.VM)
	labtest.Root(t)
	labtest.Tool(t, Qemu, QemuPackage)
	labtest.Tool(t, busybox, "busybox-static")
	labtest.Tool(t, "depmod", "kmod")
	r := exec.NewRunner()
	t.Cleanup(r.Close)
	cache, err := CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	kernel, err := fetch(t.Context(), r, cache)
	if err != nil && !labtest.CI() {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return Machine{Runner: r, Kernel: kernel, CPUs: 2, MemoryMiB: 2048}
}

// CacheDir is where kernels are kept.
func CacheDir() (string, error) {
	dir, err := os.UserCacheDir()
	return filepath.Join(dir, "cnibench", "kernels"), err
}

// test is one that ran inside.
type test struct {
	name   string
	action string // "pass", "fail", "skip"; "" where it did not end
	said   strings.Builder
}

// readTests reads what go tool test2json prints. What no test said is the rest.
func readTests(events []byte) (all []*test, rest string, err error) {
	byName := map[string]*test{"": {}}
	for line := range bytes.Lines(events) {
		var e struct{ Action, Test, Output string }
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, "", fmt.Errorf("%w in what go tool test2json printed: %s", err, line)
		}
		one := byName[e.Test]
		if one == nil {
			one = &test{name: e.Test}
			byName[e.Test] = one
			all = append(all, one)
		}
		switch e.Action {
		case "output":
			one.said.WriteString(e.Output)
		case "pass", "fail", "skip":
			one.action = e.Action
		}
	}
	return all, byName[""].said.String(), nil
}

// show makes each a subtest and reports whether one failed.
func show(t *testing.T, all []*test) (failed bool) {
	for _, one := range all {
		fine := t.Run(one.name, func(t *testing.T) {
			t.Log("\n" + one.said.String())
			switch one.action {
			case "pass":
			case "skip":
				t.Error("skipped in a kernel that has what it needs")
			case "":
				t.Error("did not end")
			default:
				t.Fail()
			}
		})
		failed = failed || !fine
	}
	return failed
}
