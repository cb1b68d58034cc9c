package network

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/moby/ipvs"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/netns"
)

const (
	// ipvsDevice has every service's address, so that packets to them are the
	// node's own and reach ipvs at its input.
	ipvsDevice = "kube-ipvs0"
	// ipvsMasquerade is IP_VS_CONN_F_MASQ of linux/ip_vs.h: the destination's
	// address goes into the packet.
	ipvsMasquerade = 0
)

// ipvsProxy is kube-proxy's mode ipvs.
func ipvsProxy() ServiceProxy {
	return ServiceProxy{
		Name:      "ipvs",
		Summary:   "kube-proxy's mode ipvs: a hash of services in the kernel's load balancer, endpoints in turn",
		Model:     "kube-proxy v1.34.4 pkg/proxy/ipvs/proxier.go syncProxyRules and writeIptablesRules, scheduler rr, with --cluster-cidr, by iptables over nf_tables and ipset",
		LeavesOut: kubeProxyLeavesOut,
		Needs:     append(ruleNeeds(), netns.IPVS(), netns.Dummy()),
		Start: func(ctx context.Context, self Node) error {
			if err := ipvsNode(self); err != nil {
				return err
			}
			return restore(ctx, self, ipvsJumps()...)
		},
		Sync: func(ctx context.Context, self Node, services []Service) error {
			if err := ipvsAddresses(self, services); err != nil {
				return err
			}
			if err := fillSets(self, ipvsSets(self, services)...); err != nil {
				return err
			}
			if err := ipvsServices(self, services); err != nil {
				return fmt.Errorf("%s: ipvs: %w", self.Name, err)
			}
			return restore(ctx, self, ipvsFilter(), ipvsNAT(self))
		},
	}
}

// ipvsNode makes the device, down as kube-proxy leaves it, and sets what
// NewProxier sets.
func ipvsNode(self Node) error {
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
func ipvsAddresses(self Node, services []Service) error {
	h, dev, err := netns.Port{NS: self.NS, Device: ipvsDevice}.Open()
	if err != nil {
		return err
	}
	defer h.Close()
	for _, s := range services {
		err := h.AddrAdd(dev, &netlink.Addr{IPNet: ipNet(single(s.Address.Addr()))})
		if err != nil && !errors.Is(err, unix.EEXIST) { // a service of several ports
			return fmt.Errorf("%s on %s: %s: %w", ipvsDevice, self.Name, s.Address.Addr(), err)
		}
	}
	return nil
}

// ipvsServices makes a virtual server of each service's port, and one of its
// NodePort at the node's address, with a real server for each endpoint.
func ipvsServices(self Node, services []Service) error {
	h, err := ipvs.New(self.NS.Path)
	if err != nil {
		return err
	}
	defer h.Close()
	if err := h.Flush(); err != nil {
		return err
	}
	for _, s := range services {
		at := []netip.AddrPort{s.Address}
		if s.NodePort != 0 {
			at = append(at, netip.AddrPortFrom(self.Address.Addr(), s.NodePort))
		}
		for _, a := range at {
			server := &ipvs.Service{
				Address: a.Addr().AsSlice(), Port: a.Port(), Protocol: protocolNumber(s.Protocol),
				AddressFamily: unix.AF_INET, SchedName: "rr", Netmask: 0xffffffff,
			}
			if err := h.NewService(server); err != nil {
				return fmt.Errorf("%s at %s: %w", s, a, err)
			}
			for _, e := range s.Endpoints {
				destination := &ipvs.Destination{
					Address: e.Addr().AsSlice(), Port: e.Port(), AddressFamily: unix.AF_INET, Weight: 1, ConnectionFlags: ipvsMasquerade,
				}
				if err := h.NewDestination(server, destination); err != nil {
					return fmt.Errorf("%s to %s: %w", s, e, err)
				}
			}
		}
	}
	return nil
}

func protocolNumber(name string) uint16 {
	if name == "udp" {
		return unix.IPPROTO_UDP
	}
	return unix.IPPROTO_TCP
}

// ipvsSets are the sets that rules name, most of them empty without load
// balancers and external addresses.
func ipvsSets(self Node, services []Service) []ipset {
	loop, cluster := ipset{name: "KUBE-LOOP-BACK", kind: "hash:ip,port,ip"}, ipset{name: "KUBE-CLUSTER-IP", kind: "hash:ip,port"}
	ports := map[string]*ipset{"tcp": {name: "KUBE-NODE-PORT-TCP", kind: "bitmap:port"}, "udp": {name: "KUBE-NODE-PORT-UDP", kind: "bitmap:port"}}
	bound := ipset{name: "KUBE-IPVS-IPS", kind: "hash:ip"}
	for _, s := range services {
		protocol, port := uint8(protocolNumber(s.Protocol)), s.Address.Port()
		cluster.entries = append(cluster.entries, netlink.IPSetEntry{IP: s.Address.Addr().AsSlice(), Protocol: &protocol, Port: &port})
		bound.members = append(bound.members, single(s.Address.Addr()))
		if s.NodePort != 0 {
			p := ports[s.Protocol]
			p.ports = append(p.ports, s.NodePort)
		}
		for _, e := range s.Endpoints {
			if !self.PodCIDR.Contains(e.Addr()) {
				continue
			}
			port := e.Port()
			loop.entries = append(loop.entries, netlink.IPSetEntry{
				IP: e.Addr().AsSlice(), Protocol: &protocol, Port: &port, IP2: e.Addr().AsSlice(),
			})
		}
	}
	sets := []ipset{loop, cluster, *ports["tcp"], *ports["udp"], bound, {name: "KUBE-HEALTH-CHECK-NODE-PORT", kind: "bitmap:port"}}
	for _, empty := range []string{"KUBE-LOAD-BALANCER", "KUBE-EXTERNAL-IP", "KUBE-EXTERNAL-IP-LOCAL"} {
		sets = append(sets, ipset{name: empty, kind: "hash:ip,port"})
	}
	return sets
}

// ipvsJumps are iptablesJumpChain.
func ipvsJumps() []*table {
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
	return []*table{filter, nat}
}

func ipvsNAT(self Node) *table {
	t := &table{name: "nat"}
	t.chain("KUBE-LOAD-BALANCER", "-j KUBE-MARK-MASQ")
	t.kubeMasquerade(`-m comment --comment "Kubernetes endpoints dst ip:port, source ip for solving hairpin purpose" ` +
		"-m set --match-set KUBE-LOOP-BACK dst,dst,src -j MASQUERADE")
	var ports []string
	for _, protocol := range []struct{ name, set string }{{"tcp", "TCP"}, {"udp", "UDP"}} {
		ports = append(ports, fmt.Sprintf("-p %s -m comment --comment \"Kubernetes nodeport %s port for masquerade purpose\" "+
			"-m set --match-set KUBE-NODE-PORT-%s dst -j KUBE-MARK-MASQ", protocol.name, protocol.set, protocol.set))
	}
	t.chain("KUBE-NODE-PORT", ports...)
	t.chain("KUBE-SERVICES",
		"-s 127.0.0.0/8 -j RETURN",
		`-m comment --comment "Kubernetes service cluster ip + port for masquerade purpose" `+
			"-m set --match-set KUBE-CLUSTER-IP dst,dst "+outside(self, "! -s %s ")+"-j KUBE-MARK-MASQ",
		"-m addrtype --dst-type LOCAL -j KUBE-NODE-PORT",
		"-m set --match-set KUBE-CLUSTER-IP dst,dst -j ACCEPT")
	return t
}

func ipvsFilter() *table {
	t := &table{name: "filter"}
	t.chain("KUBE-PROXY-FIREWALL")
	t.chain("KUBE-SOURCE-RANGES-FIREWALL", "-j DROP")
	t.chain("KUBE-IPVS-OUT-FILTER")
	t.chain("KUBE-FORWARD", kubeForward()...)
	t.chain("KUBE-NODE-PORT", `-m comment --comment "Kubernetes health check node port" -m set --match-set KUBE-HEALTH-CHECK-NODE-PORT dst -j ACCEPT`)
	var known []string
	for _, set := range []string{"KUBE-LOAD-BALANCER", "KUBE-CLUSTER-IP", "KUBE-EXTERNAL-IP", "KUBE-EXTERNAL-IP-LOCAL"} {
		known = append(known, "-m set --match-set "+set+" dst,dst -j RETURN")
	}
	t.chain("KUBE-IPVS-FILTER", append(known,
		"-m set --match-set KUBE-HEALTH-CHECK-NODE-PORT dst -j RETURN",
		"-m conntrack --ctstate NEW -m set --match-set KUBE-IPVS-IPS dst -j REJECT")...)
	return t
}
