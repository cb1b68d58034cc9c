package reference

import (
	_ "embed"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/result"
)

//go:embed macvlan.conflist
var macvlanConflist string

// MACVLAN is the reference plugin macvlan in mode bridge: the pods of all nodes
// are in one subnet on the wire itself, each node giving out addresses of its
// own range.
func MACVLAN() network.Network {
	n := network.Network{
		Kind:    result.KindReal,
		Name:    "macvlan",
		Summary: "reference plugin macvlan: pods directly on the wire, one subnet for all nodes",
		IPv6:    true,
		Needs:   []netns.Feature{netns.MACVLAN()},
		Plugins: []string{"macvlan", "host-local"},
		NoHostPaths: "a node cannot reach its macvlan pods: the kernel passes nothing between a device and the " +
			"macvlan devices on it",
		NoEncryption: network.OnTheWire,
		NoServices:   "its pods are on the wire, and their packets do not pass the node",
	}
	n.Conflist = network.Template(macvlanConflist, n)
	return n
}
