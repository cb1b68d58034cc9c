package section

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/rank"
)

// Headline says what was compared with what, and how it was measured:
// "quickstart: 5 pod networks compared with the bare host (lab, 2 CPUs, 20 blocks, 84 s)".
func Headline(d *report.Document) string {
	var how []string
	if e := d.Environment; e != nil {
		if e.Testbed != "" {
			how = append(how, e.Testbed)
		}
		if e.Testbed == "lab" && e.Host.CPUs > 0 {
			how = append(how, report.Count(e.Host.CPUs, "CPU", "CPUs"))
		}
	}
	if n := d.Tally.Blocks(); n > 0 {
		how = append(how, report.Count(n, "block", "blocks"))
	}
	if e := d.Environment; e != nil && e.Finished.After(e.Started) {
		how = append(how, duration(e.Finished.Sub(e.Started)))
	}
	s := d.Title() + ": " + compared(d)
	if len(how) > 0 {
		s += " (" + strings.Join(how, ", ") + ")"
	}
	return s
}

// compared says what was compared with what.
func compared(d *report.Document) string {
	networks, baseline := map[rank.Option]bool{}, false
	one := ""
	for _, s := range d.Analysis.Cells {
		switch {
		case s.OK == 0 || result.IsLadderOnly(s.Cell.Network):
		case s.Cell.IsBaseline():
			baseline = true
		default:
			one = d.Name(s.Cell.Network)
			networks[rank.Option{Network: result.OneName(s.Cell.Network), Cluster: s.Cell.Cluster}] = true
		}
	}
	what := report.Count(len(networks), "pod network", "pod networks")
	if len(networks) == 1 {
		what = one
	}
	switch {
	case len(networks) == 0 && !baseline:
		return "nothing was measured"
	case len(networks) == 0:
		return levelsCompared(d) + "the bare host"
	case d.Analysis.NullTest != nil:
		return what + ", each measured twice"
	case baseline:
		return what + " compared with the bare host"
	case len(networks) > 1 && len(d.Analysis.Goals) > 0 && len(d.Analysis.Goals[0].Ranked) > 0:
		return what + " compared with " + d.Option(d.Analysis.Goals[0].Ranked[0].Option)
	}
	return what
}

// levelsCompared counts the levels of what varies: "3 profiles and 2 MTUs compared
// on "; "" where nothing does.
func levelsCompared(d *report.Document) string {
	var parts []string
	for _, name := range factorNames(d) {
		for _, r := range d.Analysis.Factors {
			if r.Factor == name {
				parts = append(parts, fmt.Sprintf("%d %s", len(r.Levels), factorsName(name)))
				break
			}
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return report.And(parts) + " compared on "
}

// duration says a time in at most two units: "84 s", "5 min", "1 h 10 min".
func duration(t time.Duration) string {
	switch {
	case t < 2*time.Minute:
		return fmt.Sprintf("%.0f s", t.Seconds())
	case t < 2*time.Hour:
		return fmt.Sprintf("%.0f min", t.Minutes())
	}
	return fmt.Sprintf("%d h %d min", int(t.Hours()), int(t.Minutes())%60)
}

// SettingLine names what the headline figures cover; "" where there are none.
func SettingLine(d *report.Document) string {
	var settings []rank.Setting
	for _, g := range d.Analysis.Goals {
		settings = append(settings, g.Settings...)
	}
	if len(settings) == 0 {
		return ""
	}
	return report.Capital(scopeWords(settings)) + "."
}

// scopeWords names settings: "between nodes, pod-to-pod, tcp_stream 1472 and
// 9000 B, tcp_rr 64 B, MTU 1500".
func scopeWords(settings []rank.Setting) string {
	var ways []string
	traffics := map[string][]string{}
	for _, s := range settings {
		p := pathWords(s.Cell)
		if !slices.Contains(ways, p) {
			ways = append(ways, p)
		}
		t := trafficWords(s.Cell, settings)
		if !slices.Contains(traffics[p], t) {
			traffics[p] = append(traffics[p], t)
		}
	}
	var out []string
	for _, p := range ways {
		out = append(out, p+": "+strings.Join(traffics[p], ", "))
	}
	return strings.Join(out, "; ")
}

// pathWords is where a cell's traffic goes, in words.
func pathWords(c result.Cell) string {
	parts := []string{"between nodes"}
	if c.Placement == result.IntraHost {
		parts[0] = "inside a node"
	}
	parts = append(parts, c.Path)
	if c.Link != "" && c.Link != result.UnshapedLink {
		parts = append(parts, "link "+c.Link)
	}
	if c.MTU > 0 {
		parts = append(parts, fmt.Sprintf("MTU %d", c.MTU))
	}
	return strings.Join(parts, ", ")
}

// trafficWords is a cell's traffic with all message sizes and streams that the
// settings have of it: "tcp_stream 1472 and 9000 B".
func trafficWords(c result.Cell, settings []rank.Setting) string {
	bare := func(c result.Cell) result.Cell {
		c.MessageBytes, c.ResponseBytes, c.Streams = 0, 0, 0
		return c
	}
	var sizes, streams []string
	add := func(to *[]string, n int) {
		if s := fmt.Sprint(n); n > 0 && !slices.Contains(*to, s) {
			*to = append(*to, s)
		}
	}
	for _, s := range settings {
		if bare(s.Cell) == bare(c) {
			add(&sizes, s.Cell.MessageBytes)
			add(&streams, s.Cell.Streams)
		}
	}
	s := bare(c).Traffic()
	if len(sizes) > 0 {
		s += " " + report.And(sizes) + " B"
	}
	if len(streams) > 1 || len(streams) == 1 && streams[0] != "1" {
		s += " × " + report.And(streams)
	}
	return s
}
