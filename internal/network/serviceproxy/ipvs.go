package serviceproxy

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/moby/ipvs"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/dataplane"
)

const (
	// ipvsDevice has every service's address, so that packets to them are the
	// node's own and reach ipvs at its input.
	ipvsDevice = "kube-ipvs0"
	// ipvsMasquerade is IP_VS_CONN_F_MASQ of linux/ip_vs.h: the destination's
	// address goes into the packet.
	ipvsMasquerade = 0
)

// IPVS is kube-proxy's mode ipvs.
func IPVS() network.ServiceProxy {
	return network.ServiceProxy{
		Name:      "ipvs",
		Summary:   "kube-proxy's mode ipvs: a hash of services in the kernel's load balancer, endpoints in turn",
		Model:     "kube-proxy v1.34.4 pkg/proxy/ipvs/proxier.go syncProxyRules and writeIptablesRules, scheduler rr, with --cluster-cidr, by iptables over nf_tables and ipset",
		LeavesOut: kubeProxyLeavesOut,
		Needs:     append(dataplane.RuleNeeds(), netns.IPVS(), netns.Dummy()),
		Start: func(ctx context.Context, self network.Node) error {
			if err := ipvsNode(self); err != nil {
				return err
			}
			return dataplane.Restore(ctx, self, ipvsJumps()...)
		},
		Sync: func(ctx context.Context, self network.Node, services []network.Service) error {
			if err := ipvsAddresses(self, services); err != nil {
				return err
			}
			if err := dataplane.FillSets(self, ipvsSets(self, services)...); err != nil {
				return err
			}
			if err := ipvsServices(self, services); err != nil {
				return fmt.Errorf("%s: ipvs: %w", self.Name, err)
			}
			return dataplane.Restore(ctx, self, ipvsFilter(), ipvsNAT(self))
		},
		Update: func(ctx context.Context, self network.Node, services []network.Service, changed int) error {
			if err := ipvsChanged(self, services, changed); err != nil {
				return fmt.Errorf("%s: ipvs: %w", self.Name, err)
			}
			return dataplane.Restore(ctx, self, ipvsFilter(), ipvsNAT(self))
		},
	}
}

// ipvsNode makes the device, down as kube-proxy leaves it, and sets what
// NewProxier sets.
func ipvsNode(self network.Node) error {
	err := netns.SetSysctls(self.NS,
		netns.Setting{Path: "net/ipv4/vs/conntrack", Value: "1"},
		netns.Setting{Path: "net/ipv4/vs/expire_nodest_conn", Value: "1"},
		netns.Setting{Path: "net/ipv4/vs/expire_quiescent_template", Value: "1"},
		netns.Setting{Path: "net/ipv4/ip_forward", Value: "1"})
	if err != nil {
		return err
	}
	h, err := netns.Handle(self.NS)
	if err != nil {
		return err
	}
	defer h.Close()
	la := netlink.NewLinkAttrs()
	la.Name = ipvsDevice
	if err := h.LinkAdd(&netlink.Dummy{LinkAttrs: la}); err != nil {
		return fmt.Errorf("%s on %s: %w", ipvsDevice, self.Name, err)
	}
	return nil
}

// ipvsAddresses gives the device the address of every service.
func ipvsAddresses(self network.Node, services []network.Service) error {
	h, dev, err := netns.Port{NS: self.NS, Device: ipvsDevice}.Open()
	if err != nil {
		return err
	}
	defer h.Close()
	for _, s := range services {
		err := h.AddrAdd(dev, &netlink.Addr{IPNet: network.IPNet(network.Single(s.Address.Addr()))})
		if err != nil && !errors.Is(err, unix.EEXIST) { // a service of several ports
			return fmt.Errorf("%s on %s: %s: %w", ipvsDevice, self.Name, s.Address.Addr(), err)
		}
	}
	return nil
}

// ipvsAt are the addresses of a service's port on a node.
func ipvsAt(self network.Node, s network.Service) []netip.AddrPort {
	if s.NodePort == 0 {
		return []netip.AddrPort{s.Address}
	}
	return []netip.AddrPort{s.Address, netip.AddrPortFrom(self.Address.Addr(), s.NodePort)}
}

// ipvsServer is a virtual server, ipvsDestination a real one.
func ipvsServer(s network.Service, at netip.AddrPort) *ipvs.Service {
	return &ipvs.Service{
		Address: at.Addr().AsSlice(), Port: at.Port(), Protocol: s.ProtocolNumber(),
		AddressFamily: unix.AF_INET, SchedName: "rr", Netmask: 0xffffffff,
	}
}

func ipvsDestination(e netip.AddrPort, weight int) *ipvs.Destination {
	return &ipvs.Destination{
		Address: e.Addr().AsSlice(), Port: e.Port(), AddressFamily: unix.AF_INET, Weight: weight, ConnectionFlags: ipvsMasquerade,
	}
}

// ipvsChanged does what kube-proxy does when one service has changed: it asks the kernel for
// each virtual server and its real ones (syncService, syncEndpoint), and changes those of the
// one that has others now. A real server that the service no longer has gets the weight 0, and
// keeps its connections.
func ipvsChanged(self network.Node, services []network.Service, changed int) error {
	h, err := ipvs.New(self.NS.Path)
	if err != nil {
		return err
	}
	defer h.Close()
	for i, s := range services {
		for _, at := range ipvsAt(self, s) {
			server, err := h.GetService(ipvsServer(s, at))
			if err != nil {
				return fmt.Errorf("%s at %s: %w", s, at, err)
			}
			if server, err = h.GetService(server); err != nil {
				return fmt.Errorf("%s at %s: %w", s, at, err)
			}
			has, err := h.GetDestinations(server)
			if err == nil && i == changed {
				err = ipvsEndpoints(h, server, has, s.Endpoints)
			}
			if err != nil {
				return fmt.Errorf("%s at %s: %w", s, at, err)
			}
		}
	}
	return nil
}

// ipvsEndpoints gives a virtual server its real ones in the place of those that it has.
func ipvsEndpoints(h *ipvs.Handle, server *ipvs.Service, has []*ipvs.Destination, want []netip.AddrPort) error {
	weights := map[netip.AddrPort]int{}
	for _, d := range has {
		if a, ok := netip.AddrFromSlice(d.Address); ok {
			weights[netip.AddrPortFrom(a.Unmap(), d.Port)] = d.Weight
		}
	}
	for _, e := range want {
		weight, there := weights[e]
		delete(weights, e)
		if there && weight > 0 {
			continue
		}
		if there { // on its way out
			if err := h.DelDestination(server, ipvsDestination(e, 0)); err != nil {
				return fmt.Errorf("from %s: %w", e, err)
			}
		}
		if err := h.NewDestination(server, ipvsDestination(e, 1)); err != nil {
			return fmt.Errorf("to %s: %w", e, err)
		}
	}
	for e, weight := range weights {
		if weight == 0 {
			continue
		}
		if err := h.UpdateDestination(server, ipvsDestination(e, 0)); err != nil {
			return fmt.Errorf("from %s: %w", e, err)
		}
	}
	return nil
}

// ipvsServices makes a virtual server of each service's port, and one of its
// NodePort at the node's address, with a real server for each endpoint.
func ipvsServices(self network.Node, services []network.Service) error {
	h, err := ipvs.New(self.NS.Path)
	if err != nil {
		return err
	}
	defer h.Close()
	if err := h.Flush(); err != nil {
		return err
	}
	for _, s := range services {
		for _, a := range ipvsAt(self, s) {
			server := ipvsServer(s, a)
			if err := h.NewService(server); err != nil {
				return fmt.Errorf("%s at %s: %w", s, a, err)
			}
			for _, e := range s.Endpoints {
				if err := h.NewDestination(server, ipvsDestination(e, 1)); err != nil {
					return fmt.Errorf("%s to %s: %w", s, e, err)
				}
			}
		}
	}
	return nil
}

// ipvsSets are the sets that rules name, most of them empty without load
// balancers and external addresses.
func ipvsSets(self network.Node, services []network.Service) []dataplane.IPSet {
	loop, cluster := dataplane.IPSet{Name: "KUBE-LOOP-BACK", Kind: "hash:ip,port,ip"}, dataplane.IPSet{Name: "KUBE-CLUSTER-IP", Kind: "hash:ip,port"}
	ports := map[string]*dataplane.IPSet{"tcp": {Name: "KUBE-NODE-PORT-TCP", Kind: "bitmap:port"}, "udp": {Name: "KUBE-NODE-PORT-UDP", Kind: "bitmap:port"}}
	bound := dataplane.IPSet{Name: "KUBE-IPVS-IPS", Kind: "hash:ip"}
	for _, s := range services {
		protocol, port := uint8(s.ProtocolNumber()), s.Address.Port()
		cluster.Entries = append(cluster.Entries, netlink.IPSetEntry{IP: s.Address.Addr().AsSlice(), Protocol: &protocol, Port: &port})
		bound.Members = append(bound.Members, network.Single(s.Address.Addr()))
		if s.NodePort != 0 {
			p := ports[s.Protocol]
			p.Ports = append(p.Ports, s.NodePort)
		}
		for _, e := range s.Endpoints {
			if !self.PodCIDR.Contains(e.Addr()) {
				continue
			}
			port := e.Port()
			loop.Entries = append(loop.Entries, netlink.IPSetEntry{
				IP: e.Addr().AsSlice(), Protocol: &protocol, Port: &port, IP2: e.Addr().AsSlice(),
			})
		}
	}
	sets := []dataplane.IPSet{loop, cluster, *ports["tcp"], *ports["udp"], bound, {Name: "KUBE-HEALTH-CHECK-NODE-PORT", Kind: "bitmap:port"}}
	for _, empty := range []string{"KUBE-LOAD-BALANCER", "KUBE-EXTERNAL-IP", "KUBE-EXTERNAL-IP-LOCAL"} {
		sets = append(sets, dataplane.IPSet{Name: empty, Kind: "hash:ip,port"})
	}
	return sets
}

// ipvsJumps are iptablesJumpChain.
func ipvsJumps() []*dataplane.Table {
	nat := jumps("nat", []kubeJump{
		{"OUTPUT", "KUBE-SERVICES", "kubernetes service portals", ""},
		{"PREROUTING", "KUBE-SERVICES", "kubernetes service portals", ""},
		{"POSTROUTING", "KUBE-POSTROUTING", "kubernetes postrouting rules", ""},
	})
	filter := jumps("filter", []kubeJump{
		{"FORWARD", "KUBE-FORWARD", "kubernetes forwarding rules", ""},
		{"INPUT", "KUBE-NODE-PORT", "kubernetes health check rules", ""},
		{"INPUT", "KUBE-PROXY-FIREWALL", "kube-proxy firewall rules", ""},
		{"FORWARD", "KUBE-PROXY-FIREWALL", "kube-proxy firewall rules", ""},
		{"INPUT", "KUBE-IPVS-FILTER", "kubernetes ipvs access filter", ""},
		{"OUTPUT", "KUBE-IPVS-OUT-FILTER", "kubernetes ipvs access filter", ""},
	})
	return []*dataplane.Table{filter, nat}
}

func ipvsNAT(self network.Node) *dataplane.Table {
	t := &dataplane.Table{Name: "nat"}
	t.Chain("KUBE-LOAD-BALANCER", "-j KUBE-MARK-MASQ")
	kubeMasquerade(t, `-m comment --comment "Kubernetes endpoints dst ip:port, source ip for solving hairpin purpose" `+
		"-m set --match-set KUBE-LOOP-BACK dst,dst,src -j MASQUERADE")
	var ports []string
	for _, protocol := range []struct{ name, set string }{{"tcp", "TCP"}, {"udp", "UDP"}} {
		ports = append(ports, fmt.Sprintf("-p %s -m comment --comment \"Kubernetes nodeport %s port for masquerade purpose\" "+
			"-m set --match-set KUBE-NODE-PORT-%s dst -j KUBE-MARK-MASQ", protocol.name, protocol.set, protocol.set))
	}
	t.Chain("KUBE-NODE-PORT", ports...)
	t.Chain("KUBE-SERVICES",
		"-s 127.0.0.0/8 -j RETURN",
		`-m comment --comment "Kubernetes service cluster ip + port for masquerade purpose" `+
			"-m set --match-set KUBE-CLUSTER-IP dst,dst "+outside(self, "! -s %s ")+"-j KUBE-MARK-MASQ",
		"-m addrtype --dst-type LOCAL -j KUBE-NODE-PORT",
		"-m set --match-set KUBE-CLUSTER-IP dst,dst -j ACCEPT")
	return t
}

func ipvsFilter() *dataplane.Table {
	t := &dataplane.Table{Name: "filter"}
	t.Chain("KUBE-PROXY-FIREWALL")
	t.Chain("KUBE-SOURCE-RANGES-FIREWALL", "-j DROP")
	t.Chain("KUBE-IPVS-OUT-FILTER")
	t.Chain("KUBE-FORWARD", kubeForward()...)
	t.Chain("KUBE-NODE-PORT", `-m comment --comment "Kubernetes health check node port" -m set --match-set KUBE-HEALTH-CHECK-NODE-PORT dst -j ACCEPT`)
	var known []string
	for _, set := range []string{"KUBE-LOAD-BALANCER", "KUBE-CLUSTER-IP", "KUBE-EXTERNAL-IP", "KUBE-EXTERNAL-IP-LOCAL"} {
		known = append(known, "-m set --match-set "+set+" dst,dst -j RETURN")
	}
	t.Chain("KUBE-IPVS-FILTER", append(known,
		"-m set --match-set KUBE-HEALTH-CHECK-NODE-PORT dst -j RETURN",
		"-m conntrack --ctstate NEW -m set --match-set KUBE-IPVS-IPS dst -j REJECT")...)
	return t
}
