package workload

import (
	"math"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/result"
)

func ms(n int) *time.Duration {
	d := time.Duration(n) * time.Millisecond
	return &d
}

func TestPodsAdded(t *testing.T) {
	pods := []result.PodTimes{
		{Device: ms(20), Address: ms(30), Route: ms(31), Added: ms(40), Policy: ms(100), Answered: ms(110), Removed: ms(50)},
		{Device: ms(40), Address: ms(60), Route: ms(63), Added: ms(80), Policy: ms(100), Answered: ms(130), Removed: ms(70)},
	}
	m, err := PodsAdded(result.PodSetUp{Pods: pods})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{
		"pod_ready_mean_seconds": 0.120, "pod_ready_max_seconds": 0.130, "pods_ready_per_second": 2 / 0.130,
		"pod_device_mean_seconds": 0.030, "pod_address_mean_seconds": 0.015, "pod_route_mean_seconds": 0.002, "pod_waiting_mean_seconds": 0.013,
		"pod_added_mean_seconds": 0.060, "pod_policy_mean_seconds": 0.040, "pod_answer_mean_seconds": 0.020, "pod_removed_mean_seconds": 0.060,
	} {
		if v, ok := m.Metrics[name]; !ok || math.Abs(v-want) > 1e-9 {
			t.Errorf("%s: %v, want %v", name, v, want)
		}
	}
	if len(m.Metrics) != 11 || m.MeasuredSeconds != 0.130 {
		t.Errorf("%+v", m)
	}
}

// TestPluginMeans: the mean over pods by verb; a plugin that did not run for each
// of them has none.
func TestPluginMeans(t *testing.T) {
	took := func(verb, plugin string, n int) result.PluginTime {
		return result.PluginTime{Plugin: plugin, Verb: verb, Took: *ms(n)}
	}
	m, err := PodsAdded(result.PodSetUp{Pods: []result.PodTimes{
		{Answered: ms(41), Plugins: []result.PluginTime{took("ADD", "bridge", 30), took("ADD", "portmap", 4), took("ADD", "portmap", 2), took("DEL", "bridge", 9)}},
		{Answered: ms(42), Plugins: []result.PluginTime{took("ADD", "bridge", 40), took("ADD", "portmap", 8)}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if got := m.PluginSeconds; len(got) != 1 || len(got["ADD"]) != 2 || math.Abs(got["ADD"]["bridge"]-0.035) > 1e-9 || math.Abs(got["ADD"]["portmap"]-0.007) > 1e-9 {
		t.Errorf("got %v", got)
	}
}

// What was not seen of every pod is absent, and never 0.
func TestPodsAddedAbsent(t *testing.T) {
	m, err := PodsAdded(result.PodSetUp{Pods: []result.PodTimes{{Device: ms(20), Added: ms(40), Answered: ms(41)}, {Added: ms(40), Answered: ms(42)}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"pod_device_mean_seconds", "pod_address_mean_seconds", "pod_policy_mean_seconds", "pod_removed_mean_seconds"} {
		if v, there := m.Metrics[name]; there {
			t.Errorf("%s: %v", name, v)
		}
	}
	if v := m.Metrics["pod_answer_mean_seconds"]; math.Abs(v-0.0015) > 1e-9 {
		t.Errorf("from the end of ADD to the answer: %v", v)
	}
	// An address before the device is another order, and no negative time.
	m, err = PodsAdded(result.PodSetUp{Pods: []result.PodTimes{{Device: ms(20), Address: ms(10), Added: ms(40), Answered: ms(41)}}})
	if _, there := m.Metrics["pod_address_mean_seconds"]; there || err != nil {
		t.Errorf("%v (%v)", m.Metrics, err)
	}
	for _, none := range [][]result.PodTimes{nil, {{Added: ms(40)}}} {
		if m, err := PodsAdded(result.PodSetUp{Pods: none}); err == nil {
			t.Errorf("%v gave %v", none, m.Metrics)
		}
	}
}

// Memory is per pod, and what could not be measured is a warning.
func TestPodsAddedBeside(t *testing.T) {
	bytes := 3e5
	set := result.PodSetUp{Pods: []result.PodTimes{{Answered: ms(1)}, {Answered: ms(1)}}, KernelBytes: &bytes, Doubts: []string{"busy"}}
	m, err := PodsAdded(set)
	if err != nil || m.Metrics["pod_kernel_memory_bytes"] != 1.5e5 || len(m.Warnings) != 1 {
		t.Errorf("%+v (%v)", m, err)
	}
	if _, there := m.Metrics["pod_process_memory_bytes"]; there {
		t.Error("what was not measured is there")
	}
}
