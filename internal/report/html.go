package report

import (
	"embed"
	"fmt"
	"html/template"
	"io"
	"strconv"
	"strings"
)

//go:embed templates
var templates embed.FS

// page is what the HTML template is filled from.
type page struct {
	Title, Summary, Version string
	Style                   template.CSS
	Sections                []pageSection
}

type pageSection struct {
	ID, Title string
	Blocks    []block
}

// numbered is a cell with its column.
type numbered struct {
	cell
	Number, Wide bool
}

// writeHTML writes one file that needs no other: no script, no image, no font,
// and a content security policy that would let none in.
func writeHTML(w io.Writer, d *document, _ Options) error {
	p := page{Title: d.title(), Summary: d.summary(), Version: d.Version}
	for _, s := range sections() {
		if blocks := s.blocks(d); len(blocks) > 0 {
			p.Sections = append(p.Sections, pageSection{s.ID, s.Title, blocks})
		}
	}
	return writePage(w, p)
}

// writePage fills the template.
func writePage(w io.Writer, p page) error {
	t, err := template.New("page.gohtml").Funcs(template.FuncMap{
		"in":     func(columns []column, i int, c cell) numbered { return numbered{c, columns[i].Number, columns[i].Wide} },
		"exact":  func(v *float64) string { return strconv.FormatFloat(*v, 'g', -1, 64) },
		"px":     func(share float64) string { return fmt.Sprintf("%.1f", barWidth*share) },
		"tick":   func(share float64) string { return fmt.Sprintf("%.1f", min(max(barWidth*share-1, 0), barWidth-2)) },
		"span":   func(low, high float64) string { return fmt.Sprintf("%.1f", max(1, barWidth*(high-low))) },
		"legend": steps,
	}).ParseFS(templates, "templates/*.gohtml")
	if err != nil {
		return err
	}
	style, err := templates.ReadFile("templates/style.css")
	if err != nil {
		return err
	}
	p.Title, p.Summary, p.Version, p.Style = clean(p.Title), clean(p.Summary), clean(p.Version), template.CSS(style)
	// No line ends between a figure and its unit.
	joined := strings.NewReplacer(" %", "\u00a0%", " ± ", "\u00a0±\u00a0")
	for _, s := range p.Sections {
		for i, b := range s.Blocks {
			s.Blocks[i] = b.mapText(clean).mapText(joined.Replace)
		}
	}
	return t.Execute(w, p)
}

// barWidth is the width of a drawn interval in the units of its view box.
const barWidth = 200

// blocks are the section's blocks without empty ones, of clean text.
func (s section) blocks(d *document) []block {
	var out []block
	for _, b := range s.Build(d) {
		if b.Head != "" || b.Para != "" || len(b.List) > 0 || b.Table != nil || b.Code != "" {
			out = append(out, b.mapText(clean))
		}
	}
	return out
}
