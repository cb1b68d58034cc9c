package lab

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/cni"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/result"
)

// TestAHundredNetworksSideBySide: all of them up at once, with the same
// addresses, and traffic across each reaches its own pod; one whose set-up
// fails leaves them alone; nothing is left of any.
func TestAHundredNetworksSideBySide(t *testing.T) {
	needLab(t)
	const hundred = 100
	plugins := t.TempDir()
	failing := "#!/bin/sh\n[ \"$CNI_COMMAND\" = VERSION ] && exit 0\n" +
		`echo '{"cniVersion":"1.0.0","code":7,"msg":"the wire is cut"}'; exit 1` + "\n"
	if err := os.WriteFile(filepath.Join(plugins, "failing"), []byte(failing), 0o755); err != nil {
		t.Fatal(err)
	}
	dir := stateDir(t)
	leavesNothing(t, dir, func() string {
		o := options(newRunner(t), dir)
		o.CNIPath = append([]string{plugins}, cni.UsualDirs()...)
		o.Networks = []network.Network{userNetwork(t, `{"cniVersion":"1.0.0","name":"mine","plugins":[{"type":"bridge","bridge":"mine0",`+
			`"ipam":{"type":"host-local","subnet":"10.99.1.0/24"}},{"type":"failing"}]}`)}
		kinds := []string{"bridge", "calico/direct", "flannel/vxlan", "macvlan"}
		var all []result.Cell
		for i := range hundred {
			c := cells(kinds[i%len(kinds)])[0] // between nodes
			c.MTU = 1400 + i
			all = append(all, c)
		}
		mine := cells("mine")[0]
		l := New(o)
		began := time.Now()
		unsupported, err := l.Build(t.Context(), append(all, mine))
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%d networks in %v", hundred, time.Since(began).Round(100*time.Millisecond))
		if len(unsupported) != 1 || !strings.Contains(unsupported[mine], "the wire is cut") {
			t.Errorf("unsupported: %v, want the one that fails", unsupported)
		}
		if left, err := netns.List(l.state.ClusterPrefix(hundred + 1)); err != nil || len(left) > 0 {
			t.Errorf("of the network that failed %v are left (%v)", left, err)
		}
		acrossEach(t, l, all)
		if _, err := l.Ends(t.Context(), mine); err == nil {
			t.Error("the network that failed has ends")
		}
		id := l.ID()
		began = time.Now()
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
		t.Logf("down in %v", time.Since(began).Round(100*time.Millisecond))
		return id
	})
}

// acrossEach asks who is at the server's address in every network, once all
// servers are there.
func acrossEach(t *testing.T, l *Lab, all []result.Cell) {
	t.Helper()
	seen := map[string]bool{}
	for _, cell := range all {
		c := l.clusters[keyOf(cell)]
		answers(t, c.ns(site{2, 1}), netip.AddrPortFrom(c.address(site{2, 1}), 8080))
	}
	for _, cell := range all {
		c := l.clusters[keyOf(cell)]
		var who string
		err := netns.Do(c.ns(site{1, 1}), func() (err error) {
			who, err = askOnce("udp", netip.AddrPortFrom(c.address(site{2, 1}), 8080).String())
			return err
		})
		who, _, _ = strings.Cut(who, " ")
		if want := c.ns(site{2, 1}).Name; err != nil || who != want {
			t.Errorf("%s, MTU %d: %q answers, want %q (%v)", cell.Network, cell.MTU, who, want, err)
		}
		seen[who] = true
	}
	if len(seen) != len(all) {
		t.Errorf("%d pods answered in %d networks", len(seen), len(all))
	}
}
