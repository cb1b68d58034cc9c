package lab

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/result"
)

// The networks of ladders have what their step adds and nothing more: those
// with connection tracking know the flow and no rule matches it, those without know
// none; on a bridge without tracking packets do not pass netfilter.
func TestStepsOfLaddersAreWhatTheySay(t *testing.T) {
	const direct, bridge = "calico/direct", "bridge"
	tracks := map[string]bool{result.LadderPrefix + "conntrack": true, result.LadderPrefix + "bridge-conntrack": true, result.LadderPrefix + "bridge": false, direct: false, bridge: false}
	var names []string
	for name := range tracks {
		names = append(names, name)
	}
	l := New(options(newRunner(t), t.TempDir()))
	all := cells(names...)
	buildLab(t, l, all)
	for _, cell := range all {
		if cell.Placement != result.InterHost {
			continue
		}
		c := l.clusters[keyOf(cell)]
		from, to, err := sites(cell, false)
		if err != nil {
			t.Fatal(err)
		}
		if err := ask(c.ns(from), echo(t, c.ns(to), c.address(to)), 100); err != nil {
			t.Errorf("%s: %v", cell.Network, err)
		}
		node := c.nodes[0].NS
		if flows := connections(t, node); (flows > 0) != tracks[cell.Network] {
			t.Errorf("%s: %d connections are tracked", cell.Network, flows)
		}
		rules, err := newRunner(t).Run(t.Context(), exec.Cmd{Argv: []string{"nft", "list", "ruleset"}, NetNS: node.Path})
		if err != nil {
			t.Fatal(err)
		}
		if text := string(rules.Stdout); strings.Contains(text, "forward") || strings.Contains(text, "postrouting") || strings.Contains(text, "prerouting") {
			t.Errorf("%s: rules in the way of forwarded packets:\n%s", cell.Network, text)
		}
		if v, err := netns.Sysctl(node, "net/bridge/bridge-nf-call-iptables"); err == nil && cell.Network != direct && (v == "1") == (cell.Network == result.LadderPrefix+"bridge") {
			t.Errorf("%s: bridge-nf-call-iptables is %s", cell.Network, v)
		}
	}
}

// connections is how many are tracked in a namespace.
func connections(t *testing.T, ns netns.NS) int {
	t.Helper()
	v, err := netns.Sysctl(ns, "net/netfilter/nf_conntrack_count")
	if os.IsNotExist(err) {
		return 0 // the kernel tracks none at all
	}
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(v))
	if err != nil {
		t.Fatal(err)
	}
	return n
}
