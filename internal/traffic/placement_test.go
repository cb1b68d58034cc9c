package traffic

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// machineOf makes the folders of a machine's CPUs: core and NUMA node of each.
func machineOf(t *testing.T, cpus [][2]int) string {
	t.Helper()
	dir := t.TempDir()
	for i, c := range cpus {
		cpu := filepath.Join(dir, "cpu", fmt.Sprintf("cpu%d", i))
		if err := os.MkdirAll(filepath.Join(cpu, "topology"), 0o755); err != nil {
			t.Fatal(err)
		}
		for name, v := range map[string]int{"core_id": c[0], "physical_package_id": c[1]} {
			if err := os.WriteFile(filepath.Join(cpu, "topology", name), fmt.Appendln(nil, v), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Mkdir(filepath.Join(cpu, fmt.Sprintf("node%d", c[1])), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestPlacement(t *testing.T) {
	two := [][2]int{{0, 0}, {1, 0}}
	threads := [][2]int{{0, 0}, {1, 0}, {0, 0}, {1, 0}}   // CPUs 2 and 3 are siblings of 0 and 1
	sockets := [][2]int{{0, 0}, {1, 0}, {0, 1}, {1, 1}}   // two NUMA nodes
	siblingsOnly := [][2]int{{0, 0}, {0, 0}}              // one core, two threads
	lastAlone := [][2]int{{0, 0}, {1, 0}, {2, 0}, {0, 1}} // the last CPU has a node for itself
	for _, tt := range []struct {
		name           string
		cpus           [][2]int
		allowed        []int
		placement      string
		client, server []int
		fails          bool
	}{
		{"same", two, []int{0, 1}, CPUsSame, []int{1}, []int{1}, false},
		{"same of one", two, []int{0}, CPUsSame, []int{0}, []int{0}, false},
		{"apart", two, []int{0, 1}, CPUsApart, []int{1}, []int{0}, false},
		{"no siblings", threads, []int{0, 1, 2, 3}, CPUsApart, []int{3}, []int{2}, false},
		{"siblings only", siblingsOnly, []int{0, 1}, CPUsApart, []int{1}, nil, true},
		{"one NUMA node", sockets, []int{0, 1, 2, 3}, CPUsApart, []int{3}, []int{2}, false},
		{"across nodes", sockets, []int{0, 2}, CPUsApart, []int{2}, nil, true},
		{"alone on its node", lastAlone, []int{0, 1, 2, 3}, CPUsApart, []int{3}, nil, true},
		{"one CPU", two, []int{1}, CPUsApart, []int{1}, nil, true},
		{"unknown", two, []int{0, 1}, "together", nil, nil, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			sys := machineOf(t, tt.cpus)
			client, errClient := choose(sys, tt.allowed, tt.placement, false)
			server, err := choose(sys, tt.allowed, tt.placement, true)
			if tt.fails != (err != nil) || !slices.Equal(server, tt.server) || !slices.Equal(client, tt.client) {
				t.Errorf("client on %v (%v), server on %v (%v)", client, errClient, server, err)
			}
		})
	}
	if cpus, err := ChooseCPUs(CPUsFree, true); cpus != nil || err != nil {
		t.Errorf("free: %v, %v", cpus, err)
	}
}

func TestSliceable(t *testing.T) {
	for _, tt := range []struct {
		cfg  Config
		want bool
	}{
		{Config{Test: TCPStream}, true},
		{Config{Test: TCPStream, Direction: Bidirectional}, true},
		{Config{Test: TCPStream, RateBitsPerSecond: 1e6}, false},
		{Config{Test: TCPStream, BackgroundStreams: 1}, false},
		{Config{Test: TCPStream, ZeroCopy: true}, false},
		{Config{Test: UDPStream}, true},
		{Config{Test: UDPStream, Direction: Reverse}, false},
		{Config{Test: TCPRR, Burst: 16}, true},
		{Config{Test: TCPRR, RatePerSecond: 100}, false},
		{Config{Test: UDPRR, Burst: 16}, false},
		{Config{Test: TCPCRR}, true},
		{Config{Test: LatencyUnderLoad}, false},
	} {
		if got := tt.cfg.Sliceable(); got != tt.want {
			t.Errorf("%+v: %v", tt.cfg, got)
		}
		tt.cfg.Token, tt.cfg.MessageBytes, tt.cfg.Streams, tt.cfg.Window, tt.cfg.Sliced = fmt.Sprintf("%032d", 1), 64, 1, 1e6, true
		if err := tt.cfg.Validate(); (err == nil) != tt.want {
			t.Errorf("%+v: %v", tt.cfg, err)
		}
	}
}

// A program that starts ranks gets the CPUs of its ranks, each once.
func TestChooseRankCPUs(t *testing.T) {
	allowed, err := allowedCPUs()
	if err != nil {
		t.Fatal(err)
	}
	last := len(allowed) - 1
	two := []int{allowed[last]}
	if last > 0 {
		two = append(two, allowed[last-1])
	}
	for _, k := range []struct {
		placement string
		ranks     []int
		want      []int
	}{
		{CPUsApart, []int{0}, allowed[last:]}, {CPUsApart, []int{0, 1, len(allowed)}, two},
		{CPUsSame, []int{3, 4}, allowed[last:]}, {CPUsFree, []int{0, 1}, nil},
	} {
		if got, err := ChooseRankCPUs(k.placement, k.ranks); err != nil || !slices.Equal(got, k.want) {
			t.Errorf("%q %v: %v, %v, want %v", k.placement, k.ranks, got, err, k.want)
		}
	}
	if _, err := ChooseRankCPUs("near", []int{0}); err == nil {
		t.Error("an unknown placement was taken")
	}
}
