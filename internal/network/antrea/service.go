package antrea

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
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/dataplane"
)

//go:embed service.flows
var serviceFlows string

// What Antrea v1.15 has NodePorts by: rules lead what comes for one to the first
// address, which is behind the gateway; the second is the source of what comes
// back there.
const (
	nodePortAddress = "169.254.0.252"
	virtualAddress  = "169.254.0.253"
	nodePortSet     = "ANTREA-NODEPORT-IP"
)

// serviceCookie marks the flows of services; pods' are odd.
const serviceCookie = 0x5e

// ServiceProxy carries services out in the switch of Antrea's networks.
func ServiceProxy() network.ServiceProxy {
	return network.ServiceProxy{
		Name:    "antrea",
		Summary: "AntreaProxy with proxyAll: flows and a group for each service in Antrea's own Open vSwitch",
		Model: "Antrea v1.15 docs/design/ovs-pipeline.md (ServiceMark, ServiceLB, EndpointDNAT, SNATMark, SNAT), pkg/agent/route for NodePorts, " +
			"set with ovs-ofctl",
		LeavesOut: "the agent, session affinity, load balancers, external IPs, traffic policies, services without endpoints (packets to the controller), " +
			"services for programs of nodes, IPv6",
		Family: "antrea/",
		Needs:  append(dataplane.RuleNeeds(), dataplane.OVSTools(), dataplane.OVSCarries()),
		Start:  nodePorts,
		Sync: func(ctx context.Context, self network.Node, services []network.Service) error {
			if err := nodePortRoutes(self, services); err != nil {
				return err
			}
			if err := antreaServices(ctx, self, services); err != nil {
				return fmt.Errorf("%s: services: %w", self.Name, err)
			}
			return nil
		},
		Update: func(ctx context.Context, self network.Node, services []network.Service, changed int) error {
			if err := antreaChanged(ctx, self, services[changed], 1+changed); err != nil {
				return fmt.Errorf("%s: services: %w", self.Name, err)
			}
			return nil
		},
	}
}

// nodePorts are the rules by which connections to NodePorts, from
// elsewhere, get into the switch and back.
func nodePorts(ctx context.Context, self network.Node) error {
	if err := dataplane.FillSets(self, dataplane.IPSet{Name: nodePortSet, Kind: "hash:ip,port"}); err != nil {
		return err
	}
	nat := &dataplane.Table{Name: "nat"}
	nat.Chain("ANTREA-PREROUTING", "-m set --match-set "+nodePortSet+" dst,dst -j DNAT --to-destination "+nodePortAddress)
	nat.Add("PREROUTING", "-j ANTREA-PREROUTING")
	nat.Add("POSTROUTING", "-s "+virtualAddress+" -j MASQUERADE")
	return dataplane.Restore(ctx, self, nat)
}

// nodePortRoutes leads both addresses to the gateway, where nobody is
// asked for their hardware address, and lists the NodePorts.
func nodePortRoutes(self network.Node, services []network.Service) error {
	ports := dataplane.IPSet{Name: nodePortSet, Kind: "hash:ip,port"}
	for _, s := range services {
		if s.NodePort != 0 {
			protocol := uint8(s.ProtocolNumber())
			ports.Entries = append(ports.Entries, netlink.IPSetEntry{IP: self.Address.Addr().AsSlice(), Protocol: &protocol, Port: &s.NodePort})
		}
	}
	if err := dataplane.FillSets(self, ports); err != nil {
		return err
	}
	h, dev, err := netns.Port{NS: self.NS, Device: antreaGateway}.Open()
	if err != nil {
		return err
	}
	defer h.Close()
	mac, err := net.ParseMAC(virtualMAC)
	if err != nil {
		return err
	}
	virtual, index := netip.MustParseAddr(virtualAddress), dev.Attrs().Index
	err = h.NeighSet(&netlink.Neigh{LinkIndex: index, IP: virtual.AsSlice(), HardwareAddr: mac, State: netlink.NUD_PERMANENT})
	if err != nil {
		return fmt.Errorf("%s: neighbour %s: %w", self.Name, virtual, err)
	}
	for _, r := range []netlink.Route{
		{Dst: network.IPNet(network.Single(virtual)), Scope: unix.RT_SCOPE_LINK},
		{Dst: network.IPNet(network.Single(netip.MustParseAddr(nodePortAddress))), Gw: virtual.AsSlice()},
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
func antreaServices(ctx context.Context, self network.Node, services []network.Service) error {
	flows, err := openFlow(serviceFlows, Tables(), newAntreaServices(services))
	if err != nil {
		return err
	}
	groups, err := openFlow(antreaGroups(self, services), Tables(), nil)
	if err != nil {
		return err
	}
	o := dataplane.NodeOVS(self)
	if err := o.DelFlows(ctx, antreaBridge, serviceCookie); err != nil {
		return err
	}
	if _, err := o.Run(ctx, "", "ovs-ofctl", "-OOpenFlow15", "del-groups", antreaBridge); err != nil {
		return err
	}
	if _, err := o.Run(ctx, groups, "ovs-ofctl", "-OOpenFlow15", "--bundle", "add-groups", antreaBridge, "-"); err != nil {
		return err
	}
	return o.AddFlows(ctx, antreaBridge, flows)
}

// antreaChanged gives the endpoints of a service their flows, and then its group its endpoints,
// as the agent does when they change. The flows of endpoints that it no longer has stay.
func antreaChanged(ctx context.Context, self network.Node, s network.Service, group int) error {
	list := newAntreaServices([]network.Service{s})
	list.Services = nil // its own flows are the same
	flows, err := openFlow(serviceFlows, Tables(), list)
	if err != nil {
		return err
	}
	o := dataplane.NodeOVS(self)
	if err := o.AddFlows(ctx, antreaBridge, flows); err != nil {
		return err
	}
	line, err := openFlow(antreaGroup(self, s, group), Tables(), nil)
	if err != nil {
		return err
	}
	_, err = o.Run(ctx, line, "ovs-ofctl", "-OOpenFlow15", "mod-group", antreaBridge, "-")
	return err
}

// service is a service as the flows have it.
type service struct {
	network.Service
	Group int
}

// endpoint is one that services lead to: a flow, whose services are many.
type endpoint struct {
	Protocol string
	At       netip.AddrPort
}

// Address is its address as a register holds it.
func (e endpoint) Address() string {
	a := e.At.Addr().As4()
	return fmt.Sprintf("%#x", a[:])
}

// Chosen is its port, with the mark that an endpoint was selected.
func (e endpoint) Chosen() string { return fmt.Sprintf("%#x", 0x20000|int(e.At.Port())) }

// serviceList is what the flows' template is filled from.
type serviceList struct {
	Cookie    int
	Services  []service
	Endpoints []endpoint
}

func newAntreaServices(services []network.Service) serviceList {
	list := serviceList{Cookie: serviceCookie}
	seen := map[endpoint]bool{}
	for i, s := range services {
		list.Services = append(list.Services, service{s, 1 + i})
		for _, at := range s.Endpoints {
			e := endpoint{s.Protocol, at}
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
func antreaGroups(self network.Node, services []network.Service) string {
	var b strings.Builder
	for i, s := range services {
		b.WriteString(antreaGroup(self, s, 1+i))
	}
	return b.String()
}

// antreaGroup is one of its lines.
func antreaGroup(self network.Node, s network.Service, group int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "group_id=%d,type=select,selection_method=dp_hash", group)
	for j, at := range s.Endpoints {
		remote := ""
		if !self.PodCIDR.Contains(at.Addr()) {
			remote = "set_field:0x4000000/0x4000000->reg4,"
		}
		fmt.Fprintf(&b, ",bucket=bucket_id:%d,weight:100,actions=%sset_field:%s->reg3,set_field:%#x/0xffff->reg4,resubmit(,EndpointDNAT)",
			j, remote, endpoint{At: at}.Address(), at.Port())
	}
	b.WriteByte('\n')
	return b.String()
}
