package network

import (
	"context"
	"fmt"

	"github.com/cnibench/cnibench/internal/netns"
)

// largeCluster is the number of endpoints above which kube-proxy leaves
// comments out of the rules of services (largeClusterEndpointsThreshold).
const largeCluster = 1000

// iptablesProxy is kube-proxy's mode iptables.
func iptablesProxy() ServiceProxy {
	return ServiceProxy{
		Name:      "iptables",
		Summary:   "kube-proxy's mode iptables: one list of all services, an endpoint by chance",
		Model:     "kube-proxy v1.34.4 pkg/proxy/iptables/proxier.go syncProxyRules, with --cluster-cidr, by iptables over nf_tables",
		LeavesOut: kubeProxyLeavesOut,
		Needs:     []netns.Feature{iptablesTool(), netns.NFTables(), netns.Conntrack()},
		Start: func(ctx context.Context, self Node) error {
			// For NodePorts at localhost (--iptables-localhost-nodeports).
			err := netns.SetSysctls(self.NS, netns.Setting{Path: "net/ipv4/conf/all/route_localnet", Value: "1"})
			if err != nil {
				return err
			}
			return restore(ctx, self, kubeProxyJumps()...)
		},
		Sync: func(ctx context.Context, self Node, services []Service) error {
			return restore(ctx, self, kubeProxyFilter(), kubeProxyNAT(self, services))
		},
	}
}

// kubeJump is a rule of a built-in chain that leads to one of kube-proxy's.
type kubeJump struct{ from, to, comment, match string }

// jumps puts them at the heads of chains one after the other, so that the last
// comes first, as kube-proxy does.
func jumps(name string, list []kubeJump) *table {
	t := &table{name: name}
	made := map[string]bool{}
	for _, j := range list {
		if !made[j.to] {
			made[j.to] = true
			t.chain(j.to)
		}
		if j.comment != "" {
			j.match += fmt.Sprintf("-m comment --comment %q ", j.comment)
		}
		t.insert(j.from, j.match+"-j "+j.to)
	}
	return t
}

// kubeProxyJumps are iptablesJumpChains and iptablesKubeletJumpChains.
func kubeProxyJumps() []*table {
	const isNew = "-m conntrack --ctstate NEW "
	return []*table{
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

func kubeProxyFilter() *table {
	t := &table{name: "filter"}
	for _, empty := range []string{"KUBE-SERVICES", "KUBE-EXTERNAL-SERVICES", "KUBE-NODEPORTS", "KUBE-PROXY-FIREWALL"} {
		t.chain(empty)
	}
	t.chain("KUBE-FORWARD", append([]string{"-m conntrack --ctstate INVALID -j DROP"}, kubeForward()...)...)
	t.chain("KUBE-FIREWALL", `-m comment --comment "block incoming localnet connections" -d 127.0.0.0/8 ! -s 127.0.0.0/8 `+
		"-m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP")
	return t
}

// kubeMasquerade are the chains that mark, and that replace the source of what
// is marked; first goes before that.
func (t *table) kubeMasquerade(first ...string) {
	t.chain("KUBE-POSTROUTING", append(first,
		"-m mark ! --mark "+kubeMark+"/"+kubeMark+" -j RETURN",
		"-j MARK --xor-mark "+kubeMark,
		`-m comment --comment "kubernetes service traffic requiring SNAT" -j MASQUERADE --random-fully`)...)
	t.chain("KUBE-MARK-MASQ", "-j MARK --or-mark "+kubeMark)
}

func kubeProxyNAT(self Node, services []Service) *table {
	t := &table{name: "nat", large: true}
	t.chain("KUBE-SERVICES")
	t.chain("KUBE-NODEPORTS")
	t.kubeMasquerade()
	endpoints := 0
	for _, s := range services {
		endpoints += len(s.Endpoints)
	}
	for _, s := range services {
		t.kubeService(self, s, endpoints <= largeCluster)
	}
	t.add("KUBE-SERVICES", `-m comment --comment "kubernetes service nodeports; NOTE: this must be the last rule in this chain" `+
		"-m addrtype --dst-type LOCAL -j KUBE-NODEPORTS")
	return t
}

// kubeService is one port of a service: its rule in the list of all, its own
// chain, and one for each endpoint.
func (t *table) kubeService(self Node, s Service, comments bool) {
	name := s.String()
	chain := hashedName("KUBE-SVC-", name+s.Protocol)
	comment := func(text string) string {
		if !comments {
			return ""
		}
		return fmt.Sprintf("-m comment --comment %q ", text)
	}
	here := fmt.Sprintf("-m comment --comment %q -m %s -p %s -d %s --dport %d ",
		name+" cluster IP", s.Protocol, s.Protocol, s.Address.Addr(), s.Address.Port())
	t.add("KUBE-SERVICES", here+"-j "+chain)
	if s.NodePort != 0 {
		external := hashedName("KUBE-EXT-", name+s.Protocol)
		t.add("KUBE-NODEPORTS", fmt.Sprintf("-m comment --comment %q -m %s -p %s --dport %d -j %s", name, s.Protocol, s.Protocol, s.NodePort, external))
		t.chain(external,
			fmt.Sprintf("-m comment --comment %q -j KUBE-MARK-MASQ", "masquerade traffic for "+name+" external destinations"),
			"-j "+chain)
	}
	t.chain(chain, here+outside(self, "! -s %s ")+"-j KUBE-MARK-MASQ")
	for i, e := range s.Endpoints {
		endpoint := hashedName("KUBE-SEP-", name+s.Protocol+e.String())
		chance := ""
		if left := len(s.Endpoints) - i; left > 1 {
			chance = fmt.Sprintf("-m statistic --mode random --probability %0.10f ", 1/float64(left))
		}
		t.add(chain, comment(name+" -> "+e.String())+chance+"-j "+endpoint)
		t.chain(endpoint,
			comment(name)+"-s "+e.Addr().String()+" -j KUBE-MARK-MASQ",
			comment(name)+fmt.Sprintf("-m %s -p %s -j DNAT --to-destination %s", s.Protocol, s.Protocol, e))
	}
}
