package lab

import (
	"context"
	"fmt"
	"net/netip"
	"regexp"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/catalog"
	"github.com/cnibench/cnibench/internal/network/cilium"
	"github.com/cnibench/cnibench/internal/testbed/lab/state"
)

// TestPoliciesBeforeTheOneThatAllows: traffic passes through all of them, and the last
// allows it; what that does not allow is denied.
func TestPoliciesBeforeTheOneThatAllows(t *testing.T) {
	for _, n := range catalog.List() {
		if !n.Policy {
			continue
		}
		for _, policies := range []int{10, 1000} {
			t.Run(fmt.Sprintf("%s/%d", n.Name, policies), func(t *testing.T) {
				t.Parallel()
				needLab(t)
				l := New(options(newRunner(t), stateDir(t)))
				labtest.Feature(t, n.Name, l.planner.check(n, "unshaped", DefaultProfile, 1500))
				spec := state.Spec{Network: n.Name, Link: "unshaped", Profile: DefaultProfile, MTU: 1500, Policies: policies, Pods: []int{2, 1}}
				if err := l.build(t.Context(), []state.Spec{spec}); err != nil {
					t.Fatal(err)
				}
				defer func() {
					if err := l.Close(context.WithoutCancel(t.Context())); err != nil {
						t.Error(err)
					}
				}()
				c := l.ordered[0]
				first, last := network.PolicyPorts()
				for _, to := range []site{{2, 1}, {1, 2}} {
					var allowed netip.AddrPort
					for _, port := range []uint16{first, last, 30080} {
						allowed = echoPort(t, c.ns(to), netip.AddrPortFrom(c.address(to), port))
						if err := ask(c.ns(site{1, 1}), allowed, 100); err != nil {
							t.Errorf("pod %v, port %d: %v", to, port, err)
						}
					}
					answered(t, c.ns(site{1, 1}), allowed, deaf(t, c.ns(to), netip.AddrPortFrom(c.address(to), first-1)))
				}
				policiesWerePassed(t, c, n, policies)
			})
		}
	}
}

// policiesWerePassed counts the policies on node 1 and looks whether packets
// passed all of them.
func policiesWerePassed(t *testing.T, c *cluster, n network.Network, policies int) {
	t.Helper()
	if strings.HasPrefix(n.Name, "cilium/") {
		got, err := cilium.PolicyEntries(c.nodes[0].NS, c.nodes[0].Device)
		if err != nil {
			t.Fatal(err)
		}
		// Each policy has both directions and protocols, and six prefixes for the
		// ports; the one that allows has three identities.
		if want := len(c.pods[0]) * 2 * 2 * 6 * (policies + 3); got != want {
			t.Errorf("%d entries in the policy map, want %d", got, want)
		}
		return
	}
	if strings.HasPrefix(n.Name, "antrea/") {
		conjunctionsAreThere(t, c, policies)
		return
	}
	if strings.HasPrefix(n.Name, "ovn/") {
		ovnPoliciesAreThere(t, c, policies)
		return
	}
	rules := counters(t, c.nodes[0].NS)
	patterns := []string{"-A cali-fw-cali.* -j cali-po-default.a%04d", "-A cali-tw-cali.* -j cali-pi-default.a%04d"}
	if strings.HasPrefix(n.Name, "kube-router/") {
		patterns = []string{`-A KUBE-POD-FW-.*"run through nw policy default.a%04d".* -j KUBE-NWPLCY-`}
	}
	for _, pattern := range patterns {
		// In one pass: a thousand patterns against thousands of rules take long.
		passed := map[string]bool{}
		head, tail, _ := strings.Cut(pattern, "%04d")
		re := regexp.MustCompile("^" + head + `(\d{4})` + tail)
		for rule, packets := range rules {
			if m := re.FindStringSubmatch(rule); m != nil && packets > 0 {
				passed[m[1]] = true
			}
		}
		if len(passed) != policies {
			t.Errorf("%d policies were passed by %q, want %d", len(passed), pattern, policies)
		}
	}
}

// conjunctionsAreThere: every policy has flows of its own for its peer, and is
// named by every pod's. That traffic passed is counted by the one that allows.
func conjunctionsAreThere(t *testing.T, c *cluster, policies int) {
	t.Helper()
	all := flows(t, c.nodes[0])
	for _, table := range []string{"EgressRule", "IngressRule"} {
		peers, pods := 0, 0
		for _, f := range all {
			switch {
			case f.table != table:
			case strings.Contains(f.text, "=198.19."):
				peers++
			case strings.Count(f.text, "conjunction(") == policies+1 && !strings.Contains(f.text, "tp_dst="):
				pods++
			}
		}
		if peers != policies || pods != len(c.pods[0]) {
			t.Errorf("%s: %d flows for peers of %d policies, %d for %d pods", table, peers, policies, pods, len(c.pods[0]))
		}
	}
}
