package report

import (
	"cmp"
	"slices"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/rank"
	"github.com/cnibench/cnibench/internal/stat/summary"
	"github.com/cnibench/cnibench/internal/unit"
)

// Group is one table: networks × traffics in one situation.
type Group struct {
	Situation Situation
	Networks  []string
	// Clusters has the cluster of each network that has one: a network has
	// another name in each (plan.Cells).
	Clusters map[string]string
	// Traffics are cells with nothing but the workload's factors.
	Traffics  []result.Cell
	cells     map[result.Cell]summary.Cell
	Baselines map[result.Cell]summary.Cell   // by traffic with a cluster
	Rankings  map[result.Cell][]rank.Ranking // by traffic
}

// At is the cell of a network and a traffic in the group.
func (g *Group) At(network string, traffic result.Cell) result.Cell {
	p := g.Situation
	traffic.Cluster = g.Clusters[network]
	traffic.Network, traffic.Path, traffic.Placement, traffic.Link, traffic.Profile, traffic.MTU =
		network, p.Path, p.placement, p.link, p.profile, p.mtu
	traffic.Services, traffic.ServiceProxy, traffic.Policies, traffic.Encryption =
		p.Rules.services, p.Rules.serviceProxy, p.Rules.Policies, p.Rules.encryption
	return traffic
}

// Of is a traffic in the group, whatever the network.
func (g *Group) Of(traffic result.Cell) *result.Cell {
	c := g.At("", traffic)
	return &c
}

// Cell is the summary of a network and a traffic; one without any record has
// nothing but its Cell.
func (g *Group) Cell(network string, traffic result.Cell) (summary.Cell, bool) {
	s, ok := g.cells[g.At(network, traffic)]
	return s, ok
}

func (g *Group) add(s summary.Cell, byCell map[result.Cell]summary.Cell) {
	t := TrafficOf(s.Cell)
	g.cells[s.Cell] = s
	if !slices.Contains(g.Networks, s.Cell.Network) {
		g.Networks = append(g.Networks, s.Cell.Network)
		g.Clusters[s.Cell.Network] = s.Cell.Cluster
	}
	if !slices.Contains(g.Traffics, t) {
		g.Traffics = append(g.Traffics, t)
	}
	if b, ok := byCell[s.Cell.Baseline()]; ok && !s.Cell.IsBaseline() {
		g.Baselines[InCluster(t, s.Cell.Cluster)] = b
	}
}

// InCluster is a traffic in a cluster: what baselines are known by.
func InCluster(traffic result.Cell, cluster string) result.Cell {
	traffic.Cluster = cluster
	return traffic
}

// BaseClusters are the clusters that have a baseline, sorted; "" where the
// testbed is none.
func (g *Group) BaseClusters() []string {
	var out []string
	for t := range g.Baselines {
		if !slices.Contains(out, t.Cluster) {
			out = append(out, t.Cluster)
		}
	}
	slices.Sort(out)
	return out
}

// HostOf names the bare network of a cluster.
func HostOf(cluster string) string {
	if cluster == "" {
		return result.HostNetwork
	}
	return result.HostNetwork + " of " + cluster
}

// sort puts the networks in the order of the first ranking, then of their names.
func (g *Group) sort() {
	slices.SortFunc(g.Traffics, result.Cell.Compare)
	order := map[string]int{}
	for _, t := range g.Traffics {
		for _, r := range g.Rankings[t] {
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
	last := len(g.Networks) + 1
	slices.SortStableFunc(g.Networks, func(a, b string) int {
		return cmp.Or(cmp.Compare(cmp.Or(order[a], last), cmp.Or(order[b], last)), cmp.Compare(a, b))
	})
}

// HasEfficiency tells whether any network's efficiency is known for a traffic.
func (g *Group) HasEfficiency(t result.Cell) bool {
	for _, n := range g.Networks {
		if s, ok := g.Cell(n, t); ok && s.Efficiency != nil {
			return true
		}
	}
	return false
}

// Primary is the metric that a traffic is judged by in the group.
func (g *Group) Primary(t result.Cell) (unit.Metric, bool) {
	for _, n := range g.Networks {
		if s, ok := g.Cell(n, t); ok && s.Primary != "" {
			return FindMetric(s.Primary)
		}
	}
	return unit.Metric{}, false
}

// Title says where a group's traffic went.
func (g *Group) Title() string { return g.Situation.String() }
