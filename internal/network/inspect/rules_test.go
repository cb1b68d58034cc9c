package inspect

import (
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/labtest/fuzzed"
	"github.com/cnibench/cnibench/internal/labtest/space"
	"github.com/cnibench/cnibench/internal/netfilter"
	"github.com/cnibench/cnibench/internal/netns"
)

// seven are rules of which five check a datagram at INPUT: the first,
// the jump, two of the chain pods, the one that accepts it.
const seven = `*filter
:INPUT ACCEPT [0:0]
:pods - [0:0]
-A INPUT -p tcp -j DROP
-A INPUT -j pods
-A INPUT -p udp -j ACCEPT
-A INPUT -j DROP
-A pods -p udp -m udp --dport 1 -j ACCEPT
-A pods -p udp -m comment --comment "known" -j RETURN
-A pods -j DROP
COMMIT
`

// TestRuleReader sends datagrams past rules that it has counted by hand.
func TestRuleReader(t *testing.T) {
	labtest.Root(t)
	labtest.Feature(t, "nf_tables", netns.NFTables().Probe())
	// iptables-legacy makes its lock in /run, where other tests look for what labs leave.
	t.Setenv("XTABLES_LOCKFILE", filepath.Join(t.TempDir(), "lock"))
	// The legacy table has its chains OUTPUT and FORWARD too: each datagram enters
	// the first.
	for restore, entered := range map[string]float64{"iptables-nft-restore": 20 * 2, "iptables-legacy-restore": 20 * 3} {
		t.Run(restore, func(t *testing.T) {
			labtest.Tool(t, restore, "iptables")
			if restore == "iptables-legacy-restore" {
				labtest.Feature(t, "iptables, legacy", netns.IPTables().Probe())
			}
			ns := ruleNS(t, restore, seven)
			r, err := OpenRules(ns)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			read := func() netfilter.Ruleset {
				t.Helper()
				rules, err := r.Read(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				return rules
			}
			before := read()
			datagrams(t, ns, 20)
			x, err := netfilter.Between(before, read())
			if err != nil || x.Rules != 7 || x.Evaluated != 20*5 || x.Entered != entered {
				t.Errorf("%+v (%v), want 7 rules, 100 evaluated, %v chains entered", x, err, entered)
			}
		})
	}
}

// ruleNS is a namespace with rules.
func ruleNS(t *testing.T, restore, rules string) netns.NS {
	t.Helper()
	ns := space.New(t, "rules")
	r := exec.NewRunner()
	defer r.Close()
	if _, err := r.Run(t.Context(), exec.Cmd{Argv: []string{restore}, NetNS: ns.Path, Stdin: strings.NewReader(rules)}); err != nil {
		t.Fatal(err)
	}
	return ns
}

// datagrams go from one socket of a namespace to another.
func datagrams(t *testing.T, ns netns.NS, n int) {
	t.Helper()
	err := netns.Do(ns, func() error {
		server, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			return err
		}
		defer server.Close()
		client, err := net.DialUDP("udp4", nil, server.LocalAddr().(*net.UDPAddr))
		if err != nil {
			return err
		}
		defer client.Close()
		for range n {
			if _, err := client.Write([]byte("x")); err != nil {
				return err
			}
			if _, err := server.Read(make([]byte, 8)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// FuzzNFT: whatever netlink messages hold, chains and rules of them are read or refused.
func FuzzNFT(f *testing.F) {
	f.Add([]byte{2, 0, 0, 0, 8, 0, 1, 0, 'n', 'a', 't', 0})
	f.Add([]byte{1})
	f.Fuzz(func(t *testing.T, data []byte) {
		defer fuzzed.Within(t)()
		if _, err := parseNFTChain(data); err == nil && len(data) < 4 {
			t.Errorf("%x is a chain", data)
		}
		table, chain, r, err := parseNFTRule(data)
		if err == nil && (len(data) < 4 || len(table)+len(chain)+len(r.ID) > len(data)+64) {
			t.Errorf("%x is a rule of %q, %q: %+v", data, table, chain, r)
		}
	})
}
