package serviceproxy

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/dataplane"
)

// NFTables is kube-proxy's mode nftables.
func NFTables() network.ServiceProxy {
	return network.ServiceProxy{
		Name:      "nftables",
		Summary:   "kube-proxy's mode nftables: services in a verdict map, an endpoint by chance",
		Model:     "kube-proxy v1.34.4 pkg/proxy/nftables/proxier.go setupNFTables and syncProxyRules, with --cluster-cidr",
		LeavesOut: kubeProxyLeavesOut,
		Needs:     []netns.Feature{dataplane.NFTTool(), netns.NFTables(), netns.Conntrack()},
		Sync: func(ctx context.Context, self network.Node, services []network.Service) error {
			return runNFT(ctx, self, nftServices(self, services)...)
		},
		Update: func(ctx context.Context, self network.Node, services []network.Service, changed int) error {
			b := &nftScript{}
			b.changed(self, services[changed])
			return runNFT(ctx, self, b.String())
		},
	}
}

// runNFT runs transactions on a node, one after the other.
func runNFT(ctx context.Context, self network.Node, scripts ...string) error {
	r := exec.NewRunner()
	defer r.Close()
	for _, script := range scripts {
		_, err := r.Run(ctx, exec.Cmd{Argv: []string{dataplane.NFT, "-f", "-"}, NetNS: self.NS.Path, Stdin: strings.NewReader(script)})
		if err != nil {
			return fmt.Errorf("%s: services: %w", self.Name, err)
		}
	}
	return nil
}

// nftScript is a transaction in nft's language, on kube-proxy's table.
type nftScript struct{ strings.Builder }

// do adds one command: do("add rule", "services", …).
func (b *nftScript) do(verb, what string, rest ...string) {
	b.WriteString(verb + " ip kube-proxy " + what)
	for _, r := range rest {
		b.WriteString(" " + r)
	}
	b.WriteByte('\n')
}

func (b *nftScript) chain(name string, rules ...string) {
	b.do("add chain", name)
	b.rules(name, rules...)
}

func (b *nftScript) rules(chain string, rules ...string) {
	for _, r := range rules {
		b.do("add rule", chain, r)
	}
}

// nftTransaction is how many services are loaded at once. For each anonymous map
// kernels go through all of its transaction so far: with 10,000 services in one
// that takes as long as all else.
const nftTransaction = 1000

// nftServices is the table, in the place of what was there, as transactions to
// be loaded one after the other.
func nftServices(self network.Node, services []network.Service) []string {
	b := &nftScript{}
	b.WriteString("add table ip kube-proxy\ndelete table ip kube-proxy\nadd table ip kube-proxy\n")
	b.base()
	b.dispatch()
	scripts := []string{}
	for part := range slices.Chunk(services, nftTransaction) {
		for _, s := range part {
			b.service(self, s)
		}
		scripts = append(scripts, b.String())
		b = &nftScript{}
	}
	return scripts
}

// base are the chains at the kernel's hooks (nftablesBaseChains), and where
// they lead (nftablesJumpChains).
func (b *nftScript) base() {
	for _, c := range []struct{ name, kind, hook, priority string }{
		{"filter-prerouting-pre-dnat", "filter", "prerouting", "-110"},
		{"filter-output-pre-dnat", "filter", "output", "-110"},
		{"filter-input", "filter", "input", "0"},
		{"filter-forward", "filter", "forward", "0"},
		{"filter-output", "filter", "output", "0"},
		{"nat-prerouting", "nat", "prerouting", "-100"},
		{"nat-output", "nat", "output", "-100"},
		{"nat-postrouting", "nat", "postrouting", "100"},
	} {
		b.do("add chain", c.name, fmt.Sprintf("{ type %s hook %s priority %s ; }", c.kind, c.hook, c.priority))
	}
	made := map[string]bool{}
	for _, j := range [][3]string{
		{"nodeport-endpoints-check", "filter-input", "ct state new "},
		{"service-endpoints-check", "filter-input", "ct state new "},
		{"service-endpoints-check", "filter-forward", "ct state new "},
		{"service-endpoints-check", "filter-output", "ct state new "},
		{"firewall-check", "filter-prerouting-pre-dnat", "ct state new "},
		{"firewall-check", "filter-output-pre-dnat", "ct state new "},
		{"services", "nat-output", ""},
		{"services", "nat-prerouting", ""},
		{"masquerading", "nat-postrouting", ""},
		{"cluster-ips-check", "filter-forward", "ct state new "},
		{"cluster-ips-check", "filter-output", "ct state new "},
	} {
		if !made[j[0]] {
			made[j[0]] = true
			b.chain(j[0])
		}
		b.rules(j[1], j[2]+"jump "+j[0])
	}
}

// dispatch is what exists whatever services there are: maps, the ways to
// them, and masquerading.
func (b *nftScript) dispatch() {
	b.chain("mark-for-masquerade", "mark set mark or "+kubeMark)
	b.rules("masquerading", "mark and "+kubeMark+" == 0 return", "mark set mark xor "+kubeMark, "masquerade fully-random")
	b.do("add set", "cluster-ips", "{ type ipv4_addr ; }")
	b.rules("cluster-ips-check", "ip daddr @cluster-ips reject", fmt.Sprintf("ip daddr { %s } drop", network.ServiceRange()))
	for _, m := range []string{"no-endpoint-services", "firewall-ips", "service-ips"} {
		b.do("add map", m, "{ type ipv4_addr . inet_proto . inet_service : verdict ; }")
	}
	for _, m := range []string{"no-endpoint-nodeports", "service-nodeports"} {
		b.do("add map", m, "{ type inet_proto . inet_service : verdict ; }")
	}
	const service, port = "ip daddr . meta l4proto . th dport vmap @", "ip daddr != 127.0.0.0/8 meta l4proto . th dport vmap @"
	b.chain("reject-chain", "reject")
	b.rules("service-endpoints-check", service+"no-endpoint-services")
	b.rules("nodeport-endpoints-check", port+"no-endpoint-nodeports")
	b.rules("firewall-check", service+"firewall-ips")
	b.rules("services", service+"service-ips", "fib daddr type local "+port+"service-nodeports")
}

// nftName is a chain's: a hash and the words that it names (hashAndTruncate).
func nftName(prefix, of string) string {
	sum := sha256.Sum256([]byte(of))
	return prefix + base32.StdEncoding.EncodeToString(sum[:])[:8] + "-" + of
}

// emptied is a chain with these rules and no others, whether it existed or not.
func (b *nftScript) emptied(name string, rules ...string) {
	b.do("add chain", name)
	b.do("flush chain", name)
	b.rules(name, rules...)
}

// nftBase is what the names of a service's chains are made from.
func nftBase(s network.Service) string {
	return fmt.Sprintf("%s/%s/%s", s.Name, s.Protocol, s.PortName)
}

// endpoints are the chains of a service's endpoints, and its own.
func (b *nftScript) endpoints(self network.Node, s network.Service, chain func(name string, rules ...string)) {
	base := nftBase(s)
	var choice []string
	for i, e := range s.Endpoints {
		endpoint := nftName("endpoint-", fmt.Sprintf("%s__%s/%d", base, e.Addr(), e.Port()))
		chain(endpoint,
			fmt.Sprintf("ip saddr %s jump mark-for-masquerade", e.Addr()),
			fmt.Sprintf("meta l4proto %s dnat to %s", s.Protocol, e))
		choice = append(choice, fmt.Sprintf("%d : goto %s", i, endpoint))
	}
	chain(nftName("service-", base),
		fmt.Sprintf("ip daddr %s %sjump mark-for-masquerade", s.Address.Addr(), outside(self, "ip saddr != %s ")),
		fmt.Sprintf("numgen random mod %d vmap { %s }", len(s.Endpoints), strings.Join(choice, ", ")))
}

// changed is what kube-proxy writes when one service has changed: that service's chains. Those
// of endpoints that it no longer has stay.
func (b *nftScript) changed(self network.Node, s network.Service) { b.endpoints(self, s, b.emptied) }

func (b *nftScript) service(self network.Node, s network.Service) {
	base, address := nftBase(s), s.Address.Addr()
	chain := nftName("service-", base)
	b.endpoints(self, s, b.chain)
	b.do("add element", "cluster-ips", fmt.Sprintf("{ %s }", address))
	b.do("add element", "service-ips", fmt.Sprintf("{ %s . %s . %d : goto %s }", address, s.Protocol, s.Address.Port(), chain))
	if s.NodePort != 0 {
		external := nftName("external-", base)
		b.chain(external, "jump mark-for-masquerade", "goto "+chain)
		b.do("add element", "service-nodeports", fmt.Sprintf("{ %s . %d : goto %s }", s.Protocol, s.NodePort, external))
	}
}
