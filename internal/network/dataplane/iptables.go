package dataplane

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strings"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
)

// What networks' rules are given to, of IPv4 and of IPv6: iptables over nf_tables,
// the mode that current distributions have and that agents choose there.
const (
	iptablesRestore  = "iptables-nft-restore"
	ip6tablesRestore = "ip6tables-nft-restore"
)

// RuleNeeds are the features of networks that filter by iptables and ipset.
func RuleNeeds() []netns.Feature {
	return []netns.Feature{IPTablesTool(), netns.NFTables(), netns.Conntrack(), netns.IPSet()}
}

// IPTablesTool is the program, as a feature of the machine.
func IPTablesTool() netns.Feature {
	return netns.Feature{
		Name: iptablesRestore, Doc: "rules of networks", Cure: "apt-get install iptables", Probe: func() error {
			if _, err := exec.LookPath(iptablesRestore); err != nil {
				return fmt.Errorf("%s is not installed: apt-get install iptables", iptablesRestore)
			}
			return nil
		},
	}
}

// Table is one table of iptables: rules in order, chains made before them.
type Table struct {
	Name   string
	Policy map[string]string // of built-in chains
	// Large is for tables of tens of thousands of chains: all counters of the table
	// are set to 0 first. That makes iptables-nft-restore read the whole table at
	// once, where else it looks each line's chain up in a sorted list of those named
	// so far (cache_chain_list_insert of 1.8.9), which takes the square of their
	// number: minutes for 10,000 services, that are seconds so.
	Large  bool
	chains []string
	Rules  []string
}

// Chain adds a chain with its rules, each without "-A CHAIN".
func (t *Table) Chain(name string, rules ...string) {
	t.chains = append(t.chains, name)
	t.Add(name, rules...)
}

// Add appends rules to a chain.
func (t *Table) Add(chain string, rules ...string) {
	for _, r := range rules {
		t.Rules = append(t.Rules, "-A "+chain+" "+r)
	}
}

// Insert puts a rule at a chain's head.
func (t *Table) Insert(chain, rule string) { t.Rules = append(t.Rules, "-I "+chain+" "+rule) }

// String is the table in iptables-restore's language. With its --noflush a
// chain that is named is emptied, others stay.
func (t *Table) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%s\n", t.Name)
	if t.Large {
		b.WriteString("-Z\n")
	}
	for _, chain := range []string{"INPUT", "FORWARD", "OUTPUT"} {
		if p := t.Policy[chain]; p != "" {
			fmt.Fprintf(&b, ":%s %s [0:0]\n", chain, p)
		}
	}
	for _, c := range t.chains {
		fmt.Fprintf(&b, ":%s - [0:0]\n", c)
	}
	for _, r := range t.Rules {
		b.WriteString(r + "\n")
	}
	b.WriteString("COMMIT\n")
	return b.String()
}

// Restore gives tables of IPv4 to the kernel, each in one step.
func Restore(ctx context.Context, self network.Node, tables ...*Table) error {
	return restoreBy(ctx, iptablesRestore, self, tables...)
}

// Restore6 is restore for tables of IPv6.
func Restore6(ctx context.Context, self network.Node, tables ...*Table) error {
	return restoreBy(ctx, ip6tablesRestore, self, tables...)
}

// restoreBy is restore with the program of a family.
func restoreBy(ctx context.Context, program string, self network.Node, tables ...*Table) error {
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

// HashedName is a chain's or a set's name, as kube-router and kube-proxy make
// them of a hash.
func HashedName(prefix, of string) string {
	sum := sha256.Sum256([]byte(of))
	return prefix + base32.StdEncoding.EncodeToString(sum[:])[:16]
}
