package repo

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/labtest"
)

// TestWeb builds the report's script, as make web does, and compares it
// with the committed one.
func TestWeb(t *testing.T) {
	if testing.Short() {
		t.Skip("asks the npm registry, and is left out by -short: run make test")
	}
	labtest.Tool(t, "node", "nodejs")
	npm := labtest.Tool(t, "npm", "npm")
	dir := t.TempDir()
	web := filepath.Join(dir, "web")
	for _, name := range []string{"package.json", "package-lock.json", "build.mjs"} {
		copyTo(t, filepath.Join("web", name), filepath.Join(web, name))
	}
	if err := os.CopyFS(filepath.Join(web, "src"), os.DirFS(filepath.Join(root, "web", "src"))); err != nil {
		t.Fatal(err)
	}
	runner := exec.NewRunner()
	t.Cleanup(runner.Close)
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	for _, argv := range [][]string{{npm, "ci", "--no-audit", "--no-fund"}, {npm, "run", "--silent", "build", "--", dir}} {
		if _, err := runner.Run(ctx, exec.Cmd{Argv: argv, Dir: web}); err != nil {
			t.Fatal(err)
		}
	}
	for made, committed := range map[string]string{"report.js": "internal/report/format/templates/report.js", "LICENSES.txt": "web/LICENSES.txt"} {
		got, err := os.ReadFile(filepath.Join(dir, made))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != read(t, committed) {
			t.Errorf("%s is not what make web makes of web/: run make web, and commit it", committed)
		}
	}
}

func copyTo(t *testing.T, from, to string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, []byte(read(t, from)), 0o644); err != nil {
		t.Fatal(err)
	}
}
