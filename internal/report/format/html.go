package format

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"html/template"
	"io"
	"strings"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/page"
	"github.com/cnibench/cnibench/internal/report/screen"
	"github.com/cnibench/cnibench/internal/report/section"
)

// templates has the page, its style, and its script: what `make web` made of
// the folder web/, Vega included.
//
//go:embed templates
var templates embed.FS

// Style is how all pages look.
func Style() ([]byte, error) { return templates.ReadFile("templates/style.css") }

// htmlPage is what the HTML template is filled from.
type htmlPage struct {
	Title, Summary, Version string
	// Policy lets this page's own script run and no other.
	Policy   string
	Style    template.CSS
	Script   template.JS
	Data     template.HTML // base64 alone
	Sections []htmlSection
	// Left is how many tables a browser without script does not see.
	Left int
}

type htmlSection struct {
	ID, Title string
	Elements  []htmlElement
}

// htmlElement is a piece of a section: words, a slot for a table, or slots for
// charts that are side by side.
type htmlElement struct {
	page.Element
	Items  []item
	About  int
	Slot   *slot
	Charts []slot
}

// item is one of a list.
type item struct {
	Text  string
	About int
}

// slot is where the script puts a table or a chart of the data.
type slot struct {
	Number, About int
	// Table is what a browser without script shows; nil: nothing.
	Table *page.Table
	// Missing says why there is no chart.
	Missing string
}

// writeHTML writes the report of a campaign.
func writeHTML(w io.Writer, d *report.Document, _ screen.Options) error {
	p := page.Page{Title: d.Title(), Summary: d.Summary(), Version: d.Version}
	for _, s := range section.List() {
		if elements := s.Elements(d, true); len(elements) > 0 {
			p.Sections = append(p.Sections, page.Section{ID: s.ID, Title: s.Title, Elements: elements})
		}
	}
	return WriteHTMLPage(w, p, d)
}

// WriteHTMLPage writes one file that needs no other: the policy in it lets nothing
// in from anywhere, and no script run but its own. Readers can filter the page by
// the factors of d; nil: they cannot.
func WriteHTMLPage(w io.Writer, p page.Page, d *report.Document) error {
	t, err := template.New("page.gohtml").ParseFS(templates, "templates/*.gohtml")
	if err != nil {
		return err
	}
	look, err := Style()
	if err != nil {
		return err
	}
	script, err := templates.ReadFile("templates/report.js")
	if err != nil {
		return err
	}
	sum := sha256.Sum256(script)
	out := htmlPage{
		Title: page.Clean(p.Title), Summary: page.Clean(p.Summary), Version: page.Clean(p.Version), Style: template.CSS(look), Script: template.JS(script),
		Policy: "default-src 'none'; style-src 'unsafe-inline'; img-src data: blob:; script-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'",
	}
	l := newLayout(p, d)
	for _, s := range p.Sections {
		out.Sections = append(out.Sections, htmlSection{s.ID, s.Title, l.elements(s.Elements)})
	}
	data, err := l.data.packed()
	if err != nil {
		return err
	}
	out.Data, out.Left = template.HTML(data), l.left
	return t.Execute(w, out)
}

// layout turns elements into what the template writes and the data behind them.
type layout struct {
	data *dataWriter
	// room is how many more table cells are written for browsers without script.
	room int
	left int
	text func(string) string
}

// roomWithoutScript keeps the page small: a browser that runs the script does
// not need them.
const roomWithoutScript = 1500

func newLayout(p page.Page, d *report.Document) *layout {
	// No line ends between a figure and its unit.
	joined := strings.NewReplacer(" %", "\u00a0%", " ± ", "\u00a0±\u00a0")
	return &layout{data: newDataWriter(p, d), room: roomWithoutScript, text: func(s string) string { return joined.Replace(page.Clean(s)) }}
}

func (l *layout) elements(all []page.Element) []htmlElement {
	var out []htmlElement
	for _, b := range all {
		b = b.MapText(l.text)
		e := htmlElement{Element: b, About: l.data.filter.about(b.Of)}
		switch {
		case b.Chart != nil:
			s := l.chart(b.Chart)
			if n := len(out); n > 0 && len(out[n-1].Charts) > 0 {
				out[n-1].Charts = append(out[n-1].Charts, s)
				continue
			}
			e.Charts = []slot{s}
		case b.Table != nil:
			s := l.table(b.Table)
			e.Slot = &s
		}
		for i, text := range b.List {
			about := -1
			if i < len(b.ListOf) {
				about = l.data.filter.about(b.ListOf[i])
			}
			e.Items = append(e.Items, item{text, about})
		}
		out = append(out, e)
	}
	return out
}

func (l *layout) chart(c *page.Chart) slot {
	s := slot{Number: -1, About: l.data.filter.about(c.Of), Missing: c.Missing}
	if c.Missing == "" {
		s.Number = l.data.chart(c)
	}
	return s
}

func (l *layout) table(t *page.Table) slot {
	s := slot{Number: l.data.table(t), About: l.data.filter.about(t.Of)}
	if l.room -= len(t.Rows) * len(t.Columns); l.room >= 0 {
		s.Table = t
	} else {
		l.left++
	}
	return s
}
