package cluster

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/cnibench/cnibench/internal/campaign"
)

func zoneOf(n corev1.Node) string { return n.Labels[corev1.LabelTopologyZone] }

// choosePairs chooses the pairs of nodes that are measured, where they are many;
// cells is how many there are of each pair.
func (c *cluster) choosePairs(cells int) error {
	if c.options.Pairs == "" {
		return nil
	}
	zones := map[string]string{}
	var names []string
	for _, n := range c.nodes {
		names = append(names, n.Name)
		zones[n.Name] = zoneOf(n)
	}
	c.pairs = campaign.EveryPair(names)
	if c.options.Pairs == campaign.PairsAcrossZones {
		c.pairs = slices.DeleteFunc(c.pairs, func(p [2]string) bool { return zones[p[0]] == zones[p[1]] })
	}
	if len(c.pairs) == 0 {
		what := "pairs of nodes need two that take pods"
		if c.options.Pairs == campaign.PairsAcrossZones {
			what = fmt.Sprintf("no two nodes that take pods are of different zones (label %s)", corev1.LabelTopologyZone)
		}
		return fmt.Errorf("%s: there are %d; others: %s", what, len(c.nodes), cmp.Or(c.unfit, "none"))
	}
	if n := len(c.pairs) * cells; n > campaign.MaxCells {
		return fmt.Errorf("%d pairs of %d nodes make %d cells, more than %d: name fewer nodes in the campaign's clusters", len(c.pairs), len(c.nodes), n, campaign.MaxCells)
	}
	if c.unfit != "" {
		c.options.Say("not among the pairs, as they take no pods: %s", c.unfit)
	}
	return nil
}
