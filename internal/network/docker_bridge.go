package network

import (
	"context"
	_ "embed"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/result"
)

//go:embed docker_bridge.conflist
var dockerBridgeConflist string

// dockerBridge is what docker run gives a container by default.
func dockerBridge() Network {
	n := Network{
		Kind:        result.KindModel,
		Name:        "docker/bridge",
		Summary:     "Docker's default bridge on one node: docker0, isolation chains, masquerade",
		Model:       "Docker Engine 27 (moby integration/network/bridge/iptablesdoc/generated/new-daemon.md, iptables over nf_tables)",
		LeavesOut:   "libnetwork itself (reference plugin bridge instead), published ports, the embedded DNS",
		NoServices:  "Docker has none of Kubernetes' services",
		NoInterHost: "Docker's bridge is on one machine, and other machines know no route to its containers",
		Needs:       []netns.Feature{netns.Veth(), netns.Bridge(), iptablesTool(), netns.NFTables(), netns.Conntrack()},
		Wants:       []netns.Feature{netns.BridgeNetfilter()},
		Plugins:     []string{"bridge", "host-local"},
		SetUp: func(ctx context.Context, self Node, _ []Node) error {
			// The daemon loads br_netfilter, whose default is that bridged
			// packets pass iptables.
			if err := KubernetesNode(self); err != nil {
				return err
			}
			return restore(ctx, self, dockerFilter(), dockerNAT(self))
		},
	}
	n.Conflist = template(dockerBridgeConflist, n)
	return n
}

func dockerFilter() *table {
	t := &table{name: "filter", policy: map[string]string{"FORWARD": "DROP"}}
	t.chain("DOCKER")
	t.chain("DOCKER-ISOLATION-STAGE-1", "-i docker0 ! -o docker0 -j DOCKER-ISOLATION-STAGE-2", "-j RETURN")
	t.chain("DOCKER-ISOLATION-STAGE-2", "-o docker0 -j DROP", "-j RETURN")
	t.chain("DOCKER-USER", "-j RETURN")
	t.add("FORWARD",
		"-j DOCKER-USER",
		"-j DOCKER-ISOLATION-STAGE-1",
		"-o docker0 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT",
		"-o docker0 -j DOCKER",
		"-i docker0 ! -o docker0 -j ACCEPT",
		"-i docker0 -o docker0 -j ACCEPT")
	return t
}

func dockerNAT(self Node) *table {
	t := &table{name: "nat"}
	t.chain("DOCKER", "-i docker0 -j RETURN")
	t.add("PREROUTING", "-m addrtype --dst-type LOCAL -j DOCKER")
	t.add("OUTPUT", "! -d 127.0.0.0/8 -m addrtype --dst-type LOCAL -j DOCKER")
	t.add("POSTROUTING", "-s "+self.PodCIDR.String()+" ! -o docker0 -j MASQUERADE")
	return t
}
