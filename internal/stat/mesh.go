package stat

import (
	"cmp"
	"slices"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/stat/estimate"
	"github.com/cnibench/cnibench/internal/stat/summary"
	"github.com/cnibench/cnibench/internal/unit"
)

// Mesh is one traffic on one network between pairs of nodes.
type Mesh struct {
	// Cell is what all pairs have in common: it has no nodes.
	Cell result.Cell `json:"cell"`
	// Metric is what the pairs are judged by.
	Metric string `json:"metric"`
	// Median is that of the pairs' values, in base units.
	Median float64 `json:"median"`
	// Pairs are those that were measured, the slowest first.
	Pairs []MeshPair `json:"pairs"`
}

// MeshPair is one pair of nodes in a mesh.
type MeshPair struct {
	Client string `json:"client_node"`
	Server string `json:"server_node"`
	// Value is the geometric mean of the metric over blocks, in base units.
	Value estimate.Estimate `json:"value"`
	// OfMedian is Value against the median of all pairs: 1 is the same, less is
	// worse, whichever way the metric is better.
	OfMedian float64 `json:"of_median"`
	// Slow reports that all of Value's interval is worse than the median. Of pairs that
	// are alike, that is so of 2.5 % by chance, at 95 %.
	Slow bool `json:"slow,omitempty"`
	// Efficiency is that of the pair's cell; nil where it has none.
	Efficiency *estimate.Estimate `json:"efficiency,omitempty"`
}

// meshes are those of the campaign, in the order of their cells.
func meshes(c *dataset.Dataset, cells []summary.Cell) []Mesh {
	index := map[result.Cell]int{}
	var out []Mesh
	for _, s := range cells {
		if !s.Cell.IsPair() || s.Mean == nil || s.Mean.Value <= 0 {
			continue
		}
		of := s.Cell.OfAnyPair()
		i, have := index[of]
		if !have {
			i = len(out)
			index[of] = i
			out = append(out, Mesh{Cell: of, Metric: s.Primary})
		}
		if s.Primary != out[i].Metric {
			continue
		}
		out[i].Pairs = append(out[i].Pairs, MeshPair{Client: s.Cell.ClientNode, Server: s.Cell.ServerNode, Value: *s.Mean, Efficiency: s.Efficiency})
	}
	for i := range out {
		out[i].compare(c)
	}
	return out
}

// compare compares the pairs with each other.
func (m *Mesh) compare(c *dataset.Dataset) {
	var values []float64
	for _, p := range m.Pairs {
		values = append(values, p.Value.Value)
	}
	m.Median = estimate.MedianOf(values)
	less := c.Better[m.Metric] == unit.Lower
	for i, p := range m.Pairs {
		m.Pairs[i].OfMedian, m.Pairs[i].Slow = p.Value.Value/m.Median, p.Value.High != nil && *p.Value.High < m.Median
		if less {
			m.Pairs[i].OfMedian, m.Pairs[i].Slow = m.Median/p.Value.Value, p.Value.Low != nil && *p.Value.Low > m.Median
		}
	}
	slices.SortStableFunc(m.Pairs, func(p, q MeshPair) int {
		return cmp.Or(cmp.Compare(p.OfMedian, q.OfMedian), cmp.Compare(p.Client, q.Client), cmp.Compare(p.Server, q.Server))
	})
}
