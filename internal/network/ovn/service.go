package ovn

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	"github.com/vishvananda/netlink"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/dataplane"
)

// What OVN-Kubernetes calls the parts of its node ports and services.
const (
	ovnBalancerGroup = "clusterLBGroup"
	ovnNodePorts     = "OVN-KUBE-NODEPORT"
	ovnToManagement  = "OVN-KUBE-SNAT-MGMTPORT"

	// ovnHostMasquerade is OVN-Kubernetes' address for what a node sends to services
	// (go-controller/pkg/config, HostMasqueradeIP).
	ovnHostMasquerade = "169.254.169.2"

	// ovnHairpin is the source of what a pod sends to itself by a service
	// (V4OVNServiceHairpinMasqueradeIP), ovnHairpin6 the same of IPv6.
	ovnHairpin, ovnHairpin6 = "169.254.169.5", "fd69::5"
)

// ServiceProxy carries services out by load balancers of OVN's networks.
func ServiceProxy() network.ServiceProxy {
	return network.ServiceProxy{
		Name:    "ovn",
		Summary: "OVN's load balancers, one for each service and protocol, as OVN-Kubernetes makes them",
		Model: "OVN-Kubernetes docs/design and go-controller/pkg/ovn/controller/services (load balancers, their group and options), " +
			"pkg/node (NodePorts in gateway mode local), set with ovn-nbctl",
		LeavesOut: "ovnkube, gateway routers and their load balancers, session affinity, external IPs, traffic policies, " +
			"templates of load balancers, services for programs of nodes, IPv6; " +
			"on ovn/no-overlay-policy, an endpoint of a NodePort that is not on the node that was asked; " +
			"fragments of datagrams to services, where its switch runs in user space: connection tracking loses them there",
		Family: "ovn/", UserSpaceLoses: network.AllFragments, Refuses: kubeOVNRefuses,
		Needs: []netns.Feature{dataplane.OVSTools(), ovnTools(), dataplane.OVSCarries(), dataplane.IPTablesTool(), netns.NFTables(), netns.Conntrack()},
		Start: ovnStartNodePorts,
		Sync: func(ctx context.Context, self network.Node, services []network.Service) error {
			if err := ovnSyncNodePorts(ctx, self, services); err != nil {
				return fmt.Errorf("%s: node ports: %w", self.Name, err)
			}
			if err := ovnSyncBalancers(ctx, self, services); err != nil {
				return fmt.Errorf("%s: services: %w", self.Name, err)
			}
			return nil
		},
		Update: func(ctx context.Context, self network.Node, services []network.Service, changed int) error {
			args := append([]string{"--wait=hv"}, ovnChanged(self, services[changed])...)
			if _, err := nodeOVN(self).nbctl(ctx, args...); err != nil {
				return fmt.Errorf("%s: services: %w", self.Name, err)
			}
			return nil
		},
	}
}

// ovnStartNodePorts are the rules by which connections to NodePorts, from elsewhere, get to
// the services' addresses and with that into the switch.
func ovnStartNodePorts(ctx context.Context, self network.Node) error {
	nat := &dataplane.Table{Name: "nat"}
	nat.Chain(ovnNodePorts)
	nat.Chain(ovnToManagement)
	nat.Add("PREROUTING", "-j "+ovnNodePorts)
	nat.Add("POSTROUTING", "-j "+ovnToManagement)
	return dataplane.Restore(ctx, self, nat)
}

// ovnSyncNodePorts fills these rules, and leads the services' addresses to the node's own
// device.
func ovnSyncNodePorts(ctx context.Context, self network.Node, services []network.Service) error {
	h, dev, err := netns.Port{NS: self.NS, Device: ovnManagement}.Open()
	if err != nil {
		return err
	}
	defer h.Close()
	behind := []*netlink.Route{{Dst: network.IPNet(network.ServiceRange())}}
	tunnels, err := ovnTunnels(h, dev)
	if err != nil {
		return err
	}
	if !tunnels {
		behind = append(behind, &netlink.Route{Dst: network.IPNet(network.Single(netip.MustParseAddr(ovnHostMasquerade)))})
	}
	for _, r := range behind {
		r.LinkIndex, r.Gw = dev.Attrs().Index, ovnGateway(self).AsSlice()
		if err := h.RouteReplace(r); err != nil {
			return fmt.Errorf("route to %s: %w", r.Dst, err)
		}
	}
	if !tunnels {
		if _, err := nodeOVN(self).nbctl(ctx, ovnMasqueradeRoutes(self)...); err != nil {
			return err
		}
	}
	return dataplane.Restore(ctx, self, ovnNodePortRules(self, services, tunnels))
}

// ovnTunnels reports whether all pods are behind the node's own device, as they are where OVN
// has a tunnel to those of other nodes.
func ovnTunnels(h *netlink.Handle, dev netlink.Link) (bool, error) {
	routes, err := h.RouteList(dev, netlink.FAMILY_V4)
	if err != nil {
		return false, err
	}
	for _, r := range routes {
		if r.Dst != nil && r.Dst.String() == network.Pods().String() {
			return true, nil
		}
	}
	return false, nil
}

// ovnMasqueradeRoutes is ovn-nbctl's commands for a router without tunnels. A connection that
// came for a NodePort can have an endpoint on another node. Its packets then leave OVN again by
// the node's own device, and its answers come back the same way. The node's stack takes no
// packet from outside that has the node's own address, so they have another one. A router
// prefers the longest prefix, and of two that are as long that of a switch of its own: the
// prefix is as long as the pods', so that packets to pods of this node do not leave.
func ovnMasqueradeRoutes(self network.Node) []string {
	prefix := netip.PrefixFrom(netip.MustParseAddr(ovnHostMasquerade), self.PodCIDR.Bits()).Masked()
	var args []string
	for _, policy := range []string{"src-ip", "dst-ip"} {
		args = append(args, "--", "--may-exist", "--policy="+policy, "lr-route-add", ovnRouter, prefix.String(), ovnManagementAddress(self).String())
	}
	return args
}

// ovnNodePortRules has a rule for each NodePort. What enters OVN for a service has an address
// to which answers from all nodes find back.
func ovnNodePortRules(self network.Node, services []network.Service, tunnels bool) *dataplane.Table {
	nat := &dataplane.Table{Name: "nat"}
	nat.Chain(ovnNodePorts)
	for _, s := range services {
		if s.NodePort != 0 {
			nat.Add(ovnNodePorts, fmt.Sprintf("-p %s -m addrtype --dst-type LOCAL -m %s --dport %d -j DNAT --to-destination %s", s.Protocol, s.Protocol, s.NodePort, s.Address))
		}
	}
	source := ovnManagementAddress(self).String()
	if !tunnels {
		source = ovnHostMasquerade
	}
	nat.Chain(ovnToManagement, fmt.Sprintf("-o %s -d %s -j SNAT --to-source %s", ovnManagement, network.ServiceRange(), source))
	if !tunnels {
		nat.Add(ovnToManagement, fmt.Sprintf("-s %s ! -o %s -j MASQUERADE", source, ovnManagement))
	}
	return nat
}

// ovnBalancer is a load balancer: all ports of a service that have one protocol.
type ovnBalancer struct {
	name, owner, protocol string
	vips                  []string // "VIP"="ENDPOINT,ENDPOINT", as ovn-nbctl takes them
}

// ovnBalancers are those of services, at the address and port that at gives. Their names are
// OVN-Kubernetes': Service_default/echo_TCP_cluster, where where is "cluster".
func ovnBalancers(services []network.Service, where string, at func(network.Service) netip.AddrPort) []ovnBalancer {
	var all []ovnBalancer
	index := map[string]int{}
	for _, s := range services {
		vip := at(s)
		if !vip.IsValid() {
			continue
		}
		name := ovnBalancerName(s, where)
		i, there := index[name]
		if !there {
			i = len(all)
			index[name] = i
			all = append(all, ovnBalancer{name: name, owner: s.Name, protocol: s.Protocol})
		}
		all[i].vips = append(all[i].vips, ovnVIP(s, vip))
	}
	return all
}

func ovnBalancerName(s network.Service, where string) string {
	return "Service_" + s.Name + "_" + strings.ToUpper(s.Protocol) + "_" + where
}

// ovnVIP leads an address to the endpoints of a service. With none, OVN rejects connections.
func ovnVIP(s network.Service, vip netip.AddrPort) string {
	endpoints := make([]string, 0, len(s.Endpoints))
	for _, e := range s.Endpoints {
		endpoints = append(endpoints, e.String())
	}
	return fmt.Sprintf("%q=%q", vip, strings.Join(endpoints, ","))
}

// ovnForCluster and ovnForNode are the two kinds of load balancers: those that all switches
// of a zone have, and those of NodePorts, at the node's own address, that its switch has.
const ovnForCluster = "cluster"

func ovnForNode(self network.Node) string { return "node_switch_" + self.Name }

func ovnClusterVIP(s network.Service) netip.AddrPort { return s.Address }

func ovnNodeVIP(self network.Node) func(network.Service) netip.AddrPort {
	return func(s network.Service) netip.AddrPort {
		if s.NodePort == 0 {
			return netip.AddrPort{}
		}
		return netip.AddrPortFrom(self.Address.Addr(), s.NodePort)
	}
}

// ovnChanged is ovn-nbctl's commands that give a service the endpoints that it has now.
func ovnChanged(self network.Node, s network.Service) []string {
	args := []string{"--", "set", "Load_Balancer", ovnBalancerName(s, ovnForCluster), "vips:" + ovnVIP(s, s.Address)}
	if vip := ovnNodeVIP(self)(s); vip.IsValid() {
		args = append(args, "--", "set", "Load_Balancer", ovnBalancerName(s, ovnForNode(self)), "vips:"+ovnVIP(s, vip))
	}
	return args
}
