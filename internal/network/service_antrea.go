package network

import (
	"context"
	_ "embed"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/netns"
)

//go:embed service_antrea.flows
var antreaServiceFlows string

// What Antrea v1.15 has NodePorts by: rules lead what comes for one to the first
// address, which is behind the gateway; the second is the source of what comes
// back there.
const (
	antreaNodePortAddress = "169.254.0.252"
	antreaVirtualAddress  = "169.254.0.253"
	antreaNodePortSet     = "ANTREA-NODEPORT-IP"
)

// antreaServiceCookie marks the flows of services; pods' are odd.
const antreaServiceCookie = 0x5e

// antreaProxy carries services out in the switch of Antrea's networks.
func antreaProxy() ServiceProxy {
	return ServiceProxy{
		Name:    "antrea",
		Summary: "AntreaProxy with proxyAll: flows and a group for each service in Antrea's own Open vSwitch",
		Model: "Antrea v1.15 docs/design/ovs-pipeline.md (ServiceMark, ServiceLB, EndpointDNAT, SNATMark, SNAT), pkg/agent/route for NodePorts, " +
			"set with ovs-ofctl",
		LeavesOut: "the agent, session affinity, load balancers, external IPs, traffic policies, services without endpoints (packets to the controller), " +
			"services for programs of nodes, IPv6",
		Family: "antrea/",
		Needs:  append(ruleNeeds(), ovsTools(), ovsCarries()),
		Start:  antreaNodePorts,
		Sync: func(ctx context.Context, self Node, services []Service) error {
			if err := antreaNodePortRoutes(self, services); err != nil {
				return err
			}
			if err := antreaServices(ctx, self, services); err != nil {
				return fmt.Errorf("%s: services: %w", self.Name, err)
			}
			return nil
		},
	}
}

// antreaNodePorts are the rules by which connections to NodePorts, from
// elsewhere, get into the switch and back.
func antreaNodePorts(ctx context.Context, self Node) error {
	if err := fillSets(self, ipset{name: antreaNodePortSet, kind: "hash:ip,port"}); err != nil {
		return err
	}
	nat := &table{name: "nat"}
	nat.chain("ANTREA-PREROUTING", "-m set --match-set "+antreaNodePortSet+" dst,dst -j DNAT --to-destination "+antreaNodePortAddress)
	nat.add("PREROUTING", "-j ANTREA-PREROUTING")
	nat.add("POSTROUTING", "-s "+antreaVirtualAddress+" -j MASQUERADE")
	return restore(ctx, self, nat)
}

// antreaNodePortRoutes leads both addresses to the gateway, where nobody is
// asked for their hardware address, and lists the NodePorts.
func antreaNodePortRoutes(self Node, services []Service) error {
	ports := ipset{name: antreaNodePortSet, kind: "hash:ip,port"}
	for _, s := range services {
		if s.NodePort != 0 {
			protocol := uint8(protocolNumber(s.Protocol))
			ports.entries = append(ports.entries, netlink.IPSetEntry{IP: self.Address.Addr().AsSlice(), Protocol: &protocol, Port: &s.NodePort})
		}
	}
	if err := fillSets(self, ports); err != nil {
		return err
	}
	h, dev, err := netns.Port{NS: self.NS, Device: antreaGateway}.Open()
	if err != nil {
		return err
	}
	defer h.Close()
	mac, err := net.ParseMAC(antreaVirtualMAC)
	if err != nil {
		return err
	}
	virtual, index := netip.MustParseAddr(antreaVirtualAddress), dev.Attrs().Index
	err = h.NeighSet(&netlink.Neigh{LinkIndex: index, IP: virtual.AsSlice(), HardwareAddr: mac, State: netlink.NUD_PERMANENT})
	if err != nil {
		return fmt.Errorf("%s: neighbour %s: %w", self.Name, virtual, err)
	}
	for _, r := range []netlink.Route{
		{Dst: ipNet(single(virtual)), Scope: unix.RT_SCOPE_LINK},
		{Dst: ipNet(single(netip.MustParseAddr(antreaNodePortAddress))), Gw: virtual.AsSlice()},
	} {
		r.LinkIndex = index
		if err := h.RouteReplace(&r); err != nil {
			return fmt.Errorf("%s: route to %s: %w", self.Name, r.Dst, err)
		}
	}
	return nil
}

// antreaServices puts the flows and groups of services in the place of those
// that were there.
func antreaServices(ctx context.Context, self Node, services []Service) error {
	flows, err := openFlow(antreaServiceFlows, AntreaTables(), newAntreaServices(services))
	if err != nil {
		return err
	}
	groups, err := openFlow(antreaGroups(self, services), AntreaTables(), nil)
	if err != nil {
		return err
	}
	o := nodeOVS(self)
	if err := o.delFlows(ctx, antreaBridge, antreaServiceCookie); err != nil {
		return err
	}
	if _, err := o.run(ctx, "", "ovs-ofctl", "-OOpenFlow15", "del-groups", antreaBridge); err != nil {
		return err
	}
	if _, err := o.run(ctx, groups, "ovs-ofctl", "-OOpenFlow15", "--bundle", "add-groups", antreaBridge, "-"); err != nil {
		return err
	}
	return o.addFlows(ctx, antreaBridge, flows)
}

// antreaService is a service as the flows have it.
type antreaService struct {
	Service
	Group int
}

// antreaEndpoint is one that services lead to: a flow, whose services are many.
type antreaEndpoint struct {
	Protocol string
	At       netip.AddrPort
}

// Address is its address as a register holds it.
func (e antreaEndpoint) Address() string {
	a := e.At.Addr().As4()
	return fmt.Sprintf("%#x", a[:])
}

// Chosen is its port, with the mark that an endpoint was selected.
func (e antreaEndpoint) Chosen() string { return fmt.Sprintf("%#x", 0x20000|int(e.At.Port())) }

// antreaServiceList is what the flows' template is filled from.
type antreaServiceList struct {
	Cookie    int
	Services  []antreaService
	Endpoints []antreaEndpoint
}

func newAntreaServices(services []Service) antreaServiceList {
	list := antreaServiceList{Cookie: antreaServiceCookie}
	seen := map[antreaEndpoint]bool{}
	for i, s := range services {
		list.Services = append(list.Services, antreaService{s, 1 + i})
		for _, at := range s.Endpoints {
			e := antreaEndpoint{s.Protocol, at}
			if !seen[e] {
				seen[e] = true
				list.Endpoints = append(list.Endpoints, e)
			}
		}
	}
	return list
}

// antreaGroups has a line for each service: of its endpoints, which are alike,
// a hash of the connection selects one. Without a method Open vSwitch takes a
// hash that in user space leaves out UDP's ports, so that a client has one
// endpoint for all of its sockets; dp_hash has them in both datapaths.
func antreaGroups(self Node, services []Service) string {
	var b strings.Builder
	for i, s := range services {
		fmt.Fprintf(&b, "group_id=%d,type=select,selection_method=dp_hash", 1+i)
		for j, at := range s.Endpoints {
			remote := ""
			if !self.PodCIDR.Contains(at.Addr()) {
				remote = "set_field:0x4000000/0x4000000->reg4,"
			}
			fmt.Fprintf(&b, ",bucket=bucket_id:%d,weight:100,actions=%sset_field:%s->reg3,set_field:%#x/0xffff->reg4,resubmit(,EndpointDNAT)",
				j, remote, antreaEndpoint{At: at}.Address(), at.Port())
		}
		b.WriteByte('\n')
	}
	return b.String()
}
