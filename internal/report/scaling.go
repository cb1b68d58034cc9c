package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/result"
)

// family are traffics that differ in one factor alone, ascending by it.
type family struct {
	common   result.Cell
	traffics []result.Cell
}

// families sorts the traffics of a group by what they have in common, without
// the factor that value gives.
func (g *group) families(without func(result.Cell) result.Cell, value func(result.Cell) int) []family {
	var out []family
	for _, t := range g.traffics {
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

func (g *group) byStreams() []family {
	return g.families(func(c result.Cell) result.Cell { c.Streams = 0; return c }, func(c result.Cell) int { return c.Streams })
}

func (g *group) byMessage() []family {
	return g.families(func(c result.Cell) result.Cell { c.MessageBytes = 0; return c }, func(c result.Cell) int { return c.MessageBytes })
}

// scaling draws what more connections bring.
func scaling(d *document) []block {
	var out []block
	swept := false
	for _, g := range d.groups {
		var own []block
		for _, f := range g.byStreams() {
			if len(f.traffics) > 1 && f.traffics[0].Streams > 0 {
				swept = true
				own = append(own, d.streamsChart(g, f)...)
			}
		}
		if len(own) > 0 {
			out = append(append(out, headOf(g.title(), g.at("", result.Cell{}))), own...)
		}
	}
	if swept {
		return d.orMissing("Nothing to draw: nothing was measured of the traffics that differ in streams.", out)
	}
	return d.orMissing("Nothing to draw: every traffic has one number of streams. To see how many connections fill the link, name several in the campaign: streams: [1, 4, 16].", out)
}

// streamsChart is one chart, and in words how many streams fill the link.
func (d *document) streamsChart(g *group, f family) []block {
	m, ok := g.primary(f.traffics[0])
	if !ok {
		return nil
	}
	title := f.common.Traffic() + ": " + m.Label + " by streams"
	c := &chart{Kind: drawnLines, Title: title, Of: g.of(f.common), Words: "Median over blocks, with its interval.",
		X: axis{Title: "streams", Scale: scaleLog2}, Y: axis{Title: m.Label, Unit: m.Unit}}
	for _, r := range d.allEntries(g, f.traffics) {
		line := r.series()
		for _, t := range f.traffics {
			sum, ok := d.summaryOf(g, r, t)
			e, has := sum.Absolute[m.Name]
			if !ok || !has {
				continue
			}
			line.X = append(line.X, float64(t.Streams))
			line.add(e)
			if sum.LinkLimit != nil && m.Name == "throughput_bits_per_second" {
				c.Limit = &limit{*sum.LinkLimit, "the link's limit"}
			}
		}
		if len(line.X) > 1 {
			c.Series = append(c.Series, line)
		}
	}
	if len(c.Series) == 0 {
		return []block{drawing(missing(title, "Nothing to draw: no network was measured at two points.", c.Of))}
	}
	c.Words = strings.TrimSpace(c.Words + " " + d.fillWords(g, f))
	return []block{drawing(c)}
}

// fillWords says from how many streams on each network fills its link.
func (d *document) fillWords(g *group, f family) string {
	fills := map[int][]string{}
	var never []string
	known := false
	for _, n := range g.networks {
		from := 0
		for _, t := range f.traffics {
			sum, ok := g.cell(n, t)
			known = known || (ok && sum.LinkLimit != nil)
			if ok && sum.LinkBound && from == 0 {
				from = t.Streams
			}
		}
		if from == 0 {
			never = append(never, d.name(n))
		} else {
			fills[from] = append(fills[from], d.name(n))
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
			words += fmt.Sprintf("%s %s the link from %s on. ", and(names), verb, count(t.Streams, "stream", "streams"))
		}
	}
	if len(never) > 0 {
		words += "Not filled by any number that was measured: " + and(never) + "."
	}
	return words
}
