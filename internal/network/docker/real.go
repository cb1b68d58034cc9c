// Package docker has Docker's networks: those that each node's own dockerd makes, and
// models of them.
package docker

import (
	"context"
	_ "embed"
	"net/http"
	"net/netip"
	"strings"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/dataplane"
	"github.com/cnibench/cnibench/internal/result"
)

//go:embed real.conflist
var realConflist string

const noServices = "Docker has none of Kubernetes' services"

// engine is a network of Docker Engine itself, by its own name of it: each node runs a
// dockerd, and each pod is a container.
func engine(name, own string) network.Network {
	return network.Network{
		Kind:       result.KindReal,
		Name:       name,
		NoServices: noServices,
		Needs:      []netns.Feature{netns.Veth(), netns.Bridge(), tools(), network.UnshareTool(), dataplane.IPTablesTool(), netns.NFTables(), netns.Conntrack()},
		Wants:      []netns.Feature{netns.BridgeNetfilter()},
		Datapath:   dockerVersion,
		Conflist: func(self network.Node, nodes []network.Node) ([]byte, error) {
			return network.Template(strings.Replace(realConflist, "NETWORK", own, 1), network.Network{Name: name})(self, nodes)
		},
	}
}

// BridgeReal is what docker run gives a container by default.
func BridgeReal() network.Network {
	n := engine("docker/bridge-real", "bridge")
	n.Summary = "Docker Engine's own default bridge on one node: a dockerd on each node, a container for each pod"
	n.NoInterHost = "Docker's bridge is on one machine, and other machines know no route to its containers"
	n.SetUp = func(ctx context.Context, self network.Node, nodes []network.Node) error {
		bridge := netip.PrefixFrom(self.PodCIDR.Addr().Next(), self.PodCIDR.Bits())
		if err := startDocker(self, bridge); err != nil || self.Index < len(nodes) {
			return err
		}
		return awaitDocker(ctx, nodes, nil)
	}
	return n
}

// MACVLAN is a network of docker network create --driver macvlan --opt
// parent=eth0, with one subnet for all nodes and a range for each.
func MACVLAN() network.Network {
	const own = "macvlan0"
	n := engine("docker/macvlan", own)
	n.Summary = "Docker Engine's own driver macvlan: pods directly on the wire, one subnet for all nodes"
	n.NoHostPaths = "a node cannot reach its macvlan pods: the kernel passes nothing between a device and the " +
		"macvlan devices on it"
	n.NoEncryption = network.OnTheWire
	n.Needs = append(n.Needs, netns.MACVLAN())
	n.SetUp = func(ctx context.Context, self network.Node, nodes []network.Node) error {
		if err := startDocker(self, bridgeDefault()); err != nil || self.Index < len(nodes) {
			return err
		}
		return awaitDocker(ctx, nodes, func(ctx context.Context, self network.Node, d *client) error {
			return d.do(ctx, http.MethodPost, "/networks/create", dockerNetwork{
				Name: own, Driver: "macvlan", CheckDuplicate: true, Options: map[string]string{"parent": self.Device},
				IPAM: dockerIPAM{Config: []dockerSubnet{{
					Subnet: network.Pods().String(), IPRange: self.PodCIDR.String(), Gateway: network.Pods().Addr().Next().String(),
				}}},
			}, nil)
		})
	}
	return n
}

// bridgeDefault is the address of docker0 and its subnet as Docker chooses them.
func bridgeDefault() netip.Prefix { return netip.MustParsePrefix("172.17.0.1/16") }

// What POST /networks/create takes.
type (
	dockerNetwork struct {
		Name, Driver   string
		CheckDuplicate bool
		Attachable     bool
		Options        map[string]string
		IPAM           dockerIPAM
	}
	dockerIPAM   struct{ Config []dockerSubnet }
	dockerSubnet struct {
		Subnet  string
		IPRange string `json:",omitempty"`
		Gateway string
	}
)
