package report

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"html/template"
	"io"
	"strings"
)

// templates has the page, its style, and its script: what `make web` made of
// the folder web/, Vega included.
//
//go:embed templates
var templates embed.FS

// page is sections of blocks, whatever they are about.
type page struct {
	Title, Summary, Version string
	Sections                []pageSection
	// document is the campaign whose factors the page can be filtered by; nil:
	// it cannot.
	document *document
}

type pageSection struct {
	ID, Title string
	Blocks    []block
}

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
	Elements  []element
}

// element is a piece of a section: a block, a slot for a table, or slots for
// charts that stand side by side.
type element struct {
	block
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
	Table *table
	// Missing says why there is no chart.
	Missing string
}

// writeHTML writes the report of a campaign.
func writeHTML(w io.Writer, d *document, _ Options) error {
	p := page{Title: d.title(), Summary: d.summary(), Version: d.Version, document: d}
	for _, s := range sections() {
		if blocks := s.blocks(d, true); len(blocks) > 0 {
			p.Sections = append(p.Sections, pageSection{s.ID, s.Title, blocks})
		}
	}
	return writePage(w, p)
}

// writePage writes one file that needs no other: the policy in it lets nothing
// in from anywhere, and no script run but its own.
func writePage(w io.Writer, p page) error {
	t, err := template.New("page.gohtml").ParseFS(templates, "templates/*.gohtml")
	if err != nil {
		return err
	}
	style, err := templates.ReadFile("templates/style.css")
	if err != nil {
		return err
	}
	script, err := templates.ReadFile("templates/report.js")
	if err != nil {
		return err
	}
	sum := sha256.Sum256(script)
	out := htmlPage{
		Title: clean(p.Title), Summary: clean(p.Summary), Version: clean(p.Version), Style: template.CSS(style), Script: template.JS(script),
		Policy: "default-src 'none'; style-src 'unsafe-inline'; img-src data: blob:; script-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'",
	}
	l := newLayout(p)
	for _, s := range p.Sections {
		out.Sections = append(out.Sections, htmlSection{s.ID, s.Title, l.elements(s.Blocks)})
	}
	data, err := l.data.packed()
	if err != nil {
		return err
	}
	out.Data, out.Left = template.HTML(data), l.left
	return t.Execute(w, out)
}

// layout turns blocks into the elements of a page and the data behind them.
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

func newLayout(p page) *layout {
	// No line ends between a figure and its unit.
	joined := strings.NewReplacer(" %", "\u00a0%", " ± ", "\u00a0±\u00a0")
	return &layout{data: newDataWriter(p), room: roomWithoutScript, text: func(s string) string { return joined.Replace(clean(s)) }}
}

func (l *layout) elements(blocks []block) []element {
	var out []element
	for _, b := range blocks {
		b = b.mapText(l.text)
		e := element{block: b, About: l.data.filter.about(b.Of)}
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

func (l *layout) chart(c *chart) slot {
	s := slot{Number: -1, About: l.data.filter.about(c.Of), Missing: c.Missing}
	if c.Missing == "" {
		s.Number = l.data.chart(c)
	}
	return s
}

func (l *layout) table(t *table) slot {
	s := slot{Number: l.data.table(t), About: l.data.filter.about(t.Of)}
	if l.room -= len(t.Rows) * len(t.Columns); l.room >= 0 {
		s.Table = t
	} else {
		l.left++
	}
	return s
}

// blocks are the section's blocks without empty ones, of clean text; charts
// only where they can be drawn.
func (s section) blocks(d *document, draw bool) []block {
	if s.Drawn && !draw {
		return nil
	}
	var out []block
	for _, b := range s.Build(d) {
		empty := b.Head == "" && b.Para == "" && len(b.List) == 0 && b.Table == nil && b.Code == "" && b.Chart == nil
		if !empty && (draw || b.Chart == nil) {
			out = append(out, b.mapText(clean))
		}
	}
	return out
}
