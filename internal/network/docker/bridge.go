package docker

import (
	"context"
	_ "embed"
	"net/netip"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/dataplane"
	"github.com/cnibench/cnibench/internal/result"
)

//go:embed bridge.conflist
var bridgeConflist string

// Bridge is what docker run gives a container by default.
func Bridge() network.Network {
	n := network.Network{
		Kind:        result.KindModel,
		Name:        "docker/bridge",
		Summary:     "Docker's default bridge on one node: docker0, isolation chains, masquerade",
		Model:       "Docker Engine 27 (moby integration/network/bridge/iptablesdoc/generated/new-daemon.md, iptables over nf_tables)",
		LeavesOut:   "libnetwork itself (reference plugin bridge instead), published ports, the embedded DNS",
		NoServices:  "Docker has none of Kubernetes' services",
		NoInterHost: "Docker's bridge is on one machine, and other machines know no route to its containers",
		Needs:       []netns.Feature{netns.Veth(), netns.Bridge(), dataplane.IPTablesTool(), netns.NFTables(), netns.Conntrack()},
		Wants:       []netns.Feature{netns.BridgeNetfilter()},
		Plugins:     []string{"bridge", "host-local"},
		SetUp: func(ctx context.Context, self network.Node, _ []network.Node) error {
			// The daemon loads br_netfilter, whose default is that bridged
			// packets pass iptables.
			if err := network.KubernetesNode(self); err != nil {
				return err
			}
			return dataplane.Restore(ctx, self, filter(), nat(self.PodCIDR))
		},
	}
	n.Conflist = network.Template(bridgeConflist, n)
	return n
}

// filter is the daemon's table for docker0.
func filter() *dataplane.Table {
	t := &dataplane.Table{Name: "filter", Policy: map[string]string{"FORWARD": "DROP"}}
	t.Chain("DOCKER")
	t.Chain("DOCKER-ISOLATION-STAGE-1", "-i docker0 ! -o docker0 -j DOCKER-ISOLATION-STAGE-2", "-j RETURN")
	t.Chain("DOCKER-ISOLATION-STAGE-2", "-o docker0 -j DROP", "-j RETURN")
	t.Chain("DOCKER-USER", "-j RETURN")
	t.Add("FORWARD",
		"-j DOCKER-USER",
		"-j DOCKER-ISOLATION-STAGE-1",
		"-o docker0 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT",
		"-o docker0 -j DOCKER",
		"-i docker0 ! -o docker0 -j ACCEPT",
		"-i docker0 -o docker0 -j ACCEPT")
	return t
}

// nat is the daemon's table for docker0 with a subnet.
func nat(subnet netip.Prefix) *dataplane.Table {
	t := &dataplane.Table{Name: "nat"}
	t.Chain("DOCKER", "-i docker0 -j RETURN")
	t.Add("PREROUTING", "-m addrtype --dst-type LOCAL -j DOCKER")
	t.Add("OUTPUT", "! -d 127.0.0.0/8 -m addrtype --dst-type LOCAL -j DOCKER")
	t.Add("POSTROUTING", "-s "+subnet.String()+" ! -o docker0 -j MASQUERADE")
	return t
}
