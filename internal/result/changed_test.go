package result_test

import (
	"slices"
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
