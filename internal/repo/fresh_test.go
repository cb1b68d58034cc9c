package repo

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/labtest"
)

// emptyCache is a go that has downloaded nothing: it knows no module's folder until
// that is downloaded, as the real one, and builds nothing.
const emptyCache = `#!/bin/sh
case "$1 $2" in
"mod download") : >"$CACHE/downloaded" ;;
"list -m")
	case "$*" in
	*.Version*) echo v1.2.3 ;;
	*.Dir*) if [ -e "$CACHE/downloaded" ]; then echo "$CACHE"; else echo; fi ;;
	esac ;;
"build -o") : >"$3/daemon"; : >"$3/operator"; : >"$3/cilium-cni" ;;
*) echo "go $*: unknown to this test" >&2; exit 1 ;;
esac
`

// make cluster-binaries ended with "cp: cannot stat '/bpf'" on a machine that had
// never built Cilium.
func TestCiliumBuildsFromAnEmptyModuleCache(t *testing.T) {
	bash := labtest.Tool(t, "bash", "bash")
	dir, cache, to := t.TempDir(), t.TempDir(), t.TempDir()
	for _, folder := range []string{"bpf/tests", "pkg/k8s/apis/cilium.io/client/crds"} {
		if err := os.MkdirAll(filepath.Join(cache, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "go"), []byte(emptyCache), 0o755); err != nil {
		t.Fatal(err)
	}
	script, err := filepath.Abs(filepath.Join(root, "tools/cilium/build.sh"))
	if err != nil {
		t.Fatal(err)
	}
	r := exec.NewRunner()
	t.Cleanup(r.Close)
	_, err = r.Run(t.Context(), exec.Cmd{Argv: []string{bash, script, to}, Dir: filepath.Dir(script),
		Env: []string{"PATH=" + dir + ":" + os.Getenv("PATH"), "CACHE=" + cache}})
	if err != nil {
		t.Fatal(err)
	}
	for _, made := range []string{"cilium-agent", "cilium-operator", "cilium-cni", "cilium-bpf", "cilium-crds"} {
		if _, err := os.Stat(filepath.Join(to, made)); err != nil {
			t.Error(err)
		}
	}
}

// make cluster-binaries ended at the first folder of tools/ that has no program of a cluster,
// and built none of those after it.
func TestClusterBinariesBuildsWhatHasABuildScript(t *testing.T) {
	tree, cache := t.TempDir(), t.TempDir()
	for path, text := range map[string]string{
		"scripts/cluster-binaries.sh": read(t, "scripts/cluster-binaries.sh"),
		"tools/agent/build.sh":        `: >"$1/agent"`,
		"tools/packager/main.go":      "package main",
		"tools/worker/build.sh":       `: >"$1/worker"`,
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(tree, path)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(tree, path), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r := exec.NewRunner()
	t.Cleanup(r.Close)
	_, err := r.Run(t.Context(), exec.Cmd{Argv: []string{labtest.Tool(t, "bash", "bash"), filepath.Join(tree, "scripts/cluster-binaries.sh")},
		Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + cache, "CNIBENCH_BIN_DIR=" + cache}})
	if err != nil {
		t.Fatal(err)
	}
	for _, made := range []string{"agent", "worker"} {
		if _, err := os.Stat(filepath.Join(cache, "bin", made)); err != nil {
			t.Error(err)
		}
	}
}

// The scripts that take long refuse an argument that they do not know, before they do
// anything.
func TestLongScriptsRefuseUnknownArguments(t *testing.T) {
	bash := labtest.Tool(t, "bash", "bash")
	r := exec.NewRunner()
	t.Cleanup(r.Close)
	for _, script := range []string{"fresh.sh", "race.sh", "dist-test.sh"} {
		res, err := r.Run(t.Context(), exec.Cmd{Argv: []string{bash, filepath.Join(root, "scripts", script), "-everything"}})
		if err == nil || res.ExitCode != 2 || !strings.Contains(string(res.Stderr), "unknown argument -everything") {
			t.Errorf("%s: status %d, %v: %s", script, res.ExitCode, err, res.Stderr)
		}
	}
}
