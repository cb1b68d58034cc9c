//go:build linux

package cli

import (
	"context"
	"os"
	"slices"

	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/kubeclient"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/testbed/lab"
	"github.com/cnibench/cnibench/internal/testbed/labkubernetes"
)

// labsUnder finds the labs among clusters by their API servers' addresses. Without
// root none is seen, and none rests.
func labsUnder(servers map[string]string) (resting, error) {
	out := resting{}
	if os.Getuid() != 0 {
		return out, nil
	}
	labs, err := lab.List(lab.Options{Dir: stateDir()})
	if err != nil {
		return nil, err
	}
	for name, server := range servers {
		for _, info := range labs {
			if info.Kubernetes != nil && info.Kubernetes.Server == server {
				out[name] = info.ID
			}
		}
	}
	return out, nil
}

// agentsUnder gives the processes of the network's agents on the nodes of clusters that are labs of
// this machine; of others it gives nil.
func agentsUnder(labs resting) (func(cluster, node string) []int, error) {
	if len(labs) == 0 {
		return func(string, string) []int { return nil }, nil
	}
	all, err := lab.List(lab.Options{Dir: stateDir()})
	if err != nil {
		return nil, err
	}
	known := map[string]map[string][]int{}
	for name, id := range labs {
		for _, info := range all {
			if info.ID == id && info.Kubernetes != nil {
				known[name] = labkubernetes.Agents(*info.Kubernetes)
			}
		}
	}
	return func(cluster, node string) []int { return known[cluster][node] }, nil
}

// inLabs is the campaign with the conditions of a lab where each of its clusters is one
// of this machine's labs, whose pods may have them. A cluster that cannot be reached is
// refused later.
func inLabs(c campaign.Campaign) campaign.Campaign {
	if os.Getuid() != 0 { // labs are seen by root alone
		return c
	}
	labs, err := lab.List(lab.Options{Dir: stateDir()})
	if err != nil {
		return c
	}
	allowed, err := netns.AllowsCongestionControl(campaign.LabAlgorithm)
	if err != nil {
		return c
	}
	for _, cluster := range c.Clusters {
		client, err := kubeclient.Connect(cluster.Kubeconfig, cluster.Context)
		if err != nil {
			return c
		}
		if !slices.ContainsFunc(labs, func(l lab.Info) bool {
			return l.Kubernetes != nil && l.Kubernetes.Server == client.Server && (allowed || l.Kubernetes.Algorithms)
		}) {
			return c
		}
	}
	return c.InLabs(known())
}

// focus lets one cluster go on and freezes the others; "" lets all go on.
func (r resting) focus(ctx context.Context, cluster string) error {
	for _, frozen := range []bool{false, true} {
		for _, id := range r {
			// One cluster may be there under several names (switch).
			if rest := cluster != "" && id != r[cluster]; rest != frozen {
				continue
			}
			if err := lab.SetFrozen(ctx, lab.Options{Dir: stateDir()}, id, frozen); err != nil {
				return err
			}
		}
	}
	return nil
}
