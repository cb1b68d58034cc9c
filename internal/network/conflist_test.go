package network

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/labtest/fuzzed"
)

func TestFromConflist(t *testing.T) {
	one := `{"plugins":[{"type":"ptp","ipam":{"type":"host-local","subnet":"10.9.1.0/24"}},{"type":"bandwidth"}]}`
	two := strings.ReplaceAll(one, "10.9.1", "10.9.2")
	nodes := []Node{{Index: 1}, {Index: 2}}
	n, err := FromConflist("mine", [][]byte{[]byte(one), []byte(two)})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(n.Plugins, " "); got != "ptp host-local bandwidth" {
		t.Errorf("plugins %s", got)
	}
	for i, want := range []string{one, two} {
		if got, err := n.Conflist(nodes[i], nodes); err != nil || string(got) != want {
			t.Errorf("node %d: %s (%v)", i+1, got, err)
		}
	}
	third := Node{Index: 3}
	if _, err := n.Conflist(third, append(nodes, third)); err == nil || !strings.Contains(err.Error(), "2 conflists for 3 nodes") {
		t.Errorf("node 3: %v", err)
	}
	same, err := FromConflist("mine", [][]byte{[]byte(one)})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := same.Conflist(nodes[1], nodes); err != nil || string(got) != one {
		t.Errorf("one list for all: %s (%v)", got, err)
	}
	for _, bad := range []string{"", "{", `{}`, `{"plugins":[]}`, `[]`} {
		if _, err := FromConflist("mine", [][]byte{[]byte(bad)}); err == nil {
			t.Errorf("%q gives no error", bad)
		}
	}
	if _, err := FromConflist("mine", nil); err == nil {
		t.Error("no conflist gives no error")
	}
}

func TestSubnets(t *testing.T) {
	p := netip.MustParsePrefix
	for _, c := range []struct {
		subnets [][]netip.Prefix
		want    bool
	}{
		{[][]netip.Prefix{{p("10.1.0.0/24")}, {p("10.2.0.0/24")}}, true},
		{[][]netip.Prefix{{p("10.1.0.0/16")}, {p("10.1.2.0/24")}}, false},
		{[][]netip.Prefix{{p("10.1.0.0/24")}, {p("10.2.0.0/24")}, {p("10.2.0.0/24")}}, false},
		{[][]netip.Prefix{{}, {}}, true},
	} {
		if got := disjoint(c.subnets); got != c.want {
			t.Errorf("%v disjoint: %v", c.subnets, got)
		}
	}
	for prefix, want := range map[string]string{
		"10.244.2.0/24": "10.244.2.254", "198.18.0.1/16": "198.18.255.254", "10.0.0.0/30": "10.0.0.2",
	} {
		if got := LastAddress(p(prefix)); got.String() != want {
			t.Errorf("last address of %s: %s, want %s", prefix, got, want)
		}
	}
}

// FuzzUserList: the subnets of a conflist that people bring are IPv4 ones without host bits.
func FuzzUserList(f *testing.F) {
	f.Add([]byte(`{"plugins":[{"type":"bridge","ipam":{"type":"host-local","ranges":[[{"subnet":"10.9.0.7/24"}]]}}]}`))
	f.Add([]byte(`{"plugins":[{"ipam":{"type":"host-local","subnet":"fd00::/64"}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		defer fuzzed.Within(t)()
		l, err := readUserList(data)
		if err != nil {
			return
		}
		if len(l.names()) > 2*len(l.Plugins) {
			t.Errorf("%q has the plugins %v", data, l.names())
		}
		for _, p := range l.subnets() {
			if !p.Addr().Is4() || p != p.Masked() || p == (netip.Prefix{}) {
				t.Errorf("%q has the subnet %v", data, p)
			}
		}
	})
}
