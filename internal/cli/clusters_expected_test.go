package cli

import (
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/campaign"
)

// TestOtherNetworkIsRefused: a cluster whose network is not the one that the campaign names is
// refused with what it has.
func TestOtherNetworkIsRefused(t *testing.T) {
	of := func(name, network, found string, change ...func(*campaign.Cluster)) campaign.Cluster {
		c := campaign.Cluster{Name: name, Network: network, Found: campaign.Found{Network: found}}
		for _, f := range change {
			f(&c)
		}
		return c
	}
	switched := func(c *campaign.Cluster) { c.Switch = [][]string{{"helm"}} }
	good := []campaign.Cluster{of("a", "", "cilium/native"), of("b", "flannel/vxlan", "flannel/vxlan"), of("c", "cilium/native", "flannel/vxlan", switched)}
	if err := asExpected(campaign.Campaign{Clusters: good}); err != nil {
		t.Error(err)
	}
	bad := append(good, of("d", "flannel/vxlan", "cilium/native"), of("e", "calico/ipip", "unknown"))
	err := asExpected(campaign.Campaign{Clusters: bad})
	for _, want := range []string{
		"cluster d: it has the network cilium/native, and the campaign names flannel/vxlan: use a cluster that has it",
		"cluster e: it has the network unknown, and the campaign names calico/ipip",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %q", err, want)
		}
	}
	if err != nil && strings.Count(err.Error(), "\n") != 1 {
		t.Errorf("other clusters are refused too: %v", err)
	}
}
