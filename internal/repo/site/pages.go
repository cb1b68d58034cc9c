package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// start is the first page, and its index the navigation.
const start = "README.md"

// prepare writes the pages and the configuration of the site.
func prepare(tree, folder string) error {
	s := site{tree: os.DirFS(tree), pages: map[string][]byte{}}
	documents, err := fs.Glob(s.tree, "docs/*.md")
	if err != nil {
		return err
	}
	for _, name := range append([]string{start, "CHANGELOG.md"}, documents...) {
		if err := s.add(name); err != nil {
			return err
		}
	}
	for name, text := range s.pages {
		to := filepath.Join(folder, "pages", filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, text, 0o644)); err != nil {
			return err
		}
	}
	config, err := fs.ReadFile(s.tree, "tools/site/mkdocs.yml")
	if err != nil {
		return err
	}
	index, err := fs.ReadFile(s.tree, start)
	if err != nil {
		return err
	}
	nav, err := navigation(string(index))
	if err != nil {
		return err
	}
	style, err := fs.ReadFile(s.tree, "tools/site/style.css")
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(filepath.Join(folder, "pages", "style.css"), style, 0o644),
		os.WriteFile(filepath.Join(folder, "mkdocs.yml"), append(config, nav...), 0o644))
}

// site is what a site is made of.
type site struct {
	tree  fs.FS
	pages map[string][]byte // by their path in the tree
}

// add adds a file, and if it is a document everything that it links to.
func (s *site) add(name string) error {
	if _, have := s.pages[name]; have {
		return nil
	}
	text, err := fs.ReadFile(s.tree, name)
	if err != nil {
		return err
	}
	s.pages[name] = text
	if path.Ext(name) != ".md" {
		return nil
	}
	return s.addDocument(name, string(text))
}

var link = regexp.MustCompile(`\]\(([^)#\s]+)(#[^)\s]*)?\)`)

// addDocument adds a page. A link to a folder becomes a link to a page that lists it.
func (s *site) addDocument(name, text string) error {
	var errs []error
	text = outsideBlocks(text, func(line string) string {
		return link.ReplaceAllStringFunc(wholeWords(line), func(found string) string {
			m := link.FindStringSubmatch(found)
			if strings.Contains(m[1], ":") {
				return found
			}
			target := path.Join(path.Dir(name), m[1])
			info, err := fs.Stat(s.tree, target)
			switch {
			case err != nil:
				errs = append(errs, fmt.Errorf("%s: %w", name, err))
			case info.IsDir():
				errs = append(errs, s.addFolder(target))
				return "](" + path.Join(m[1], start) + m[2] + ")"
			default:
				errs = append(errs, s.add(target))
			}
			return found
		})
	})
	s.pages[name] = []byte(listsOf(text))
	return errors.Join(errs...)
}

// addFolder adds a page that lists a folder: its files, and folders below it that have
// a README.md. Where the folder has a README.md itself, that is the page.
func (s *site) addFolder(name string) error {
	page := path.Join(name, start)
	if _, err := fs.Stat(s.tree, page); err == nil {
		return s.add(page)
	}
	if _, have := s.pages[page]; have {
		return nil
	}
	entries, err := fs.ReadDir(s.tree, name)
	if err != nil {
		return err
	}
	text := "# " + name + "\n\n"
	for _, e := range entries {
		file := e.Name()
		if e.IsDir() {
			file = path.Join(file, start)
			if _, err := fs.Stat(s.tree, path.Join(name, file)); err != nil {
				continue
			}
		} else if path.Ext(file) == ".go" {
			continue
		}
		text += fmt.Sprintf("- [%s](%s)\n", e.Name(), file)
		if err := s.add(path.Join(name, file)); err != nil {
			return err
		}
	}
	s.pages[page] = []byte(text)
	return nil
}

// A flag, code that needs no escape in HTML or Markdown, and the end of a percentage.
var (
	flag    = regexp.MustCompile(`(^| )(--?[a-z][a-z-]*)`)
	code    = regexp.MustCompile("`([^`<>&*\\\\|]+)`")
	percent = regexp.MustCompile(`([0-9]) %`)
)

// wholeWords keeps a browser from ending a line inside a flag, or in a table before a %:
// "-- context" is no flag.
func wholeWords(line string) string {
	line = code.ReplaceAllStringFunc(line, func(span string) string {
		text := strings.Trim(span, "`")
		if !flag.MatchString(text) {
			return span
		}
		return "<code>" + flag.ReplaceAllString(text, `$1<span class="flag">$2</span>`) + "</code>"
	})
	if strings.HasPrefix(line, "|") {
		line = percent.ReplaceAllString(line, "$1\u00a0%")
	}
	return line
}

// outsideBlocks applies f to each line that is in no block of code.
func outsideBlocks(text string, f func(string) string) string {
	lines, fenced := strings.Split(text, "\n"), false
	for i, l := range lines {
		if strings.HasPrefix(strings.TrimSpace(l), "```") {
			fenced = !fenced
		} else if !fenced {
			lines[i] = f(l)
		}
	}
	return strings.Join(lines, "\n")
}

var item = regexp.MustCompile(`^(- |[0-9]+\. )`)

// listsOf is a document as Python-Markdown wants it: an empty line before a list, and
// what belongs to an item is indented by four columns.
func listsOf(text string) string {
	var out []string
	inList, fenced := false, false
	for _, l := range strings.Split(text, "\n") {
		blank, indent := strings.TrimSpace(l) == "", len(l)-len(strings.TrimLeft(l, " "))
		switch {
		case fenced && !inList:
		case item.MatchString(l):
			if !inList && len(out) > 0 && strings.TrimSpace(out[len(out)-1]) != "" {
				out = append(out, "")
			}
			inList = true
		case inList && !blank && indent == 0 && out[len(out)-1] == "":
			inList = false
		case inList && (indent == 2 || indent == 3):
			l = "    " + l[indent:]
		case inList && fenced && indent > 3:
			l = " " + l
		}
		if strings.HasPrefix(strings.TrimSpace(l), "```") {
			fenced = !fenced
		}
		out = append(out, l)
	}
	return strings.Join(out, "\n")
}

// section is a part of the navigation.
type section struct {
	title string
	pages []entry
}

// entry is a page in the navigation; without a title it has that of its heading.
type entry struct{ title, page string }

// navigation is the navigation as YAML: the tables below "## Documentation" of the
// README, each document once. A link to a heading makes no entry, as the document has
// one elsewhere.
func navigation(readme string) ([]byte, error) {
	_, index, found := strings.Cut(readme, "\n## Documentation\n")
	if !found {
		return nil, fmt.Errorf("%s has no section Documentation", start)
	}
	index, _, _ = strings.Cut(index, "\n## ")
	titles := map[string]string{"you want to": "By task", "reference": "Reference", "how it works": "How it works"}
	seen := map[string]bool{}
	var sections []section
	for line := range strings.Lines(index) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		first := strings.TrimSpace(cells[0])
		if title, is := titles[first]; is {
			sections = append(sections, section{title: title})
			delete(titles, first)
		}
		if len(cells) < 2 || len(sections) == 0 {
			continue
		}
		last := &sections[len(sections)-1]
		for i, m := range link.FindAllStringSubmatch(cells[1], -1) {
			if path.Ext(m[1]) != ".md" || m[2] != "" || seen[m[1]] {
				continue
			}
			seen[m[1]] = true
			e := entry{page: m[1]}
			if i == 0 {
				e.title = strings.ToUpper(first[:1]) + first[1:]
			}
			last.pages = append(last.pages, e)
		}
	}
	if len(titles) > 0 {
		return nil, fmt.Errorf("%s: the index lacks the tables %v", start, slices.Sorted(maps.Keys(titles)))
	}
	return navYAML(sections), nil
}

func navYAML(sections []section) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "\nnav:\n  - Start: %s\n", start)
	for _, s := range sections {
		fmt.Fprintf(&b, "  - %s:\n", s.title)
		for _, e := range s.pages {
			if e.title == "" {
				fmt.Fprintf(&b, "      - %s\n", e.page)
				continue
			}
			fmt.Fprintf(&b, "      - %q: %s\n", e.title, e.page)
		}
	}
	b.WriteString("  - Changes: CHANGELOG.md\n")
	return []byte(b.String())
}
