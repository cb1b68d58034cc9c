package docker

import (
	"context"
	"fmt"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
)

// Host is docker run --network host: a container in its node's own network namespace. What
// it costs more than the bare node are the rules that dockerd loads there.
func Host() network.Network {
	n := engine("docker/host", "host")
	n.Summary = "Docker Engine's network host: a container in the node's own network, on nodes with a dockerd and its rules"
	n.HostNetwork, n.IPv6 = true, true
	n.Conflist, n.NoServices = nil, "" // no pod is attached to anything
	n.SetUp = func(ctx context.Context, self network.Node, nodes []network.Node) error {
		if err := startDocker(self, bridgeDefault()); err != nil || self.Index < len(nodes) {
			return err
		}
		return awaitDocker(ctx, nodes, runOnHost)
	}
	return n
}

// runOnHost starts a container with the node's network, and verifies that it has it.
func runOnHost(ctx context.Context, self network.Node, d *client) error {
	const name = "host"
	if err := d.run(ctx, name, "host", ""); err != nil {
		return err
	}
	pid, err := d.process(ctx, name)
	if err != nil {
		return err
	}
	own, err := self.NS.Inode()
	if err != nil {
		return err
	}
	its, err := netns.NS{Name: "container " + name, Path: fmt.Sprintf("/proc/%d/ns/net", pid)}.Inode()
	if err != nil {
		return err
	}
	if its != own {
		return fmt.Errorf("dockerd: container %s has a network namespace of its own", name)
	}
	return nil
}
