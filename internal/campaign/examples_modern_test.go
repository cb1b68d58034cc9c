package campaign_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/result"
)

func planned(t *testing.T, path string) []result.Cell {
	t.Helper()
	c, err := campaign.Load(path, known())
	if err != nil {
		t.Fatal(err)
	}
	return plan.New(c, 1).Cells
}

// TestServicesAtScalePlan: each proxy at each number of services up to 30,000, and the pod
// itself. A service is changed wherever there is one.
func TestServicesAtScalePlan(t *testing.T) {
	at, changed, plain := map[string][]int{}, map[string][]int{}, 0
	for _, c := range planned(t, "../../examples/services-at-scale.yaml") {
		switch {
		case c.Workload == result.ServiceUpdateName:
			if c.Network != "bridge" || !c.ToService() {
				t.Errorf("%s on %s %s, where no service is", c.Workload, c.Network, c.Path)
			}
			changed[c.ServiceProxy] = append(changed[c.ServiceProxy], c.Services)
		case c.Workload != "tcp_crr":
			t.Errorf("%s does not open a connection each time", c.Workload)
		case c.Network == "bridge" && c.ToService():
			at[c.ServiceProxy] = append(at[c.ServiceProxy], c.Services)
		case c.Network == "bridge":
			plain++
		}
	}
	if got := slices.Sorted(maps.Keys(at)); !slices.Equal(got, []string{"ebpf", "iptables", "ipvs", "nftables"}) || plain != 1 {
		t.Errorf("proxies %v, %d cells without", got, plain)
	}
	for proxy, services := range at {
		if slices.Sort(services); !slices.Equal(services, []int{1, 1000, 10_000, 30_000}) {
			t.Errorf("%s at %v services", proxy, services)
		}
		if slices.Sort(changed[proxy]); !slices.Equal(changed[proxy], services) {
			t.Errorf("%s changes one of %v services", proxy, changed[proxy])
		}
	}
}

// TestEncryptionPlan: each network is measured plain and under each encryption, but for the
// baseline.
func TestEncryptionPlan(t *testing.T) {
	by := map[string][]string{}
	for _, c := range planned(t, "../../examples/encryption.yaml") {
		if c.Workload == "tcp_rr" {
			by[c.Network] = append(by[c.Network], c.Encryption)
		}
	}
	for network, got := range by {
		want := []string{"", "ipsec", "wireguard", "wireguard-go"}
		if network == result.HostNetwork {
			want = want[:1]
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s is encrypted by %q", network, got)
		}
	}
	if len(by) != 4 {
		t.Errorf("%d networks", len(by))
	}
}

// TestModernPlan: each network has a stream whose messages fill segments of BIG TCP, and
// what the example says that it leaves out is not in it.
func TestModernPlan(t *testing.T) {
	workloads := map[string][]string{}
	for _, c := range planned(t, "../../examples/modern.yaml") {
		if c.Workload == "tcp_stream" && c.MessageBytes != 65536 {
			t.Errorf("%s: streams of %d bytes", c.Network, c.MessageBytes)
		}
		workloads[c.Network] = append(workloads[c.Network], c.Workload)
	}
	for _, name := range []string{"host", "bridge", "bridge+bigtcp", "bridge+flowtable", "bridge+sidecar", "bridge+node-proxy", "cilium/native", "cilium/native+netkit", "cilium/native-policy", "cilium/geneve", "calico/ebpf",
		"ovn/geneve", "flannel/vxlan", "flannel/wireguard"} {
		if slices.Sort(workloads[name]); !slices.Equal(workloads[name], []string{"tcp_crr", "tcp_rr", "tcp_stream"}) {
			t.Errorf("%s with %v", name, workloads[name])
		}
	}
	if len(workloads) != 14 {
		t.Errorf("networks %v", slices.Sorted(maps.Keys(workloads)))
	}
}
