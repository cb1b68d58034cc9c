package serviceproxy

import (
	"context"
	"fmt"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/dataplane"
)

// largeCluster is the number of endpoints above which kube-proxy leaves
// comments out of the rules of services (largeClusterEndpointsThreshold).
const largeCluster = 1000

// IPTables is kube-proxy's mode iptables.
func IPTables() network.ServiceProxy {
	return network.ServiceProxy{
		Name:      "iptables",
		Summary:   "kube-proxy's mode iptables: one list of all services, an endpoint by chance",
		Model:     "kube-proxy v1.34.4 pkg/proxy/iptables/proxier.go syncProxyRules, with --cluster-cidr, by iptables over nf_tables",
		LeavesOut: kubeProxyLeavesOut,
		Needs:     []netns.Feature{dataplane.IPTablesTool(), netns.NFTables(), netns.Conntrack()},
		Start: func(ctx context.Context, self network.Node) error {
			// For NodePorts at localhost (--iptables-localhost-nodeports).
			err := netns.SetSysctls(self.NS, netns.Setting{Path: "net/ipv4/conf/all/route_localnet", Value: "1"})
			if err != nil {
				return err
			}
			return dataplane.Restore(ctx, self, kubeProxyJumps()...)
		},
		Sync: func(ctx context.Context, self network.Node, services []network.Service) error {
			return dataplane.Restore(ctx, self, kubeProxyFilter(), kubeProxyNAT(self, services))
		},
		Update: func(ctx context.Context, self network.Node, services []network.Service, changed int) error {
			return dataplane.Restore(ctx, self, kubeProxyFilter(), kubeProxyPartialNAT(self, services, changed))
		},
	}
}

// kubeJump is a rule of a built-in chain that leads to one of kube-proxy's.
type kubeJump struct{ from, to, comment, match string }

// jumps puts them at the heads of chains one after the other, so that the last
// comes first, as kube-proxy does.
func jumps(name string, list []kubeJump) *dataplane.Table {
	t := &dataplane.Table{Name: name}
	made := map[string]bool{}
	for _, j := range list {
		if !made[j.to] {
			made[j.to] = true
			t.Chain(j.to)
		}
		if j.comment != "" {
			j.match += fmt.Sprintf("-m comment --comment %q ", j.comment)
		}
		t.Insert(j.from, j.match+"-j "+j.to)
	}
	return t
}

// kubeProxyJumps are iptablesJumpChains and iptablesKubeletJumpChains.
func kubeProxyJumps() []*dataplane.Table {
	const isNew = "-m conntrack --ctstate NEW "
	return []*dataplane.Table{
		jumps("filter", []kubeJump{
			{"INPUT", "KUBE-EXTERNAL-SERVICES", "kubernetes externally-visible service portals", isNew},
			{"FORWARD", "KUBE-EXTERNAL-SERVICES", "kubernetes externally-visible service portals", isNew},
			{"INPUT", "KUBE-NODEPORTS", "kubernetes health check service ports", ""},
			{"FORWARD", "KUBE-SERVICES", "kubernetes service portals", isNew},
			{"OUTPUT", "KUBE-SERVICES", "kubernetes service portals", isNew},
			{"FORWARD", "KUBE-FORWARD", "kubernetes forwarding rules", ""},
			{"INPUT", "KUBE-PROXY-FIREWALL", "kubernetes load balancer firewall", isNew},
			{"OUTPUT", "KUBE-PROXY-FIREWALL", "kubernetes load balancer firewall", isNew},
			{"FORWARD", "KUBE-PROXY-FIREWALL", "kubernetes load balancer firewall", isNew},
			{"INPUT", "KUBE-FIREWALL", "", ""},
			{"OUTPUT", "KUBE-FIREWALL", "", ""},
		}),
		jumps("nat", []kubeJump{
			{"OUTPUT", "KUBE-SERVICES", "kubernetes service portals", ""},
			{"PREROUTING", "KUBE-SERVICES", "kubernetes service portals", ""},
			{"POSTROUTING", "KUBE-POSTROUTING", "kubernetes postrouting rules", ""},
		}),
	}
}

// kubeForward lets through what is marked, and what goes on of it.
func kubeForward() []string {
	return []string{
		`-m comment --comment "kubernetes forwarding rules" -m mark --mark ` + kubeMark + "/" + kubeMark + " -j ACCEPT",
		`-m comment --comment "kubernetes forwarding conntrack rule" -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT`,
	}
}

func kubeProxyFilter() *dataplane.Table {
	t := &dataplane.Table{Name: "filter"}
	for _, empty := range []string{"KUBE-SERVICES", "KUBE-EXTERNAL-SERVICES", "KUBE-NODEPORTS", "KUBE-PROXY-FIREWALL"} {
		t.Chain(empty)
	}
	t.Chain("KUBE-FORWARD", append([]string{"-m conntrack --ctstate INVALID -j DROP"}, kubeForward()...)...)
	t.Chain("KUBE-FIREWALL", `-m comment --comment "block incoming localnet connections" -d 127.0.0.0/8 ! -s 127.0.0.0/8 `+
		"-m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP")
	return t
}

// kubeMasquerade are the chains that mark, and that replace the source of what
// is marked; first goes before that.
func kubeMasquerade(t *dataplane.Table, first ...string) {
	t.Chain("KUBE-POSTROUTING", append(first,
		"-m mark ! --mark "+kubeMark+"/"+kubeMark+" -j RETURN",
		"-j MARK --xor-mark "+kubeMark,
		`-m comment --comment "kubernetes service traffic requiring SNAT" -j MASQUERADE --random-fully`)...)
	t.Chain("KUBE-MARK-MASQ", "-j MARK --or-mark "+kubeMark)
}

func kubeProxyNAT(self network.Node, services []network.Service) *dataplane.Table {
	t := kubeTable(self, services, func(int) bool { return true })
	t.Large = true
	return t
}

// kubeProxyPartialNAT is the table as kube-proxy writes it when one service has changed: the
// lists of all services whole, and the chains of that one. Others stay, and so do those of
// endpoints that it no longer has.
func kubeProxyPartialNAT(self network.Node, services []network.Service, changed int) *dataplane.Table {
	return kubeTable(self, services, func(i int) bool { return i == changed })
}

// kubeTable has the chains of those services that with reports.
func kubeTable(self network.Node, services []network.Service, with func(i int) bool) *dataplane.Table {
	t := &dataplane.Table{Name: "nat"}
	t.Chain("KUBE-SERVICES")
	t.Chain("KUBE-NODEPORTS")
	kubeMasquerade(t)
	endpoints := 0
	for _, s := range services {
		endpoints += len(s.Endpoints)
	}
	for i, s := range services {
		kubeListed(t, s)
		if with(i) {
			kubeService(t, self, s, endpoints <= largeCluster)
		}
	}
	t.Add("KUBE-SERVICES", `-m comment --comment "kubernetes service nodeports; NOTE: this must be the last rule in this chain" `+
		"-m addrtype --dst-type LOCAL -j KUBE-NODEPORTS")
	return t
}

// kubeMatch is what matches a service's address.
func kubeMatch(s network.Service) string {
	return fmt.Sprintf("-m comment --comment %q -m %s -p %s -d %s --dport %d ",
		s.String()+" cluster IP", s.Protocol, s.Protocol, s.Address.Addr(), s.Address.Port())
}

// kubeListed is one port of a service in the lists of all.
func kubeListed(t *dataplane.Table, s network.Service) {
	name := s.String()
	t.Add("KUBE-SERVICES", kubeMatch(s)+"-j "+dataplane.HashedName("KUBE-SVC-", name+s.Protocol))
	if s.NodePort != 0 {
		t.Add("KUBE-NODEPORTS", fmt.Sprintf("-m comment --comment %q -m %s -p %s --dport %d -j %s",
			name, s.Protocol, s.Protocol, s.NodePort, dataplane.HashedName("KUBE-EXT-", name+s.Protocol)))
	}
}

// kubeService is one port of a service: its own chain, and one for each endpoint.
func kubeService(t *dataplane.Table, self network.Node, s network.Service, comments bool) {
	name := s.String()
	chain := dataplane.HashedName("KUBE-SVC-", name+s.Protocol)
	comment := func(text string) string {
		if !comments {
			return ""
		}
		return fmt.Sprintf("-m comment --comment %q ", text)
	}
	if s.NodePort != 0 {
		t.Chain(dataplane.HashedName("KUBE-EXT-", name+s.Protocol),
			fmt.Sprintf("-m comment --comment %q -j KUBE-MARK-MASQ", "masquerade traffic for "+name+" external destinations"),
			"-j "+chain)
	}
	t.Chain(chain, kubeMatch(s)+outside(self, "! -s %s ")+"-j KUBE-MARK-MASQ")
	for i, e := range s.Endpoints {
		endpoint := dataplane.HashedName("KUBE-SEP-", name+s.Protocol+e.String())
		chance := ""
		if left := len(s.Endpoints) - i; left > 1 {
			chance = fmt.Sprintf("-m statistic --mode random --probability %0.10f ", 1/float64(left))
		}
		t.Add(chain, comment(name+" -> "+e.String())+chance+"-j "+endpoint)
		t.Chain(endpoint,
			comment(name)+"-s "+e.Addr().String()+" -j KUBE-MARK-MASQ",
			comment(name)+fmt.Sprintf("-m %s -p %s -j DNAT --to-destination %s", s.Protocol, s.Protocol, e))
	}
}
