package cli_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/probe"
)

// built is the folder with the real cnibench, built once for all tests of this
// package: agents and CNI plugins are this program started again, so a test
// binary in its place would not do.
var built string

func TestMain(m *testing.M) { os.Exit(run(m)) }

// besideEachOther is how many tests run at the same time unless -parallel says otherwise.
// Most of them wait: for samples of a fixed length, for a fault to be noticed. Tests of a
// farm of hosts are not among them: Ansible keeps all processors busy.
const besideEachOther = "2"

func run(m *testing.M) int {
	if len(os.Args) == 4 && os.Args[1] == relayName {
		return relay(os.Args[2], os.Args[3])
	}
	if err := manyAtOnce(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if os.Mkdir("/run/sshd", 0o755) == nil { // what the service of sshd would make
		defer os.Remove("/run/sshd")
	}
	dir, err := os.MkdirTemp("", "cnibench-test-")
	if err == nil {
		defer os.RemoveAll(dir)
		err = os.Chmod(dir, 0o755) // another user runs it too
	}
	if err == nil {
		runner := exec.NewRunner()
		defer runner.Close()
		_, err = runner.Run(context.Background(), exec.Cmd{
			Argv: []string{"go", "build", "-trimpath", "-buildvcs=false", "-o", filepath.Join(dir, "cnibench"), "../.."},
			Env:  []string{"CGO_ENABLED=0"},
		})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "build cnibench:", err)
		return 1
	}
	built = dir
	return m.Run()
}

// manyAtOnce sets -parallel where the command line does not.
func manyAtOnce() error {
	const name = "test.parallel"
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == name })
	if given {
		return nil
	}
	return flag.Set(name, besideEachOther)
}

// The command line is specified by testdata/script/*.txtar.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "../../testdata/script",
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", built+string(os.PathListSeparator)+os.Getenv("PATH")+":/usr/sbin:/sbin")
			env.Setenv("LC_ALL", "C.UTF-8")
			examples, err := filepath.Abs("../../examples")
			if err != nil {
				return err
			}
			env.Setenv("EXAMPLES", examples)
			recorded, err := filepath.Abs("../result/testdata/v1")
			if err != nil {
				return err
			}
			env.Setenv("RECORDED", recorded)
			// Scripts run side by side: each sees its own labs alone.
			env.Setenv("CNIBENCH_STATE_DIR", filepath.Join(env.WorkDir, "labs"))
			env.Defer(func() {
				down := exec.Cmd{Argv: []string{filepath.Join(built, "cnibench"), "lab", "down", "--all"}, Env: env.Vars, CleanEnv: true}
				runner := exec.NewRunner()
				defer runner.Close()
				if _, err := runner.Run(context.Background(), down); err != nil {
					fmt.Fprintf(os.Stderr, "after a script: %v\n", err)
				}
			})
			return os.Chmod(env.WorkDir, 0o777) // for scripts that give root up
		},
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "root":
				return os.Getuid() == 0, nil
			case "lab": // as labtest.Root: make quick builds no labs and sends no traffic
				return os.Getuid() == 0 && !testing.Short(), nil
			case "stacks": // the kernel's can be sampled here
				return sampleStacks() == nil, nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){"exits": exits},
	})
}

func sampleStacks() error {
	s := probe.OpenStacks(probe.Roots{Proc: "/proc", Sys: "/sys"})
	return errors.Join(s.Start(), s.Close())
}

// exits runs a command that must end with a status: exits N COMMAND [ARG ...].
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits N COMMAND [ARG ...]")
	}
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit interface{ ExitCode() int }
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if strconv.Itoa(got) != args[0] {
		ts.Fatalf("exit status %d, want %s", got, args[0])
	}
}
