package antrea

import (
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/network"
)

// TestPortMasksCoverTheRange compares the masks with every port.
func TestPortMasksCoverTheRange(t *testing.T) {
	for _, r := range [][2]uint16{{1024, 65535}, {0, 65535}, {80, 80}, {1, 6}, {65535, 65535}, {1000, 1999}} {
		masks := portMasks(r[0], r[1])
		for port := range 1 << 16 {
			matches := 0
			for _, m := range masks {
				value, mask, _ := strings.Cut(m, "/")
				v, err := strconv.ParseUint(value, 0, 16)
				if err != nil {
					t.Fatal(err)
				}
				k, err := strconv.ParseUint(mask, 0, 16)
				if err != nil {
					t.Fatal(err)
				}
				if uint64(port)&k == v {
					matches++
				}
			}
			want := 0
			if port >= int(r[0]) && port <= int(r[1]) {
				want = 1
			}
			if matches != want {
				t.Fatalf("%v: port %d matches %d of %v", r, port, matches, masks)
			}
		}
	}
	if got := portMasks(network.PolicyPorts()); len(got) != 6 {
		t.Errorf("the policy's ports take %d masks: %v", len(got), got)
	}
}

func TestOpenFlowNumbersTables(t *testing.T) {
	got, err := openFlow("# a comment\n\ntable=B, actions=resubmit(,A),goto_table:C # x\n table={{.}}, ct(table=C,zone=1)\n", []string{"A", "B", "C"}, "A")
	want := "table=1, actions=resubmit(,0),goto_table:2 # x\ntable=0, ct(table=2,zone=1)\n"
	if err != nil || got != want {
		t.Errorf("%q (%v), want %q", got, err, want)
	}
	if _, err := openFlow("table=Z\n", nil, nil); err == nil || !strings.Contains(err.Error(), "do not exist: Z") {
		t.Errorf("an unknown table: %v", err)
	}
}

// TestAntreaPipelineIsWhole: every table that a flow goes to has flows, and
// every table is gone to.
func TestAntreaPipelineIsWhole(t *testing.T) {
	nodes := []network.Node{
		{Index: 1, Address: netip.MustParsePrefix("198.18.0.1/16"), PodCIDR: netip.MustParsePrefix("10.244.1.0/24")},
		{Index: 2, Address: netip.MustParsePrefix("198.18.0.2/16"), PodCIDR: netip.MustParsePrefix("10.244.2.0/24")},
	}
	for _, tunnel := range []bool{true, false} {
		flows, err := pipeline(nodes[0], nodes, net.HardwareAddr{2, 0, 0, 0, 0, 1}, tunnel)
		if err != nil {
			t.Fatal(err)
		}
		var has, to []string
		for line := range strings.Lines(flows) {
			table, rest, _ := strings.Cut(strings.TrimPrefix(line, "table="), ",")
			has = append(has, table)
			for _, verb := range []string{"goto_table:", "resubmit(,", "ct(table=", "commit,table="} {
				for _, part := range strings.Split(rest, verb)[1:] {
					to = append(to, part[:strings.IndexAny(part+" ", ",) \n")])
				}
			}
		}
		for i, name := range Tables() {
			n := strconv.Itoa(i)
			if !slices.Contains(has, n) || i > 0 && !slices.Contains(to, n) {
				t.Errorf("tunnel %v: table %s has flows: %v, is gone to: %v", tunnel, name, slices.Contains(has, n), slices.Contains(to, n))
			}
		}
		if got := strings.Contains(flows, "->tun_dst"); got != tunnel {
			t.Errorf("tunnel %v: packets are tunnelled: %v", tunnel, got)
		}
	}
}
