package report

import (
	"cmp"
	"math"
	"slices"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/unit"
)

// document is the input, sorted for showing.
type document struct {
	Input
	groups []*group
	// unmeasured are the planned cells that have no record at all.
	unmeasured []result.Cell
}

// place is what the cells of a group have in common.
type place struct {
	path, placement, link, profile string
	mtu                            int
	rules                          rules
}

// rules is what nodes are programmed with beside what the network needs.
type rules struct {
	services     int
	serviceProxy string
	policies     int
	encryption   string
}

// group is one table: networks × traffics at one place.
type group struct {
	place    place
	networks []string
	// clusters has the cluster of each network that is of one: a network has
	// another name in each (plan.Cells).
	clusters map[string]string
	// traffics are cells with nothing but the workload's factors.
	traffics  []result.Cell
	cells     map[result.Cell]stat.CellSummary
	baselines map[result.Cell]stat.CellSummary // by traffic with a cluster
	rankings  map[result.Cell][]stat.Ranking   // by traffic
}

func placeOf(c result.Cell) place {
	return place{c.Path, c.Placement, c.Link, c.Profile, c.MTU, rules{c.Services, c.ServiceProxy, c.Policies, c.Encryption}}
}

func trafficOf(c result.Cell) result.Cell {
	c.Network, c.Cluster, c.Path, c.Placement, c.Link, c.Profile, c.MTU = "", "", "", "", "", "", 0
	c.Services, c.ServiceProxy, c.Policies, c.Encryption = 0, "", 0, ""
	return c
}

// at is the cell of a network and a traffic in the group.
func (g *group) at(network string, traffic result.Cell) result.Cell {
	p := g.place
	traffic.Cluster = g.clusters[network]
	traffic.Network, traffic.Path, traffic.Placement, traffic.Link, traffic.Profile, traffic.MTU =
		network, p.path, p.placement, p.link, p.profile, p.mtu
	traffic.Services, traffic.ServiceProxy, traffic.Policies, traffic.Encryption =
		p.rules.services, p.rules.serviceProxy, p.rules.policies, p.rules.encryption
	return traffic
}

// of is a traffic in the group, whatever the network.
func (g *group) of(traffic result.Cell) *result.Cell {
	c := g.at("", traffic)
	return &c
}

// cell is the summary of a network and a traffic; one without any record has
// nothing but its Cell.
func (g *group) cell(network string, traffic result.Cell) (stat.CellSummary, bool) {
	s, ok := g.cells[g.at(network, traffic)]
	return s, ok
}

func newDocument(in Input) *document {
	d := &document{Input: in}
	all := slices.Clone(in.Analysis.Cells)
	for _, c := range in.Plan.Cells {
		if _, ok := in.Analysis.Cell(c); !ok {
			d.unmeasured = append(d.unmeasured, c)
			all = append(all, stat.CellSummary{Cell: c})
		}
	}
	slices.SortFunc(d.unmeasured, result.Cell.Compare)
	slices.SortFunc(all, func(a, b stat.CellSummary) int { return a.Cell.Compare(b.Cell) })
	byCell, leanedOn := map[result.Cell]stat.CellSummary{}, map[result.Cell]bool{}
	for _, s := range all {
		byCell[s.Cell] = s
		if !s.Cell.IsBaseline() {
			leanedOn[s.Cell.Baseline()] = true
		}
	}
	byPlace := map[place]*group{}
	for _, s := range all {
		if leanedOn[s.Cell] {
			continue // shown as the baseline of others
		}
		if s.Cell.IsPair() {
			continue // shown as a mesh
		}
		p := placeOf(s.Cell)
		g := byPlace[p]
		if g == nil {
			g = &group{place: p, clusters: map[string]string{}, cells: map[result.Cell]stat.CellSummary{}, baselines: map[result.Cell]stat.CellSummary{}, rankings: map[result.Cell][]stat.Ranking{}}
			byPlace[p] = g
			d.groups = append(d.groups, g)
		}
		g.add(s, byCell)
	}
	for _, r := range in.Analysis.Rankings {
		if g := byPlace[placeOf(r.Group)]; g != nil {
			t := trafficOf(r.Group)
			g.rankings[t] = append(g.rankings[t], r)
		}
	}
	for _, g := range d.groups {
		g.sort()
	}
	return d
}

func (g *group) add(s stat.CellSummary, byCell map[result.Cell]stat.CellSummary) {
	t := trafficOf(s.Cell)
	g.cells[s.Cell] = s
	if !slices.Contains(g.networks, s.Cell.Network) {
		g.networks = append(g.networks, s.Cell.Network)
		g.clusters[s.Cell.Network] = s.Cell.Cluster
	}
	if !slices.Contains(g.traffics, t) {
		g.traffics = append(g.traffics, t)
	}
	if b, ok := byCell[s.Cell.Baseline()]; ok && !s.Cell.IsBaseline() {
		g.baselines[inCluster(t, s.Cell.Cluster)] = b
	}
}

// inCluster is a traffic in a cluster: what baselines are known by.
func inCluster(traffic result.Cell, cluster string) result.Cell {
	traffic.Cluster = cluster
	return traffic
}

// baseClusters are the clusters that have a baseline, sorted; "" where the
// testbed is none.
func (g *group) baseClusters() []string {
	var out []string
	for t := range g.baselines {
		if !slices.Contains(out, t.Cluster) {
			out = append(out, t.Cluster)
		}
	}
	slices.Sort(out)
	return out
}

// hostOf names the bare network of a cluster.
func hostOf(cluster string) string {
	if cluster == "" {
		return result.HostNetwork
	}
	return result.HostNetwork + " of " + cluster
}

// sort puts the networks in the order of the first ranking, then of their names.
func (g *group) sort() {
	slices.SortFunc(g.traffics, result.Cell.Compare)
	order := map[string]int{}
	for _, t := range g.traffics {
		for _, r := range g.rankings[t] {
			for i, n := range r.Ranked {
				if _, ok := order[n.Network]; !ok && !r.LinkBound {
					order[n.Network] = i + 1
				}
			}
		}
		if len(order) > 0 {
			break
		}
	}
	last := len(g.networks) + 1
	slices.SortStableFunc(g.networks, func(a, b string) int {
		return cmp.Or(cmp.Compare(cmp.Or(order[a], last), cmp.Or(order[b], last)), cmp.Compare(a, b))
	})
}

// hasEfficiency tells whether any network's efficiency is known for a traffic.
func (g *group) hasEfficiency(t result.Cell) bool {
	for _, n := range g.networks {
		if s, ok := g.cell(n, t); ok && s.Efficiency != nil {
			return true
		}
	}
	return false
}

// primary is the metric that a traffic is judged by in the group.
func (g *group) primary(t result.Cell) (unit.Metric, bool) {
	for _, n := range g.networks {
		if s, ok := g.cell(n, t); ok && s.Primary != "" {
			return findMetric(s.Primary)
		}
	}
	return unit.Metric{}, false
}

// findMetric finds a measured or derived metric.
func findMetric(name string) (unit.Metric, bool) {
	if m, ok := unit.FindMetric(name); ok {
		return m, true
	}
	for _, m := range stat.Derived() {
		if m.Name == name {
			return m, true
		}
	}
	return unit.Metric{Name: name, Label: name}, false
}

// metrics is every metric in the order in which reports show them.
func metrics() []unit.Metric { return append(unit.Metrics(), stat.Derived()...) }

// halfwidth is half the width of e's interval, in e's unit; NaN without one.
func halfwidth(e stat.Estimate) float64 {
	low, high, ok := e.Interval()
	if !ok {
		return math.NaN()
	}
	return (high - low) / 2
}

// The states of a cell.
const (
	measured    = "measured"
	unsupported = "unsupported"
	failed      = "failed"
	unmeasured  = "not measured"
)

func state(s stat.CellSummary) string {
	switch {
	case s.OK > 0:
		return measured
	case s.Unsupported != "":
		return unsupported
	case s.Failed > 0:
		return failed
	}
	return unmeasured
}
