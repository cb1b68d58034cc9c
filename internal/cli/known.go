package cli

import (
	"slices"

	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/network/catalog"
	"github.com/cnibench/cnibench/internal/network/ladder"
	"github.com/cnibench/cnibench/internal/probe"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/testbed/lab"
	"github.com/cnibench/cnibench/internal/workload"
)

// known gathers the names that a campaign may use from the lists of the
// packages that own them.
func known() campaign.Known {
	k := campaign.Known{Testbeds: []string{"lab", campaign.Hosts, campaign.Kubernetes}, Profiles: profile.Names(), Probes: probe.Names()}
	for _, n := range catalog.Choices() {
		k.Networks = append(k.Networks, n.Name)
		if n.Policy {
			k.Enforcing = append(k.Enforcing, n.Name)
		}
	}
	for _, name := range ladder.Names() {
		k.Ladders = append(k.Ladders, campaign.Ladder{Network: name, Rungs: rungsOf(name)})
	}
	for _, p := range catalog.ServiceProxies() {
		k.ServiceProxies = append(k.ServiceProxies, p.Name)
	}
	for _, l := range lab.Links() {
		k.Links = append(k.Links, l.Name)
	}
	for _, w := range workload.List() {
		k.Workloads = append(k.Workloads, w.Spec())
	}
	return k
}

// linkRate is the rate of a link of the lab, where it has one.
func linkRate(name string) (bitsPerSecond float64, ok bool) {
	for _, l := range lab.Links() {
		if l.Name == name && l.RateBitsPerSecond > 0 {
			return float64(l.TotalBitsPerSecond()), true
		}
	}
	return 0, false
}

// withoutProbes are those that a campaign does not name.
func withoutProbes(c campaign.Campaign) []string {
	return slices.DeleteFunc(probe.Names(), func(name string) bool { return slices.Contains(c.Probes, name) })
}

// ladderOf tells the statistics of a network's ladder.
func ladderOf(name string) []stat.Rung {
	var out []stat.Rung
	for _, r := range ladder.Of(name) {
		out = append(out, stat.Rung{Network: r.Network, Adds: r.Adds, Components: r.Components})
	}
	return out
}

// rungsOf are the networks of a network's ladder.
func rungsOf(name string) []string {
	names := []string{result.HostNetwork}
	for _, r := range ladder.Of(name) {
		names = append(names, r.Network)
	}
	return names
}
