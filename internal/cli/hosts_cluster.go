//go:build linux

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"net/url"

	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/kubeclient"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/testbed/baremetal"
	"github.com/cnibench/cnibench/internal/testbed/cluster"
)

// joinCluster lets hosts be measured as the nodes of the Kubernetes that they are,
// and gives the campaign with the network that it has.
func joinCluster(ctx context.Context, hosts *baremetal.Testbed, c campaign.Campaign, f runFlags, stderr io.Writer) (campaign.Campaign, error) {
	if err := hosts.Bootstrap(ctx); err != nil {
		return c, err
	}
	if !hosts.HasCluster() { // it does not answer, and the others go on
		return c, nil
	}
	c, notes := c.OnNodes()
	for _, note := range notes {
		fmt.Fprintln(stderr, "note: "+note)
	}
	path, client, err := connectCluster(ctx, hosts)
	if err != nil {
		return c, err
	}
	var nodes [2]string
	for i, address := range hosts.Addresses() {
		if nodes[i], err = client.NodeAt(ctx, address); err != nil {
			return c, fmt.Errorf("%w; pods and hosts can be compared on one network alone: cnibench_address must be the node's", err)
		}
	}
	pods := c
	pods.Clusters = []campaign.Cluster{{Kubeconfig: path, Nodes: nodes[:]}}
	under, err := openClusters(pods, f, nil, stderr)
	if err != nil {
		return c, err
	}
	found, err := under.Prepare(ctx, plan.Cells(c.Named(campaign.Found{Network: campaign.Detected, Enforces: true})))
	if err != nil {
		return c, err
	}
	fmt.Fprintf(stderr, "%s and %s are nodes of a cluster with network %s\n", nodes[0], nodes[1], found[0].Network)
	hosts.Join(under, nodes)
	return c.Named(found[0]), nil
}

// connectCluster uses the kubeconfig of the inventory's control plane.
func connectCluster(ctx context.Context, hosts *baremetal.Testbed) (string, *kubeclient.Client, error) {
	path, err := hosts.Kubeconfig(ctx)
	if err != nil {
		return "", nil, err
	}
	client, err := kubeclient.Connect(path, "")
	if err != nil {
		return "", nil, err
	}
	if u, err := url.Parse(client.Server); err == nil {
		if a, err := netip.ParseAddr(u.Hostname()); err == nil && a.IsLoopback() {
			return "", nil, fmt.Errorf("the kubeconfig of the control plane connects to %s, which is the control plane itself: name one in cnibench_kubeconfig that connects to its address", client.Server)
		}
	}
	return path, client, nil
}

// destroy puts the hosts back as they were, and deletes what a killed run left in
// their cluster.
func destroy(ctx context.Context, hosts *baremetal.Testbed, stderr io.Writer) error {
	err := hosts.Destroy(ctx)
	if err != nil || !hosts.HasCluster() {
		return err
	}
	_, client, err := connectCluster(ctx, hosts)
	if err == nil {
		ctx, cancel := context.WithTimeoutCause(ctx, cleanWithin, fmt.Errorf("not gone within %v", cleanWithin))
		defer cancel()
		_, err = cluster.Clean(ctx, client, "", sayOn(stderr))
	}
	if err != nil {
		return errors.Join(errors.New("the hosts are as they were, and their cluster may not be"), err)
	}
	return nil
}
