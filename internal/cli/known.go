package cli

import (
	"slices"

	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/probe"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/testbed/lab"
	"github.com/cnibench/cnibench/internal/workload"
)

// known gathers the names that a campaign may use from the lists of the
// packages that own them.
func known() campaign.Known {
	k := campaign.Known{Testbeds: []string{"lab", "hosts", campaign.Kubernetes}, Profiles: profile.Names(), Probes: probe.Names()}
	for _, n := range network.List() {
		k.Networks = append(k.Networks, n.Name)
		if n.Policy {
			k.Enforcing = append(k.Enforcing, n.Name)
		}
	}
	for _, p := range network.ServiceProxies() {
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
