// Package catalog lists what a lab can build: networks, service proxies, and the CNI
// plugins and other programs that this program is itself. It alone knows every family.
package catalog

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/antrea"
	"github.com/cnibench/cnibench/internal/network/bigtcp"
	"github.com/cnibench/cnibench/internal/network/calico"
	"github.com/cnibench/cnibench/internal/network/canal"
	"github.com/cnibench/cnibench/internal/network/cilium"
	"github.com/cnibench/cnibench/internal/network/docker"
	"github.com/cnibench/cnibench/internal/network/flannel"
	"github.com/cnibench/cnibench/internal/network/flowtable"
	"github.com/cnibench/cnibench/internal/network/host"
	"github.com/cnibench/cnibench/internal/network/kuberouter"
	"github.com/cnibench/cnibench/internal/network/ladder"
	"github.com/cnibench/cnibench/internal/network/mesh"
	"github.com/cnibench/cnibench/internal/network/ovn"
	"github.com/cnibench/cnibench/internal/network/podman"
	"github.com/cnibench/cnibench/internal/network/reference"
	"github.com/cnibench/cnibench/internal/network/serviceproxy"
	"github.com/cnibench/cnibench/internal/network/sockmap"
	"github.com/cnibench/cnibench/internal/network/spiderpool"
	"github.com/cnibench/cnibench/internal/network/weave"
	"github.com/cnibench/cnibench/internal/result"
)

// List is every network, in the order in which help shows them.
func List() []network.Network {
	return append([]network.Network{
		host.Network(),
		reference.Bridge(),
		docker.Bridge(),
		docker.BridgeReal(),
		docker.Host(),
		reference.MACVLAN(),
		docker.MACVLAN(),
		podman.Bridge(),
		podman.MACVLAN(),
		podman.Pasta(),
		flannel.VXLAN(),
		flannel.VXLANNoOffload(),
		flannel.HostGW(),
		flannel.UDP(),
		flannel.IPIP(),
		flannel.WireGuard(),
		calico.Direct(),
		calico.DirectPolicy(),
		calico.IPIP(),
		calico.IPIPPolicy(),
		calico.VXLAN(),
		calico.VXLANPolicy(),
		calico.EBPF(),
		canal.Network(),
		kuberouter.Network(),
		kuberouter.Policy(),
		spiderpool.MACVLAN(),
		spiderpool.MACVLANRouted(),
		spiderpool.IPVLAN(),
		spiderpool.SRIOV(),
		docker.Overlay(),
		docker.OverlayReal(),
		host.Singularity(),
		host.Charliecloud(),
		host.Apptainer(),
		cilium.Native(),
		cilium.NativePolicy(),
		cilium.VXLAN(),
		cilium.VXLANPolicy(),
		cilium.Geneve(),
		cilium.NativeNetkit(),
		cilium.VXLANNetkit(),
		antrea.Geneve(),
		antrea.GenevePolicy(),
		antrea.NoEncap(),
		antrea.NoEncapPolicy(),
		ovn.Geneve(),
		ovn.GenevePolicy(),
		ovn.NoOverlay(),
		ovn.NoOverlayPolicy(),
		ovn.KubeOVN(),
		weave.Fastdp(),
		weave.Sleeve(),
	}, onTop()...)
}

// onTop are networks on top of others, and the steps of ladders.
func onTop() []network.Network {
	return []network.Network{
		sockmap.On(calico.Direct()),
		sockmap.On(reference.MACVLAN()),
		bigtcp.On(reference.Bridge()),
		flowtable.On(reference.Bridge(), reference.BridgeDevice),
		mesh.Sidecar(reference.Bridge()),
		mesh.NodeProxy(reference.Bridge()),
		ladder.Bridge(reference.Bridge()),
		ladder.Conntrack(calico.Direct(), "conntrack"),
		ladder.Conntrack(reference.Bridge(), "bridge-conntrack"),
	}
}

// Choices is every network that can be asked for: those of List, and each that
// has pods with the acceleration on top of it, which List shows on two alone.
func Choices() []network.Network {
	all := List()
	for _, n := range List() {
		fast := sockmap.On(n)
		ladderOnly := strings.HasPrefix(n.Name, result.LadderPrefix)
		known := slices.ContainsFunc(all, func(n network.Network) bool { return n.Name == fast.Name })
		if !n.HostNetwork && n.Cgroup == nil && !n.BigTCP && n.Proxied == nil && n.Bypassed == nil && !ladderOnly && !known {
			all = append(all, fast)
		}
	}
	return all
}

// Find looks a network up by name; the error lists the names of List.
func Find(name string) (network.Network, error) {
	for _, n := range Choices() {
		if n.Name == name {
			return n, nil
		}
	}
	return named("network", name, List(), func(n network.Network) string { return n.Name })
}

// named finds one of a list by its name.
func named[T any](what, name string, list []T, nameOf func(T) string) (T, error) {
	var known []string
	for _, x := range list {
		if nameOf(x) == name {
			return x, nil
		}
		known = append(known, nameOf(x))
	}
	var none T
	return none, fmt.Errorf("unknown %s %q (known: %s)", what, name, strings.Join(known, ", "))
}

// ServiceProxies is every service proxy, in the order in which help shows them.
func ServiceProxies() []network.ServiceProxy {
	return []network.ServiceProxy{serviceproxy.IPTables(), serviceproxy.NFTables(), serviceproxy.IPVS(), serviceproxy.EBPF(), serviceproxy.XDP(), serviceproxy.Ingress(), antrea.ServiceProxy(), ovn.ServiceProxy()}
}

// FindServiceProxy looks a service proxy up by name; the error lists the known
// names.
func FindServiceProxy(name string) (network.ServiceProxy, error) {
	return named("service proxy", name, ServiceProxies(), func(p network.ServiceProxy) string { return p.Name })
}
