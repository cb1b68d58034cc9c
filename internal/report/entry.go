package report

import (
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/estimate"
	"github.com/cnibench/cnibench/internal/stat/summary"
)

// OfNetwork is a network of a cluster alone; "" where the testbed is none.
func OfNetwork(name, cluster string) result.Cell { return result.Cell{Network: name, Cluster: cluster} }

// EstimateOf finds a metric's estimate in a summary.
type EstimateOf func(summary.Cell, string) (estimate.Estimate, bool)

// AbsoluteOf finds a metric among the absolute values of a cell.
func AbsoluteOf(s summary.Cell, metric string) (estimate.Estimate, bool) {
	e, ok := s.Absolute[metric]
	return e, ok
}

// Entry is a row: a network, or the baseline.
type Entry struct {
	Name    string
	Summary summary.Cell
}

// Of is what the row is about.
func (e Entry) Of() result.Cell {
	return OfNetwork(e.Summary.Cell.Network, e.Summary.Cell.Cluster)
}

// Entries are the networks of a traffic that have a value, the baseline first.
func (d *Document) Entries(g *Group, t result.Cell) []Entry {
	var out []Entry
	for _, cluster := range g.BaseClusters() {
		if b, ok := g.Baselines[InCluster(t, cluster)]; ok && b.OK > 0 {
			out = append(out, Entry{HostOf(cluster) + " (baseline)", b})
		}
	}
	for _, n := range g.Networks {
		if s, ok := g.Cell(n, t); ok && s.OK > 0 {
			out = append(out, Entry{d.Name(n), s})
		}
	}
	return out
}

// AllEntries are the networks that have a value for any of some traffics, the
// baseline first, each with the first summary that it has.
func (d *Document) AllEntries(g *Group, traffics []result.Cell) []Entry {
	var out []Entry
	seen := map[string]bool{}
	add := func(e Entry) {
		if !seen[e.Name] {
			seen[e.Name] = true
			out = append(out, e)
		}
	}
	for _, t := range traffics {
		for _, cluster := range g.BaseClusters() {
			if b, ok := g.Baselines[InCluster(t, cluster)]; ok && b.OK > 0 {
				add(Entry{HostOf(cluster) + " (baseline)", b})
			}
		}
	}
	for _, n := range g.Networks {
		for _, t := range traffics {
			if s, ok := g.Cell(n, t); ok && s.OK > 0 {
				add(Entry{d.Name(n), s})
			}
		}
	}
	return out
}

// SummaryOf is what an entry's network, or the baseline, has for a traffic.
func (d *Document) SummaryOf(g *Group, e Entry, t result.Cell) (summary.Cell, bool) {
	if e.Summary.Cell.IsBaseline() {
		if b, ok := g.Baselines[InCluster(t, e.Summary.Cell.Cluster)]; ok {
			return b, true
		}
	}
	return g.Cell(e.Summary.Cell.Network, t)
}
