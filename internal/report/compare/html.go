package compare

import (
	"embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"strings"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/format"
	"github.com/cnibench/cnibench/internal/report/page"
	"github.com/cnibench/cnibench/internal/report/screen"
	"github.com/cnibench/cnibench/internal/stat/comparison"
	"github.com/cnibench/cnibench/internal/stat/estimate"
)

// templates has the page of a comparison.
//
//go:embed compare.gohtml
var templates embed.FS

// comparePage is what the HTML of a comparison is filled from.
type comparePage struct {
	Summary    string
	Regression bool
	Words      []string
	Style      template.CSS
	Tables     []compareTable
	Scale      string
}

// compareTable is the cells of one verdict, side by side.
type compareTable struct {
	ID, Title string
	Where     bool // the comparison has several situations
	Rows      []compareRow
}

// compareRow is one cell on both sides; Base and New are its values, Change what
// differs, with its interval drawn about zero.
type compareRow struct {
	Network, Traffic, Metric, Where string
	Base, New                       compareValue
	Change, Of, Verdict             string
	ChangeValue                     string // new / base, more is better; "" for none
	Drawn                           *drawnChange
}

type compareValue struct {
	Text     string
	Interval string
	Value    string // in the base unit, exact; "" for none
}

// drawnChange is an interval in a box of 200 × 16; the middle is no change. A
// band shows the threshold. Ends beyond the scale are at its edge.
type drawnChange struct {
	Low, Width, Mid    string
	BandLow, BandWidth string
	Label              string
}

// writeComparisonHTML writes one file that loads nothing: both sides of each
// cell, what differs with its interval, and the verdict.
func writeComparisonHTML(w io.Writer, c comparison.Comparison, _ screen.Options) error {
	t, err := template.New("compare.gohtml").ParseFS(templates, "compare.gohtml")
	if err != nil {
		return err
	}
	look, err := format.Style()
	if err != nil {
		return err
	}
	p := comparePage{Summary: page.Clean(comparisonSummary(c)), Regression: c.Regression, Words: page.MapAll(comparisonWords(c), page.Clean), Style: template.CSS(look)}
	most := changeScale(c)
	d := comparisonSituations(c)
	for _, v := range verdicts() {
		t := compareTable{ID: strings.ReplaceAll(string(v), " ", "-"), Title: verdictTitle(v), Where: len(d.Groups) > 1}
		for _, x := range c.Cells {
			if x.Verdict == v {
				t.Rows = append(t.Rows, compareRowOf(d, x, c.Threshold, most))
			}
		}
		if len(t.Rows) > 0 {
			p.Tables = append(p.Tables, t)
		}
	}
	if most > 0 {
		p.Scale = fmt.Sprintf("Drawn: from %s to +%s, no change in the middle; the band is the threshold.", changePercent(-most), changePercent(most))
	}
	return t.Execute(w, p)
}

func verdictTitle(v comparison.Verdict) string {
	switch v {
	case comparison.Broken:
		return "Broken: all samples of the new side failed"
	case comparison.Worse:
		return "Worse"
	case comparison.Better:
		return "Better"
	case comparison.CannotTell:
		return "Cannot tell"
	case comparison.Same:
		return "No difference beyond the threshold"
	}
	return page.Clean(string(v))
}

// changeScale is the largest change to be drawn, as a logarithm: three
// thresholds at least, so that noise does not look large, and a factor of two
// at most.
func changeScale(c comparison.Comparison) float64 {
	most := 0.0
	for _, x := range c.Cells {
		if x.Change == nil {
			continue
		}
		most = math.Max(most, 3*math.Log1p(c.Threshold))
		for _, v := range bounds(*x.Change) {
			if v > 0 {
				most = math.Max(most, math.Abs(math.Log(v)))
			}
		}
	}
	return math.Min(most, math.Ln2)
}

// bounds are an estimate's interval, or its value twice.
func bounds(e estimate.Estimate) [2]float64 {
	if low, high, ok := e.Interval(); ok {
		return [2]float64{low, high}
	}
	return [2]float64{e.Value, e.Value}
}

func changePercent(log float64) string {
	percent := 100 * math.Expm1(log)
	if math.Abs(percent) >= 10 { // two digits of 100 would be 1e+02
		return fmt.Sprintf("%.0f %%", percent)
	}
	return fmt.Sprintf("%.2g %%", percent)
}

func compareRowOf(d *report.Document, x comparison.Cell, threshold, most float64) compareRow {
	m, _ := report.FindMetric(x.Metric)
	r := compareRow{
		Network: page.Clean(x.Cell.Network), Traffic: page.Clean(x.Cell.Traffic()), Metric: page.Clean(m.Label), Where: page.Clean(d.Short(report.SituationOf(x.Cell))),
		Base: compareValueOf(x.Metric, x.Base), New: compareValueOf(x.Metric, x.New), Change: changeWords(x), Of: "absolute value", Verdict: page.Clean(verdictWords(x)),
	}
	if x.ByEfficiency {
		r.Of = "efficiency"
	}
	if x.Change != nil {
		r.ChangeValue = format.Exact(x.Change.Value)
		r.Drawn = drawChange(*x.Change, threshold, most, r.Change)
	}
	return r
}

func compareValueOf(metric string, e *estimate.Estimate) compareValue {
	c := comparedField(metric, e)
	v := compareValue{Text: page.Clean(c.Text)}
	if e != nil {
		v.Value = format.Exact(e.Value)
		m, _ := report.FindMetric(metric)
		if low, high, ok := e.Interval(); ok {
			v.Interval = m.FormatInterval(low, high)
		}
	}
	return v
}

// drawChange places a change on the scale.
func drawChange(e estimate.Estimate, threshold, most float64, label string) *drawnChange {
	if most <= 0 || e.Value <= 0 {
		return nil
	}
	const box = 200
	at := func(log float64) float64 { return box/2 + box/2*math.Max(-1, math.Min(1, log/most)) }
	b := bounds(e)
	low, high := 0.0, float64(box)
	if b[0] > 0 {
		low = at(math.Log(b[0]))
	}
	if b[1] > 0 {
		high = at(math.Log(b[1]))
	}
	band := at(math.Log1p(threshold)) - box/2
	px := func(v float64) string { return fmt.Sprintf("%.1f", v) }
	return &drawnChange{Low: px(low), Width: px(math.Max(1, high-low)), Mid: px(math.Max(0, math.Min(at(math.Log(e.Value))-1, box-2))),
		BandLow: px(box/2 - band), BandWidth: px(2 * band), Label: label}
}
