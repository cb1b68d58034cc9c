package section

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/page"
	"github.com/cnibench/cnibench/internal/result"
)

// family are traffics that differ in one factor alone, ascending by it.
type family struct {
	common   result.Cell
	traffics []result.Cell
}

// families sorts the traffics of a group by what they have in common, without
// the factor that value gives.
func families(g *report.Group, without func(result.Cell) result.Cell, value func(result.Cell) int) []family {
	var out []family
	for _, t := range g.Traffics {
		common := without(t)
		i := slices.IndexFunc(out, func(f family) bool { return f.common == common })
		if i < 0 {
			i, out = len(out), append(out, family{common: common})
		}
		out[i].traffics = append(out[i].traffics, t)
	}
	for _, f := range out {
		slices.SortFunc(f.traffics, func(a, b result.Cell) int { return cmp.Compare(value(a), value(b)) })
	}
	return out
}

func byStreams(g *report.Group) []family {
	return families(g, func(c result.Cell) result.Cell { c.Streams = 0; return c }, func(c result.Cell) int { return c.Streams })
}

func byMessage(g *report.Group) []family {
	return families(g, func(c result.Cell) result.Cell { c.MessageBytes = 0; return c }, func(c result.Cell) int { return c.MessageBytes })
}

// scaling draws what more connections bring.
func scaling(d *report.Document) []page.Element {
	var out []page.Element
	swept := false
	for _, g := range d.Groups {
		var own []page.Element
		for _, f := range byStreams(g) {
			if len(f.traffics) > 1 && f.traffics[0].Streams > 0 {
				swept = true
				own = append(own, streamsChart(d, g, f)...)
			}
		}
		if len(own) > 0 {
			out = append(append(out, page.HeadOf(g.Title(), g.At("", result.Cell{}))), own...)
		}
	}
	if swept {
		return orMissing(d, "Nothing to draw: nothing was measured of the traffics that differ in streams.", out)
	}
	return orMissing(d, "Nothing to draw: every traffic has one number of streams. To see how many connections fill the link, name several in the campaign: streams: [1, 4, 16].", out)
}

// streamsChart is one chart, and in words how many streams fill the link.
func streamsChart(d *report.Document, g *report.Group, f family) []page.Element {
	m, ok := g.Primary(f.traffics[0])
	if !ok {
		return nil
	}
	title := f.common.Traffic() + ": " + m.Label + " by streams"
	c := &page.Chart{Kind: page.DrawnLines, Title: title, Of: g.Of(f.common), Words: "Median over blocks, with its interval.",
		X: page.Axis{Title: "streams", Scale: page.ScaleLog2}, Y: page.Axis{Title: m.Label, Unit: m.Unit}}
	for _, r := range d.AllEntries(g, f.traffics) {
		line := seriesOf(r)
		for _, t := range f.traffics {
			sum, ok := d.SummaryOf(g, r, t)
			e, has := sum.Absolute[m.Name]
			if !ok || !has {
				continue
			}
			line.X = append(line.X, float64(t.Streams))
			line.Add(e)
			if sum.LinkLimit != nil && m.Name == "throughput_bits_per_second" {
				c.Limit = &page.Limit{Value: *sum.LinkLimit, Label: "the link's limit"}
			}
		}
		if len(line.X) > 1 {
			c.Series = append(c.Series, line)
		}
	}
	if len(c.Series) == 0 {
		return []page.Element{page.Drawing(page.Missing(title, "Nothing to draw: no network was measured at two points.", c.Of))}
	}
	c.Words = strings.TrimSpace(c.Words + " " + fillWords(d, g, f))
	return []page.Element{page.Drawing(c)}
}

// fillWords says from how many streams on each network fills its link.
func fillWords(d *report.Document, g *report.Group, f family) string {
	fills := map[int][]string{}
	var never []string
	known := false
	for _, n := range g.Networks {
		from := 0
		for _, t := range f.traffics {
			sum, ok := g.Cell(n, t)
			known = known || (ok && sum.LinkLimit != nil)
			if ok && sum.LinkBound && from == 0 {
				from = t.Streams
			}
		}
		if from == 0 {
			never = append(never, d.Name(n))
		} else {
			fills[from] = append(fills[from], d.Name(n))
		}
	}
	if !known || len(fills) == 0 {
		return ""
	}
	words := ""
	for _, t := range f.traffics {
		if names := fills[t.Streams]; len(names) > 0 {
			verb := "fills"
			if len(names) > 1 {
				verb = "fill"
			}
			words += fmt.Sprintf("%s %s the link from %s on. ", report.And(names), verb, report.Count(t.Streams, "stream", "streams"))
		}
	}
	if len(never) > 0 {
		words += "Not filled by any number that was measured: " + report.And(never) + "."
	}
	return words
}
