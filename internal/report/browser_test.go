package report

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/labtest"
)

// TestHTMLInBrowser opens reports in a real browser: nothing may be said on
// its console, no script may run, and every table must be there.
func TestHTMLInBrowser(t *testing.T) {
	chromium := labtest.Tool(t, "chromium", "chromium")
	runner := exec.NewRunner()
	t.Cleanup(runner.Close)
	for name, in := range map[string]Input{"normal": normal(), "empty": inputs()["empty"], "hostile": hostile()} {
		t.Run(name, func(t *testing.T) {
			page := render(t, "html", in, Options{})
			dir, err := os.MkdirTemp("", "cnb-report-")
			if err != nil {
				t.Fatal(err)
			}
			// The browser's last children may still write into its profile.
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			file := filepath.Join(dir, "report.html")
			if err := os.WriteFile(file, []byte(page), 0o600); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			res, err := runner.Run(ctx, exec.Cmd{Argv: []string{chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
				"--disable-component-update", "--disable-sync", "--no-first-run", "--enable-logging=stderr", "--user-data-dir=" + filepath.Join(dir, "profile"), "--dump-dom", "file://" + file}})
			if err != nil {
				t.Fatal(err)
			}
			for _, line := range strings.Split(string(res.Stderr), "\n") {
				if strings.Contains(line, "CONSOLE") {
					t.Errorf("the browser's console: %s", line)
				}
			}
			dom := string(res.Stdout)
			if got, want := strings.Count(dom, "<table"), strings.Count(page, "<table"); got != want {
				t.Errorf("%d tables in the browser, %d in the file", got, want)
			}
			if strings.Contains(dom, "<title>pwned") {
				t.Error("a script ran")
			}
			for _, s := range newSections(in) {
				if !strings.Contains(dom, fmt.Sprintf(`<section id="%s"`, s)) {
					t.Errorf("no section %s", s)
				}
			}
			if n := len(regexp.MustCompile(`<svg`).FindAllString(dom, -1)); name == "normal" && n != 18 {
				t.Errorf("%d intervals are drawn, want 18", n)
			}
		})
	}
}

// newSections are the ids of the sections that a report has.
func newSections(in Input) []string {
	var ids []string
	d := newDocument(in)
	for _, s := range sections() {
		if len(s.blocks(d)) > 0 {
			ids = append(ids, s.ID)
		}
	}
	return ids
}
