package catalog

import (
	"github.com/cnibench/cnibench/internal/buildable"
	"github.com/cnibench/cnibench/internal/network/ladder"
)

// Names is what package buildable keeps of Choices.
func Names() []buildable.Network {
	listed := map[string]bool{}
	for _, n := range List() {
		listed[n.Name] = true
	}
	var all []buildable.Network
	for _, n := range Choices() {
		all = append(all, buildable.Network{
			Name: n.Name, Summary: n.Summary, Kind: n.Kind, Model: n.Model, Encapsulation: n.Encapsulation,
			Variant: !listed[n.Name], Policy: n.Policy, Plugins: n.Plugins,
		})
	}
	return all
}

// LadderNames is the same of the ladders, also of those with one step.
func LadderNames() []buildable.Ladder {
	var all []buildable.Ladder
	for _, top := range ladder.Steps() {
		l := buildable.Ladder{Network: top.Network}
		for _, r := range ladder.Of(top.Network) {
			l.Steps = append(l.Steps, buildable.Step{Network: r.Network, Adds: r.Adds, Components: r.Components})
		}
		all = append(all, l)
	}
	return all
}

// ServiceProxyNames is the same of the service proxies.
func ServiceProxyNames() []buildable.ServiceProxy {
	var all []buildable.ServiceProxy
	for _, p := range ServiceProxies() {
		all = append(all, buildable.ServiceProxy{Name: p.Name, Summary: p.Summary, Model: p.Model})
	}
	return all
}
