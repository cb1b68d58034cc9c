// Package labtest says what a test needs of the machine. Where that is missing
// the test is skipped with the reason; in CI as root (CNIBENCH_CI=1) only a
// kernel that lacks a feature may skip a test, or Long, all else fails it.
package labtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// CI reports whether a skip that the machine's owner could have avoided fails.
func CI() bool { return os.Getenv("CNIBENCH_CI") == "1" && os.Getuid() == 0 }

// VMEnv is set for tests that run in the virtual machine of package vm.
const VMEnv = "CNIBENCH_VM"

// InVM reports whether this is that virtual machine.
func InVM() bool { return os.Getenv(VMEnv) != "" }

// Root skips a test that needs root where there is none, and with -short, as
// such tests make namespaces and send traffic.
func Root(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs root, and is left out by -short: run make test")
	}
	if os.Getuid() != 0 {
		t.Skip("needs root: run make test as root")
	}
}

// Quick reports whether this is `make quick`: only tests that need nothing of the machine.
func Quick() bool { return os.Getenv("CNIBENCH_QUICK") == "1" }

// Slow leaves a test that waits for seconds out of `make quick`.
func Slow(t testing.TB) {
	t.Helper()
	if Quick() {
		t.Skip("takes seconds, and is left out of make quick: run make test")
	}
}

// longReason is why Long skips a test.
const longReason = "long: make test-all runs it"

// Long skips a test that takes long, except in `make test-all` (CNIBENCH_ALL=1). A shorter one
// proves the same, or most of it.
func Long(t testing.TB) {
	t.Helper()
	if os.Getenv("CNIBENCH_ALL") != "1" {
		t.Skip(longReason)
	}
}

// Part is a part of the long tests that `make test` runs. In CI the parts take turns.
type Part string

// Clusters are the tests in a real Kubernetes, Studies those of the studies and of published
// tools, Hosts those with hosts over SSH, and VM those in the virtual machine.
const (
	Clusters Part = "clusters"
	Studies  Part = "studies"
	Hosts    Part = "hosts"
	VM       Part = "vm"
)

// parts are all of them, in the order of their turns.
func parts() []Part { return []Part{Clusters, Studies, Hosts, VM} }

func (p Part) skipped() string {
	return fmt.Sprintf("long: CNIBENCH_TURN=%s .ci/run has it, and make test", string(p))
}

// OfAnotherRun reports whether that is why Long or Turn skip a test: the machine lacks nothing.
func OfAnotherRun(reason string) bool {
	return reason == longReason || slices.ContainsFunc(parts(), func(p Part) bool { return reason == p.skipped() })
}

// Turn skips a test of a part in a run of CI that has another one (CNIBENCH_TURN, which .ci/run
// sets). A run without turns has all parts.
func Turn(t testing.TB, part Part) {
	t.Helper()
	if now := os.Getenv("CNIBENCH_TURN"); now != "" && now != string(part) {
		t.Skip(part.skipped())
	}
}

// Built skips a test that needs a program of `make cluster-binaries` that is not at path; in CI
// it fails. `make test` builds all but Cilium's, which take as long as all others: without them,
// it leaves the test to `make test-all`.
func Built(t testing.TB, path string) {
	t.Helper()
	_, err := os.Stat(path)
	if err == nil {
		return
	}
	program := filepath.Base(path)
	if strings.HasPrefix(program, "cilium-") {
		Long(t)
	}
	if CI() {
		t.Fatalf("%s is missing in CI: make cluster-binaries (%v)", program, err)
	}
	t.Skipf("no tool %s: make cluster-binaries", program)
}

// Tool skips a test that needs a program of a Debian package; in CI it fails. `make quick`
// leaves such tests out.
func Tool(t testing.TB, name, debianPackage string) string {
	t.Helper()
	if Quick() {
		t.Skipf("needs %s, and is left out by make quick: run make test", name)
	}
	path, err := exec.LookPath(name)
	if err == nil {
		return path
	}
	if CI() {
		t.Fatalf("%s is missing in CI: apt-get install %s", name, debianPackage)
	}
	t.Skipf("needs %s: apt-get install %s", name, debianPackage)
	return ""
}

// Feature skips a test that needs something of the kernel: have is the
// outcome of its probe. In the virtual machine it fails: that kernel has all.
func Feature(t testing.TB, name string, have error) {
	t.Helper()
	if have != nil {
		if InVM() {
			t.Fatalf("the kernel of the virtual machine has no %s: %v", name, have)
		}
		t.Skipf("kernel has no %s: %v", name, have)
	}
}

// OpenTempDir is a test's own folder that every user may enter, as tools that cnibench
// runs as nobody must: testing.T's own is closed to others.
func OpenTempDir(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for _, path := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
