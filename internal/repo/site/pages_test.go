package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// TestPrepare: every document is a page, every link of a page leads to a page or file
// of the site, and every page of the index is in the navigation once.
func TestPrepare(t *testing.T) {
	folder := t.TempDir()
	if err := prepare("../../..", folder); err != nil {
		t.Fatal(err)
	}
	documents, err := filepath.Glob("../../../docs/*.md")
	if err != nil || len(documents) < 20 {
		t.Fatalf("%d documents, %v", len(documents), err)
	}
	pages := filepath.Join(folder, "pages")
	for _, d := range documents {
		if _, err := os.Stat(filepath.Join(pages, "docs", filepath.Base(d))); err != nil {
			t.Error(err)
		}
	}
	err = filepath.WalkDir(pages, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".md" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		outsideBlocks(string(text), func(line string) string {
			for _, m := range link.FindAllStringSubmatch(line, -1) {
				if strings.Contains(m[1], ":") {
					continue
				}
				info, err := os.Stat(filepath.Join(filepath.Dir(path), m[1]))
				if err != nil || info.IsDir() {
					t.Errorf("%s links to %s, which is no file of the site: %v", path, m[1], err)
				}
			}
			return line
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(folder, "mkdocs.yml"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(folder, "pages", "style.css")); err != nil || !strings.Contains(string(text), "\nextra_css: [style.css]\n") {
		t.Errorf("the pages have no style.css: %v", err)
	}
	_, nav, _ := strings.Cut(string(text), "\nnav:\n")
	for _, d := range documents {
		page := "docs/" + filepath.Base(d)
		if n := strings.Count(nav, page+"\n"); n != 1 {
			t.Errorf("%s is in the navigation %d times: name it in README.md's index", page, n)
		}
	}
	var list []any
	if err := yaml.Unmarshal([]byte(nav), &list); err != nil || len(list) != 5 {
		t.Errorf("%d parts of the navigation, %v", len(list), err)
	}
}

// TestLists: what GitHub takes as a list becomes one for Python-Markdown.
func TestLists(t *testing.T) {
	for text, want := range map[string]string{
		"a:\n- b\n- c\n\nd":                           "a:\n\n- b\n- c\n\nd",
		"- b\n  c\n\n  d\n":                           "- b\n    c\n\n    d\n",
		"1. b\n\n   ```sh\n   c\n     d\n   ```\n\ne": "1. b\n\n    ```sh\n    c\n      d\n    ```\n\ne",
		"```\n- x\n  y\n```\n":                        "```\n- x\n  y\n```\n",
	} {
		if diff := cmp.Diff(want, listsOf(text)); diff != "" {
			t.Errorf("%q:\n%s", text, diff)
		}
	}
}

// TestNavigation: a page that two rows name occurs once; a row's second page has the
// title of its heading.
func TestNavigation(t *testing.T) {
	got, err := navigation("# x\n\n## Documentation\n\n| you want to | read | what |\n|---|---|---|\n" +
		"| start | [a](docs/a.md), then [b](docs/b.md) and [c](docs/c.md#x) | . |\n| end | [a](docs/a.md) | . |\n" +
		"\n| reference | page |\n|---|---|\n| words | [c](docs/c.md) |\n\n| how it works | page |\n|---|---|\n| x | [d](docs/d.md), [y](docs/y.json) |\n\n## More\n")
	want := "\nnav:\n  - Start: README.md\n  - By task:\n      - \"Start\": docs/a.md\n      - docs/b.md\n  - Reference:\n      - \"Words\": docs/c.md\n" +
		"  - How it works:\n      - \"X\": docs/d.md\n  - Changes: CHANGELOG.md\n"
	if diff := cmp.Diff(want, string(got)); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	if _, err := navigation("# x\n\n## Documentation\n\n| reference | page |\n"); err == nil || !strings.Contains(err.Error(), "how it works") {
		t.Error(err)
	}
}

// TestWholeWords: flags in code are marked, and percentages in tables have no end of a line in
// them; other code and other text stay as they are.
func TestWholeWords(t *testing.T) {
	for line, want := range map[string]string{
		"| `cnibench run --context NAME` | `-q` |": "| <code>cnibench run <span class=\"flag\">--context</span> NAME</code> | <code><span class=\"flag\">-q</span></code> |",
		"`results/latest`, --long and `a | b --c`": "`results/latest`, --long and `a | b --c`",
		"`tcp-drop-5-gigabit` of 3 %":              "`tcp-drop-5-gigabit` of 3 %",
		"| 8632 (0.11 %) |":                        "| 8632 (0.11\u00a0%) |",
	} {
		if got := wholeWords(line); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}
