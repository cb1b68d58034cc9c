package baremetal

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/kubeclient"
	"github.com/cnibench/cnibench/internal/kubeclient/kubetest"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed/cluster"
)

// nodesOf is a testbed of two hosts, left and right, that are nodes of a cluster.
func nodesOf(t *testing.T, c *kubetest.Cluster, cells []result.Cell) *Testbed {
	t.Helper()
	of, err := cluster.Open(cluster.Options{
		Clusters: []campaign.Cluster{{Nodes: []string{"left", "right"}}}, Image: "image", Say: t.Logf,
		Connect: func(string, string) (*kubeclient.Client, error) { return c.Client(), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := of.Prepare(t.Context(), cells); err != nil {
		t.Fatal(err)
	}
	b := &Testbed{ends: [2]*end{
		{host: Host{Name: "a"}, role: "client", facts: facts{device: "eth0", deviceMbps: 1000, mtu: 1500}},
		{host: Host{Name: "b"}, role: "server", facts: facts{device: "eth0", deviceMbps: 1000, mtu: 1500}},
	}}
	b.Join(of, [2]string{"left", "right"})
	t.Cleanup(func() {
		if err := b.closePods(t.Context()); err != nil {
			t.Error(err)
		}
	})
	return b
}

// TestHostsOfACluster: cells of pods go to the cluster whatever their profile, and
// host-to-host cells stay between the hosts. Settings that pods cannot be given are reported.
func TestHostsOfACluster(t *testing.T) {
	host := result.Cell{Network: "host", Path: "host-to-host", Placement: "inter-host", Link: "1-gigabit", Profile: "kernel_optimizations", MTU: 1500, Workload: "tcp_rr"}
	change := func(f func(*result.Cell)) result.Cell { c := host; f(&c); return c }
	pods := change(func(c *result.Cell) { c.Network, c.Path = "bridge", "pod-to-pod" })
	untuned := change(func(c *result.Cell) { c.Network, c.Path, c.Profile = "bridge", "pod-to-pod", result.DefaultProfile })
	inside := change(func(c *result.Cell) { c.Placement = "intra-host" })
	jumbo := change(func(c *result.Cell) { c.Network, c.Path, c.MTU = "bridge", "pod-to-pod", 9000 })
	fast := change(func(c *result.Cell) { c.Network, c.Path, c.Link = "bridge", "pod-to-pod", "10-gigabit" })
	setup := change(func(c *result.Cell) { c.Network, c.Path, c.Workload = "bridge", "pod-to-pod", "pod_setup" })
	bare := change(func(c *result.Cell) { c.Workload = "pod_setup" })
	cells := []result.Cell{host, pods, untuned, inside, jumbo, fast, setup, bare}
	c := kubetest.New("left", "right")
	b := nodesOf(t, c, cells)

	unsupported, err := b.choose(t.Context(), cells)
	if err != nil {
		t.Fatal(err)
	}
	for cell, want := range map[result.Cell]string{
		host: "", pods: "", untuned: "", inside: "", jumbo: "MTU 9000 is measured between hosts alone", fast: "runs at 1000 Mbit/s", setup: "measure pod_setup with testbed kubernetes", bare: "measure pod_setup with testbed kubernetes",
	} {
		if got := unsupported[cell]; (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s %s MTU %d: %q, want %q", cell.Network, cell.Workload, cell.MTU, got, want)
		}
	}
	if len(b.profiles) != 2 {
		t.Errorf("%d profiles are given to the hosts, want 2", len(b.profiles))
	}
	if b.ofPods(host) || !b.ofPods(inside) {
		t.Error("between hosts it is theirs, inside one its pods'")
	}

	b.held = map[string]*lock{"a": {gone: make(chan struct{})}, "b": {gone: make(chan struct{})}}
	b.deployed, b.tuned = true, tuning{pods.Profile, pods.MTU}
	b.ends[0].values = map[string]string{"net.core.rmem_max": "16777216"}
	ends, err := b.Ends(t.Context(), pods)
	if err != nil {
		t.Fatal(err)
	}
	if ends.Client.Node != "left" || ends.Server.Node != "right" || !strings.HasPrefix(ends.Client.Name, "pod-client") {
		t.Errorf("%+v", ends)
	}
	if ends.Client.Settings["net.core.rmem_max"] == "" {
		t.Errorf("settings: %v", ends.Client.Settings)
	}
	b.pods.nodes = [2]string{"right", "elsewhere"}
	if _, err := b.Ends(t.Context(), pods); err == nil || !strings.Contains(err.Error(), "neither") {
		t.Errorf("pods on another node: %v", err)
	}

	env := result.Environment{Places: map[string]result.PlaceFacts{}, Networks: map[string]result.NetworkFacts{}}
	if err := b.withPods(t.Context(), &env); err != nil || len(env.Clusters) != 1 || len(env.Places) == 0 {
		t.Errorf("%+v, %v", env, err)
	}
}

// TestInPod: a pod has what is of a network namespace for itself, and the rest of
// its node.
func TestInPod(t *testing.T) {
	node := &end{
		values: map[string]string{"net.core.rmem_max": "16777216", "net.ipv4.tcp_sack": "0", "net.ipv4.tcp_max_syn_backlog": "4096", "offload gro": "on"},
		doubts: []string{"a ring stays"},
		asked: []result.Setting{
			{Name: "net.core.rmem_max", Asked: "16777216", Value: "16777216"}, {Name: "net.ipv4.tcp_sack", Asked: "0", Value: "0"},
			{Name: "net.ipv4.tcp_window_scaling", Asked: "1", Value: "1"},
		},
	}
	values, doubts := inPod("kernel_optimizations", node, map[string]string{"net.ipv4.tcp_sack": "1", "net.ipv4.tcp_window_scaling": "1"})
	want := map[string]string{"net.core.rmem_max": "16777216", "net.ipv4.tcp_sack": "1", "offload gro": "on"}
	if diff := cmp.Diff(want, values); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	said := []string{"a ring stays", "profile kernel_optimizations: net.ipv4.tcp_sack is 1, not 0: a pod has it for itself, and profiles are given to nodes"}
	if diff := cmp.Diff(said, doubts); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if node.values["net.ipv4.tcp_sack"] != "0" {
		t.Error("what is known of the node was changed")
	}
}
