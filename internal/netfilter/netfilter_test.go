package netfilter

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/labtest/fuzzed"
)

// listing is a small firewall; the counters are those of n times 10 packets: 6
// of them belong to a known connection, the policy's chain allows 3, 1 reaches the end.
func listing(n string) string {
	return strings.ReplaceAll(`# made by hand
*raw
:PREROUTING ACCEPT [10%:0]
[10%:0] -A PREROUTING -j MARK --set-xmark 0x0/0xf0000
COMMIT
*filter
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [1%:0]
:pods - [0:0]
:policy - [0:0]
[10%:0] -A FORWARD -m comment --comment "one two" -j pods
[0:0] -A FORWARD -s 10.9.0.0/16 -j DROP
[6%:0] -A pods -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
[4%:0] -A pods -o eth0 -g policy
[0:0] -A pods -j DROP
[3%:0] -A policy -p tcp -j ACCEPT
[0:0] -A policy -p udp -j RETURN
COMMIT
`, "%", n)
}

func parse(t *testing.T, text string) Ruleset {
	t.Helper()
	r, err := ParseLegacy(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// By hand, of 10 packets: PREROUTING's rule 10, FORWARD's first 10 and its second
// the 1 that came back, pods' first 10, its second 4, its third none (a goto does
// not come back), policy's first 4, its second 1. PREROUTING, FORWARD and pods
// are entered by 10, policy by 4.
func TestBetween(t *testing.T) {
	x, err := Between(parse(t, listing("")), parse(t, listing("00")))
	if err != nil {
		t.Fatal(err)
	}
	evaluated, entered := 99*(10.0+10+1+10+4+0+4+1), 99*(10.0+10+10+4)
	if math.Abs(x.Evaluated-evaluated) > 1e-6 || math.Abs(x.Entered-entered) > 1e-6 || x.Rules != 8 || x.Chains != 5 {
		t.Errorf("%+v, want %v evaluated and %v entered", x, evaluated, entered)
	}
}

// A packet that returns from a base chain comes to its policy, which counts it:
// it entered once.
func TestBetweenReturnFromBase(t *testing.T) {
	const rules = "*filter\n:FORWARD ACCEPT [%:0]\n[%:0] -A FORWARD -j RETURN\n[0:0] -A FORWARD -j DROP\nCOMMIT\n"
	x, err := Between(parse(t, strings.ReplaceAll(rules, "%", "0")), parse(t, strings.ReplaceAll(rules, "%", "7")))
	if err != nil || x.Entered != 7 || x.Evaluated != 7 {
		t.Errorf("%+v (%v)", x, err)
	}
}

func TestBetweenNothing(t *testing.T) {
	r := parse(t, listing(""))
	if x, err := Between(r, r); err != nil || x.Evaluated != 0 || x.Entered != 0 || x.Rules != 8 {
		t.Errorf("%+v (%v)", x, err)
	}
	if _, err := Between(r, Ruleset{}); !errors.Is(err, ErrChanged) {
		t.Errorf("rules that went: %v", err)
	}
	if _, err := Between(parse(t, listing("00")), r); !errors.Is(err, ErrChanged) {
		t.Errorf("counters that went back: %v", err)
	}
}

// What does not count is no zero: the way of the packets is not known then.
func TestBetweenNotCounted(t *testing.T) {
	for name, spoil := range map[string]func(*Ruleset){
		"no end":                     func(r *Ruleset) { r.Chains[2].Policy = nil },
		"a verdict without counter":  func(r *Ruleset) { r.Chains[3].Rules[0].Packets = nil },
		"a jump without counter":     func(r *Ruleset) { r.Chains[2].Rules[0].Packets = nil },
		"a map of verdicts":          func(r *Ruleset) { r.Chains[3].Rules[0].Verdict = Unknown },
		"a jump to what is not here": func(r *Ruleset) { r.Chains[2].Rules[0].To = "gone" },
	} {
		before, after := parse(t, listing("")), parse(t, listing("00"))
		spoil(&before)
		spoil(&after)
		x, err := Between(before, after)
		if !errors.Is(err, ErrNotCounted) || x.Evaluated != 0 || x.Rules != 8 || x.Chains != 5 {
			t.Errorf("%s: %+v (%v)", name, x, err)
		}
	}
	// A mark without a counter leads nobody away.
	before, after := parse(t, listing("")), parse(t, listing("00"))
	before.Chains[0].Rules[0].Packets, after.Chains[0].Rules[0].Packets = nil, nil
	if _, err := Between(before, after); err != nil {
		t.Error(err)
	}
}

func TestParseLegacyRefuses(t *testing.T) {
	for _, text := range []string{
		"*filter\n:FORWARD ACCEPT\n", "*filter\n:FORWARD ACCEPT [1:1]\n-A FORWARD -j ACCEPT\n",
		"*filter\n[1:1] -A nowhere -j ACCEPT\n", "*filter\n:F - [0:0]\n[x:1] -A F -j ACCEPT\n", "*filter\n:F - [0:0]\n[1:1] F\n",
	} {
		if _, err := ParseLegacy(text); err == nil {
			t.Errorf("no error for %q", text)
		}
	}
}

func FuzzParseLegacy(f *testing.F) {
	f.Add(listing(""))
	f.Add("*filter\n:A - [0:0]\n[1:1] -A A -g A\n")
	f.Fuzz(func(t *testing.T, text string) {
		defer fuzzed.Within(t)()
		r, err := ParseLegacy(text)
		if err != nil {
			return
		}
		if x, err := Between(r, r); err == nil && x.Evaluated != 0 {
			t.Errorf("no packet, and %v rules", x.Evaluated)
		}
	})
}
