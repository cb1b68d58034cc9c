package result_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/result"
)

// A place that one side alone has is one difference, whatever was read there.
func TestChangedSettingsOfAPlaceOfOneSide(t *testing.T) {
	facts := result.PlaceFacts{Kernel: "6.18", Sysctls: map[string]string{"a": "1", "b": "2"}, Offloads: map[string]string{"gro": "on"}, MTUs: map[string]int{"eth0": 1500}}
	other := facts
	other.Sysctls = map[string]string{"a": "3", "b": "2"}
	got := result.ChangedSettings(result.Environment{Places: map[string]result.PlaceFacts{"node1": facts, "node2": facts}},
		result.Environment{Places: map[string]result.PlaceFacts{"node1": other, "node3": facts}})
	want := []string{"node1: sysctl a: 1 → 3", "node2: a place of the campaign → (absent)", "node3: (absent) → a place of the campaign"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestElsewhere(t *testing.T) {
	at := result.Environment{Version: "v1", Testbed: "kubernetes", Host: result.Host{Kernel: "6.1", CPUModel: "A", CPUs: 4, MemoryBytes: 1},
		Clusters: map[string]result.ClusterFacts{"c": {Context: "x", Kubernetes: "v1.34", Network: "cilium", NetworkVersion: "1.18", Nodes: map[string]result.NodeFacts{"n1": {}, "n2": {}}}}}
	for want, change := range map[string]func(*result.Environment){
		"cnibench: v1 → v2": func(e *result.Environment) { e.Version = "v2" },
		"kernel: 6.1 → 6.2": func(e *result.Environment) { e.Host.Kernel = "6.2" },
		"CPU: A → B":        func(e *result.Environment) { e.Host.CPUModel = "B" },
		"CPUs: 4 → 2":       func(e *result.Environment) { e.Host.CPUs = 2 },
		"": func(e *result.Environment) {
			e.Host.MemoryBytes, e.Host.CPUModel, e.Clusters = 2, "", map[string]result.ClusterFacts{"d": {Kubernetes: "v1.1"}}
		},
		"cluster c: Kubernetes: v1.34 → v1.35": func(e *result.Environment) {
			e.Clusters = map[string]result.ClusterFacts{"c": {Context: "y", Kubernetes: "v1.35", Network: "cilium", NetworkVersion: "1.18", Nodes: at.Clusters["c"].Nodes}}
		},
		"cluster c: nodes: n1 n2 → n1 n9": func(e *result.Environment) {
			e.Clusters = map[string]result.ClusterFacts{"c": {Kubernetes: "v1.34", Nodes: map[string]result.NodeFacts{"n1": {}, "n9": {}}}}
		},
	} {
		now := at
		change(&now)
		if got := strings.Join(result.Elsewhere(at, now), "; "); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if got := result.ChangedSettings(at, now); want != "" && !slices.Contains(got, want) {
			t.Errorf("where it is allowed, the report warns of %q, want %q in it", got, want)
		}
	}
}
