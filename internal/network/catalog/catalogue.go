package catalog

import (
	"github.com/cnibench/cnibench/internal/catalogue"
	"github.com/cnibench/cnibench/internal/network/ladder"
)

// Catalogue is what package catalogue keeps of Choices.
func Catalogue() []catalogue.Network {
	listed := map[string]bool{}
	for _, n := range List() {
		listed[n.Name] = true
	}
	var all []catalogue.Network
	for _, n := range Choices() {
		all = append(all, catalogue.Network{
			Name: n.Name, Summary: n.Summary, Kind: n.Kind, Model: n.Model, Encapsulation: n.Encapsulation,
			Variant: !listed[n.Name], Policy: n.Policy, Plugins: n.Plugins,
		})
	}
	return all
}

// CatalogueLadders is the same of the ladders, also of those with one step.
func CatalogueLadders() []catalogue.Ladder {
	var all []catalogue.Ladder
	for _, top := range ladder.Rungs() {
		l := catalogue.Ladder{Network: top.Network}
		for _, r := range ladder.Of(top.Network) {
			l.Rungs = append(l.Rungs, catalogue.Rung{Network: r.Network, Adds: r.Adds, Components: r.Components})
		}
		all = append(all, l)
	}
	return all
}

// CatalogueProxies is the same of the service proxies.
func CatalogueProxies() []catalogue.ServiceProxy {
	var all []catalogue.ServiceProxy
	for _, p := range ServiceProxies() {
		all = append(all, catalogue.ServiceProxy{Name: p.Name, Summary: p.Summary, Model: p.Model})
	}
	return all
}
