package network

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/netns"
)

// What networks' rules are given to, of IPv4 and of IPv6: iptables over nf_tables,
// the mode that current distributions have and that agents choose there.
const (
	iptablesRestore  = "iptables-nft-restore"
	ip6tablesRestore = "ip6tables-nft-restore"
)

// ruleNeeds are the features of networks that filter by iptables and ipset.
func ruleNeeds() []netns.Feature {
	return []netns.Feature{iptablesTool(), netns.NFTables(), netns.Conntrack(), netns.IPSet()}
}

// iptablesTool is the program, as a feature of the machine.
func iptablesTool() netns.Feature {
	return netns.Feature{
		Name: iptablesRestore, Doc: "rules of networks", Mend: "apt-get install iptables", Probe: func() error {
			if _, err := exec.LookPath(iptablesRestore); err != nil {
				return fmt.Errorf("%s is not installed: apt-get install iptables", iptablesRestore)
			}
			return nil
		},
	}
}

// table is one table of iptables: rules in order, chains made before them.
type table struct {
	name   string
	policy map[string]string // of built-in chains
	// large is for tables of tens of thousands of chains: all counters of the table
	// are set to 0 first. That makes iptables-nft-restore read the whole table at
	// once, where else it looks each line's chain up in a sorted list of those named
	// so far (cache_chain_list_insert of 1.8.9), which takes the square of their
	// number: minutes for 10,000 services, that are seconds so.
	large  bool
	chains []string
	rules  []string
}

// chain adds a chain with its rules, each without "-A CHAIN".
func (t *table) chain(name string, rules ...string) {
	t.chains = append(t.chains, name)
	t.add(name, rules...)
}

// add appends rules to a chain.
func (t *table) add(chain string, rules ...string) {
	for _, r := range rules {
		t.rules = append(t.rules, "-A "+chain+" "+r)
	}
}

// insert puts a rule at a chain's head.
func (t *table) insert(chain, rule string) { t.rules = append(t.rules, "-I "+chain+" "+rule) }

// String is the table in iptables-restore's language. With its --noflush a
// chain that is named is emptied, others stay.
func (t *table) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%s\n", t.name)
	if t.large {
		b.WriteString("-Z\n")
	}
	for _, chain := range []string{"INPUT", "FORWARD", "OUTPUT"} {
		if p := t.policy[chain]; p != "" {
			fmt.Fprintf(&b, ":%s %s [0:0]\n", chain, p)
		}
	}
	for _, c := range t.chains {
		fmt.Fprintf(&b, ":%s - [0:0]\n", c)
	}
	for _, r := range t.rules {
		b.WriteString(r + "\n")
	}
	b.WriteString("COMMIT\n")
	return b.String()
}

// restore gives tables to the kernel, each in one step.
func restore(ctx context.Context, self Node, tables ...*table) error {
	return restoreBy(ctx, iptablesRestore, self, tables...)
}

// restoreBy is restore with the program of a family.
func restoreBy(ctx context.Context, program string, self Node, tables ...*table) error {
	r := exec.NewRunner()
	defer r.Close()
	var text strings.Builder
	for _, t := range tables {
		text.WriteString(t.String())
	}
	_, err := r.Run(ctx, exec.Cmd{
		Argv: []string{program, "--noflush"}, NetNS: self.NS.Path, Stdin: strings.NewReader(text.String()),
	})
	if err != nil {
		return fmt.Errorf("%s: rules: %w", self.Name, err)
	}
	return nil
}

// single is an address as a prefix of its own.
func single(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }
