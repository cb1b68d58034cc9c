package section

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/flame"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/page"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/summary"
)

// flames draws, for each traffic, the stacks of every network: one chart, in
// which the reader chooses the network.
func flames(d *report.Document) []page.Element {
	var out []page.Element
	if d.Flames.Alike != "" {
		out = flamesAlike(d)
	} else {
		for _, g := range d.Groups {
			var own []page.Element
			for _, t := range g.Traffics {
				own = append(own, flameChart(d, t.Traffic(), g.Of(t), d.Entries(g, t))...)
			}
			if len(own) > 0 {
				out = append(append(out, page.HeadOf(g.Title(), g.At("", result.Cell{}))), own...)
			}
		}
	}
	if len(out) > 0 {
		out = slices.Insert(out, 0, page.Para("Each function is below the one that called it and is as wide as the CPU time that it and all below it took, both ends together. "+
			"Its colour is the component that its own time belongs to. What is at the same place and as wide in all networks is not the network. "+
			"Choose a function to look into it; with the keyboard the arrows go from function to function, Enter looks into one and Escape back. "+
			"Time of other programs is left out."))
	} else {
		out = orMissing(d, noFlames(d), nil)
	}
	if d.Flames.Trouble != "" {
		out = append(out, page.Para("Stacks that could not be read are not drawn: "+report.SentenceEnd(d.Flames.Trouble)))
	}
	return out
}

// noFlames says why there are no graphs.
func noFlames(d *report.Document) string {
	for _, why := range Unexplained(d) {
		if rest, ok := strings.CutPrefix(why, unexplained); ok {
			return "No flame graph: " + rest
		}
	}
	return "No flame graph: this report was made without the recorded stacks."
}

// flamesAlike are the charts of graphs that many cells share: one for each kind.
func flamesAlike(d *report.Document) []page.Element {
	kinds := map[result.Cell][]report.Entry{}
	var order []result.Cell
	for _, n := range d.Networks() {
		for _, x := range d.Flames.Graphs {
			if x.Cell.Network != n {
				continue
			}
			kind, name := x.Cell, d.Name(n)
			kind.Network, kind.Cluster = "", ""
			if n == result.HostNetwork {
				name = report.HostOf(x.Cell.Cluster) + " (baseline)"
			}
			if kinds[kind] == nil {
				order = append(order, kind)
			}
			kinds[kind] = append(kinds[kind], report.Entry{Name: name, Summary: summary.Cell{Cell: x.Cell}})
		}
	}
	out := []page.Element{page.Para("A campaign of so many cells has " + d.Flames.Alike + " in one graph.")}
	slices.SortFunc(order, result.Cell.Compare)
	for _, kind := range order {
		title := kind.Traffic()
		if kind.Workload == "" {
			title = "All traffics"
		}
		out = append(out, flameChart(d, title, nil, kinds[kind])...)
	}
	return out
}

// flameChart is the graphs of some rows' cells; none where no row has any.
func flameChart(d *report.Document, traffic string, of *result.Cell, rows []report.Entry) []page.Element {
	c := &page.Chart{Kind: page.DrawnFlame, Title: traffic + ": where in the kernel", Of: of, X: page.Axis{Title: "CPU time", Unit: "s"}}
	unread := 0
	for _, r := range rows {
		i := slices.IndexFunc(d.Flames.Graphs, func(x flame.Graph) bool { return x.Cell == r.Summary.Cell })
		if i < 0 {
			continue
		}
		s := seriesOf(r)
		s.Stacks = &d.Flames.Graphs[i]
		c.Series = append(c.Series, s)
		unread = max(unread, s.Stacks.Unread)
	}
	if len(c.Series) == 0 {
		return nil
	}
	if unread > 0 {
		c.Words = fmt.Sprintf("Of the first samples alone: the stacks of up to %d more of a network were not read.", unread)
	}
	return []page.Element{page.Drawing(c)}
}

// unexplained begins the sentence of a campaign without stacks.
const unexplained = "Where in the kernel the time goes is not known: "

// Unexplained says what the campaign lacks for a full explanation.
func Unexplained(d *report.Document) []string {
	out := Missing(d)
	sampled := false
	for _, s := range d.Analysis.Cells {
		sampled = sampled || s.Attribution != nil
	}
	if sampled {
		return out
	}
	why := "no stacks were sampled: name stacks in the campaign's probes"
	if d.Environment != nil {
		for _, a := range d.Environment.Absent {
			if strings.HasPrefix(a, "probe stacks:") {
				why = "no stacks were sampled: " + strings.TrimSpace(strings.TrimPrefix(a, "probe stacks:"))
			}
		}
	}
	return append(out, report.SentenceEnd(unexplained+why))
}
