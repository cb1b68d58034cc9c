package labkubernetes

import (
	"maps"
	"slices"
	"testing"

	"github.com/cnibench/cnibench/internal/testbed/lab/state"
)

// Agents are the programs of the pod network alone, on nodes with pods.
func TestAgents(t *testing.T) {
	programs := func(cni string, argv ...string) state.Kubernetes {
		return state.Kubernetes{CNI: cni, Programs: []state.Program{
			{Node: state.ControlPlane, Name: "kube-apiserver", PID: 1, Argv: []string{"/x/kube-apiserver"}},
			{Node: state.ControlPlane, Name: "cilium-operator", PID: 2, Argv: []string{"/x/cilium-operator"}},
			{Node: "node1", Name: state.Holder, PID: 3, Argv: []string{"unshare"}},
			{Node: "node1", Name: "kube-proxy", PID: 4, Argv: []string{"nsenter", "/x/kube-proxy"}},
			{Node: "node1", Name: "agent", PID: 5, Argv: argv},
			{Node: "node2", Name: "kubelet", PID: 6, Argv: []string{"/x/kubelet"}},
		}}
	}
	for _, x := range []struct {
		k    state.Kubernetes
		want map[string][]int
	}{
		{programs("flannel/vxlan", "nsenter", "--", "/x/cnibench-flanneld", "--node=node1"), map[string][]int{"node1": {5}, "node2": {}}},
		{programs("cilium/vxlan", "env", "A=/x/y", "/x/cilium-agent"), map[string][]int{"node1": {5}, "node2": {}}},
		{programs("bridge", "/x/other"), map[string][]int{"node1": {}, "node2": {}}},
		{programs("nobody's", "/x/other"), nil},
	} {
		if got := Agents(x.k); !maps.EqualFunc(got, x.want, slices.Equal) {
			t.Errorf("%s: %v, want %v", x.k.CNI, got, x.want)
		}
	}
}
