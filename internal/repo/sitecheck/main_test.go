package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/labtest"
)

// TestCheck: a page that is wider than a phone is found with the element that is; a table
// that scrolls in a box of its own is none.
func TestCheck(t *testing.T) {
	if testing.Short() {
		t.Skip("opens a browser, and is left out by -short: run make test")
	}
	labtest.Tool(t, "chromium", "chromium")
	folder := t.TempDir()
	page := func(name, body string) {
		text := `<!doctype html><meta name="viewport" content="width=device-width"><title>t</title><body style="margin:0">` + body
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	page("good.html", `<p>words</p><div style="overflow:auto"><div style="width:3000px">table</div></div>`)
	if n, err := check(t.Context(), folder, ""); err != nil || n != 1 {
		t.Errorf("%d pages, %v", n, err)
	}
	page("wide.html", `<p>words</p><div><code style="display:block;width:600px">too-wide</code></div>`)
	_, err := check(t.Context(), folder, "")
	if err == nil || !strings.Contains(err.Error(), "wide.html is wider than a window of 390 pixels: code too-wide") {
		t.Errorf("the error is %v", err)
	}
	if err != nil && (strings.Contains(err.Error(), "1280") || strings.Contains(err.Error(), "good.html")) {
		t.Errorf("the error names more than the page and its width: %v", err)
	}
	if _, err := check(t.Context(), t.TempDir(), ""); err == nil || !strings.Contains(err.Error(), "make site") {
		t.Errorf("an empty folder: %v", err)
	}
}
