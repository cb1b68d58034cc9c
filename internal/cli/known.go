package cli

import (
	"slices"

	"github.com/cnibench/cnibench/internal/buildable"
	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/probe"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/workload"
)

// known gathers the names that a campaign may use from the lists of the
// packages that own them.
func known() campaign.Known {
	k := campaign.Known{Testbeds: []string{"lab", campaign.Hosts, campaign.Kubernetes}, Profiles: profile.Names(), Probes: probe.Names()}
	for _, n := range networks() {
		k.Networks = append(k.Networks, n.Name)
		if n.Policy {
			k.Enforcing = append(k.Enforcing, n.Name)
		}
	}
	for _, l := range ladders() {
		if len(l.Steps) > 1 && !result.IsLadderOnly(l.Network) {
			k.Ladders = append(k.Ladders, campaign.Ladder{Network: l.Network, Networks: networksOf(l)})
		}
	}
	for _, p := range serviceProxies() {
		k.ServiceProxies = append(k.ServiceProxies, p.Name)
	}
	for _, l := range links() {
		k.Links = append(k.Links, l.Name)
	}
	for _, w := range workload.List() {
		k.Workloads = append(k.Workloads, w.Spec())
	}
	return k
}

// withoutProbes are those that a campaign does not name.
func withoutProbes(c campaign.Campaign) []string {
	return slices.DeleteFunc(probe.Names(), func(name string) bool { return slices.Contains(c.Probes, name) })
}

// ladderOf gives the statistics a network's ladder.
func ladderOf(name string) []dataset.Step {
	var out []dataset.Step
	for _, l := range ladders() {
		if l.Network != name {
			continue
		}
		for _, r := range l.Steps {
			out = append(out, dataset.Step{Network: r.Network, Adds: r.Adds, Components: r.Components})
		}
	}
	return out
}

// networksOf are the networks of a ladder.
func networksOf(l buildable.Ladder) []string {
	all := []string{result.HostNetwork}
	for _, r := range l.Steps {
		all = append(all, r.Network)
	}
	return all
}
