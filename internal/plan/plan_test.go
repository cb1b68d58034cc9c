package plan

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/workload"
)

var update = flag.Bool("update", false, "write the golden files")

func matrix(networks ...string) campaign.Campaign {
	c := campaign.Campaign{
		Name: "test", Links: []string{"unshaped"}, Profiles: []string{"default_settings"},
		Paths: []campaign.Path{{From: "pod", To: "pod", Placement: result.InterHost}},
		Workloads: []campaign.Workload{
			{Name: "tcp_stream", Values: campaign.Values{"message_bytes": {1472, 9000}, "streams": {1}}},
			{Name: "tcp_rr", Values: campaign.Values{"message_bytes": {64}, "streams": {1}}},
		},
		MTU: []int{1500}, Families: []string{"ipv4"},
		Sampling: campaign.Sampling{Seconds: 1, WarmupSeconds: 0.2, MinBlocks: 5, MaxBlocks: 20, Retries: 1},
	}
	for _, n := range networks {
		c.Networks = append(c.Networks, campaign.Network{Name: n})
	}
	return c
}

func TestNullTestDoublesNetworksAndNotTheBaseline(t *testing.T) {
	for _, c := range []struct {
		networks []string
		want     string
	}{
		{[]string{"host", "bridge", "macvlan"}, "bridge bridge#2 host macvlan macvlan#2"},
		{[]string{"bridge"}, "bridge bridge#2"},
		{[]string{"host"}, "host host#2"},
	} {
		p := NewNullTest(matrix(c.networks...), 1)
		if err := p.validate(); err != nil {
			t.Error(err)
		}
		var got []string
		for _, cell := range p.Cells[:len(p.Cells)/3] { // of the first of three traffics
			got = append(got, cell.Network)
		}
		if s := strings.Join(got, " "); s != c.want || len(p.Cells) != 3*len(got) {
			t.Errorf("%v: %d cells, first %s, want %s", c.networks, len(p.Cells), s, c.want)
		}
		data, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := Parse(data); err != nil || !back.NullTest || back.Same(p) != nil {
			t.Errorf("read back: %v, null test %v, same %v", err, back.NullTest, back.Same(p))
		}
		if plain := New(matrix(c.networks...), 1); p.Same(plain) == nil {
			t.Error("it is the same as the plan of the campaign itself")
		}
	}
}

func TestCells(t *testing.T) {
	pods := func(placement string) campaign.Path {
		return campaign.Path{From: "pod", To: "pod", Placement: placement}
	}
	tests := []struct {
		name   string
		change func(*campaign.Campaign)
		want   []string
	}{
		{"quick", func(c *campaign.Campaign) {}, []string{
			"bridge pod-to-pod inter-host, unshaped, default_settings, MTU 1500, tcp_rr 64 B",
			"host host-to-host inter-host, unshaped, default_settings, MTU 1500, tcp_rr 64 B",
			"bridge pod-to-pod inter-host, unshaped, default_settings, MTU 1500, tcp_stream 1472 B",
			"host host-to-host inter-host, unshaped, default_settings, MTU 1500, tcp_stream 1472 B",
			"bridge pod-to-pod inter-host, unshaped, default_settings, MTU 1500, tcp_stream 9000 B",
			"host host-to-host inter-host, unshaped, default_settings, MTU 1500, tcp_stream 9000 B",
		}},
		{"paths of one placement coincide on host", func(c *campaign.Campaign) {
			c.Workloads = c.Workloads[1:]
			c.Paths = []campaign.Path{pods(result.InterHost), pods(result.IntraHost), {From: "host", To: "pod", Placement: result.InterHost}, {From: "host", To: "host", Placement: result.InterHost}}
		}, []string{
			"bridge host-to-pod inter-host, unshaped, default_settings, MTU 1500, tcp_rr 64 B",
			"bridge pod-to-pod inter-host, unshaped, default_settings, MTU 1500, tcp_rr 64 B",
			"host host-to-host inter-host, unshaped, default_settings, MTU 1500, tcp_rr 64 B",
			"bridge pod-to-pod intra-host, unshaped, default_settings, MTU 1500, tcp_rr 64 B",
			"host host-to-host intra-host, unshaped, default_settings, MTU 1500, tcp_rr 64 B",
		}},
		{"what a record takes for granted is no cell of its own", func(c *campaign.Campaign) {
			c.Networks = c.Networks[:1]
			c.Workloads = []campaign.Workload{
				{Name: "udp_rr", Values: campaign.Values{"message_bytes": {64}, "response_bytes": {64, 128}, "burst": {1, 8}, "direction": {campaign.Forward}}},
				{Name: "udp_rr", Values: campaign.Values{"message_bytes": {64}}},
			}
		}, []string{
			"host host-to-host inter-host, unshaped, default_settings, MTU 1500, udp_rr 64 B",
			"host host-to-host inter-host, unshaped, default_settings, MTU 1500, udp_rr 64 B burst 8",
			"host host-to-host inter-host, unshaped, default_settings, MTU 1500, udp_rr 64/128 B",
			"host host-to-host inter-host, unshaped, default_settings, MTU 1500, udp_rr 64/128 B burst 8",
		}},
		{"services on paths to them, policies where they are enforced", func(c *campaign.Campaign) {
			c.Workloads = c.Workloads[1:]
			c.Networks = append(c.Networks, campaign.Network{Name: "canal", Enforces: true})
			c.Paths = []campaign.Path{pods(result.InterHost), {From: "pod", To: "node-port", Placement: result.InterHost}}
			c.Services, c.ServiceProxies, c.Policies = []int{1, 100}, []string{"ebpf"}, []int{0, 10}
		}, []string{
			"bridge pod-to-pod inter-host, unshaped, default_settings, MTU 1500, tcp_rr 64 B",
			"canal pod-to-pod inter-host, unshaped, default_settings, MTU 1500, tcp_rr 64 B",
			"host host-to-host inter-host, unshaped, default_settings, MTU 1500, tcp_rr 64 B",
			"canal pod-to-pod inter-host, unshaped, default_settings, MTU 1500, tcp_rr 64 B with 10 policies",
			"bridge pod-to-node-port inter-host, unshaped, default_settings, MTU 1500, tcp_rr 64 B with 1 service by ebpf",
			"canal pod-to-node-port inter-host, unshaped, default_settings, MTU 1500, tcp_rr 64 B with 1 service by ebpf",
			"canal pod-to-node-port inter-host, unshaped, default_settings, MTU 1500, tcp_rr 64 B with 1 service by ebpf, 10 policies",
			"bridge pod-to-node-port inter-host, unshaped, default_settings, MTU 1500, tcp_rr 64 B with 100 services by ebpf",
			"canal pod-to-node-port inter-host, unshaped, default_settings, MTU 1500, tcp_rr 64 B with 100 services by ebpf",
			"canal pod-to-node-port inter-host, unshaped, default_settings, MTU 1500, tcp_rr 64 B with 100 services by ebpf, 10 policies",
		}},
		{"encryption between nodes, never of the baseline", func(c *campaign.Campaign) {
			c.Workloads = c.Workloads[1:]
			c.Paths = []campaign.Path{pods(result.InterHost), pods(result.IntraHost)}
			c.Encryption = []string{"none", "wireguard-go"}
		}, []string{
			"bridge pod-to-pod inter-host, unshaped, default_settings, MTU 1500, tcp_rr 64 B",
			"host host-to-host inter-host, unshaped, default_settings, MTU 1500, tcp_rr 64 B",
			"bridge pod-to-pod intra-host, unshaped, default_settings, MTU 1500, tcp_rr 64 B",
			"host host-to-host intra-host, unshaped, default_settings, MTU 1500, tcp_rr 64 B",
			"bridge pod-to-pod inter-host, unshaped, default_settings, MTU 1500, tcp_rr 64 B with encryption by wireguard-go",
		}},
		{"families, links and tests", func(c *campaign.Campaign) {
			c.Networks = c.Networks[:1]
			c.Families, c.Links = []string{"ipv4", "ipv6"}, []string{"1-gigabit", "unshaped"}
			c.Workloads = []campaign.Workload{{Name: "iperf3", Values: campaign.Values{"protocol": {"tcp", "udp"}, "test": {"x"}}}}
		}, []string{
			"host host-to-host inter-host, 1-gigabit, default_settings, MTU 1500, iperf3 x tcp",
			"host host-to-host inter-host, 1-gigabit, default_settings, MTU 1500, iperf3 x tcp ipv6",
			"host host-to-host inter-host, 1-gigabit, default_settings, MTU 1500, iperf3 x udp",
			"host host-to-host inter-host, 1-gigabit, default_settings, MTU 1500, iperf3 x udp ipv6",
			"host host-to-host inter-host, unshaped, default_settings, MTU 1500, iperf3 x tcp",
			"host host-to-host inter-host, unshaped, default_settings, MTU 1500, iperf3 x tcp ipv6",
			"host host-to-host inter-host, unshaped, default_settings, MTU 1500, iperf3 x udp",
			"host host-to-host inter-host, unshaped, default_settings, MTU 1500, iperf3 x udp ipv6",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := matrix("host", "bridge")
			tt.change(&c)
			var got []string
			for _, cell := range Cells(c) {
				got = append(got, cell.Describe())
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Every cell that has a baseline in the campaign finds it in the plan.
func TestEveryCellHasItsBaseline(t *testing.T) {
	c := matrix("host", "bridge", "flannel/vxlan")
	c.Paths = []campaign.Path{{From: "pod", To: "host", Placement: result.IntraHost}, {From: "pod", To: "pod", Placement: result.InterHost},
		{From: "pod", To: "cluster-ip", Placement: result.InterHost}}
	c.Networks[1].Enforces = true
	c.Services, c.ServiceProxies, c.Policies = []int{1, 100}, []string{"iptables", "ebpf"}, []int{0, 10}
	c.Encryption = []string{"none", "ipsec"}
	cells := cellSet(Cells(c))
	for cell := range cells {
		if !cells[cell.Baseline()] {
			t.Errorf("%s has no baseline", cell.Describe())
		}
	}
}

// The order of a campaign file's lists does not matter, so a plan can be
// resumed after they were sorted.
func TestCellsDoNotDependOnTheOrderOfTheFile(t *testing.T) {
	c, d := matrix("host", "bridge", "macvlan"), matrix("macvlan", "host", "bridge")
	slices.Reverse(d.Workloads)
	slices.Reverse(d.Workloads[1].Values["message_bytes"])
	if diff := cmp.Diff(Cells(c), Cells(d)); diff != "" {
		t.Error(diff)
	}
}

// The order of the samples is part of a record: it must be the same in every
// version of Go and of this program.
func TestBlockGolden(t *testing.T) {
	var b strings.Builder
	p := New(matrix("host", "bridge", "macvlan"), 7)
	for block := 1; block <= 3; block++ {
		for _, s := range p.Block(block, nil) {
			fmt.Fprintf(&b, "%s %s\n", s.ID, s.Cell.Describe())
		}
	}
	path := filepath.Join("testdata", "blocks.golden")
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Error(diff)
	}
}

func TestDroppingACellDoesNotMoveTheOthers(t *testing.T) {
	p := New(matrix("host", "bridge", "macvlan"), 7)
	rng := rand.New(rand.NewPCG(1, 2))
	for block := 1; block <= p.MaxBlocks; block++ {
		active := func(i int) bool { return rng.IntN(2) == 0 }
		var kept []string
		some := p.Block(block, active)
		in := make(map[string]bool)
		for _, s := range some {
			in[s.ID] = true
		}
		for _, s := range p.Block(block, nil) {
			if in[s.ID] {
				kept = append(kept, s.ID)
			}
		}
		for i, s := range some {
			if s.ID != kept[i] {
				t.Fatalf("block %d: %s is where %s was", block, s.ID, kept[i])
			}
		}
	}
}

func TestBaselineStaysAsLongAsAnyOfItsCells(t *testing.T) {
	p := New(matrix("host", "bridge", "macvlan"), 7)
	only := func(network, workload string) func(int) bool {
		return func(i int) bool { return p.Cells[i].Network == network && p.Cells[i].Workload == workload }
	}
	var got []string
	for _, s := range p.Block(2, only("bridge", "tcp_rr")) {
		got = append(got, s.Cell.Network+" "+s.Cell.Workload)
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"bridge tcp_rr", "host tcp_rr"}, got); diff != "" {
		t.Error(diff)
	}
	if left := p.Block(2, func(int) bool { return false }); len(left) != 0 {
		t.Errorf("nothing is active, and %d samples are planned", len(left))
	}
}

func TestIDsSortAsBlocksAndCellsDo(t *testing.T) {
	c := matrix("host", "bridge")
	c.Sampling.MaxBlocks = 120
	var sizes []any
	for i := range 600 {
		sizes = append(sizes, i+1)
	}
	c.Workloads[0].Values["message_bytes"] = sizes
	p := New(c, 1)
	var inOrder []string
	for _, block := range []int{1, 9, 10, 99, 100, 120} {
		for cell := range p.Cells {
			inOrder = append(inOrder, p.id(block, cell))
		}
	}
	if !slices.IsSorted(inOrder) {
		t.Error("ids are not sorted as text")
	}
	if got := New(matrix("host"), 1).id(3, 2); got != "b03-c002" {
		t.Errorf("id = %s", got)
	}
}

// In each block the cells of one profile and MTU follow each other, and so do those of one
// baseline. Which group is first differs from block to block.
func TestComparedCellsFollowEachOther(t *testing.T) {
	c := matrix("host", "bridge", "macvlan")
	c.Profiles, c.MTU = []string{"default_settings", "network_latency"}, []int{1500, 9000}
	p := New(c, 3)
	first := map[result.Cell]bool{}
	for block := 1; block <= p.MaxBlocks; block++ {
		slots := p.Block(block, nil)
		if len(slots) != len(p.Cells) {
			t.Fatalf("block %d has %d of %d cells", block, len(slots), len(p.Cells))
		}
		first[slots[0].Cell.Baseline()] = true
		together(t, block, slots, func(c result.Cell) any { return settings{c.Profile, c.MTU} })
		together(t, block, slots, func(c result.Cell) any { return c.Baseline() })
	}
	if len(first) < 5 {
		t.Errorf("%d blocks begin with %d groups of 12", p.MaxBlocks, len(first))
	}
}

// together checks that the cells of each group follow each other.
func together(t *testing.T, block int, slots []Slot, group func(result.Cell) any) {
	t.Helper()
	over := map[any]bool{}
	for i, s := range slots {
		if i > 0 && group(s.Cell) != group(slots[i-1].Cell) {
			over[group(slots[i-1].Cell)] = true
		}
		if over[group(s.Cell)] {
			t.Errorf("block %d: %s is apart from its group", block, s.Cell.Describe())
		}
	}
}

// Balance: over many seeds and blocks each cell is equally often in each
// place. Pearson's chi-square over the k × k table has (k-1)² degrees of freedom
// (rows and columns are both fixed); its normal limit puts 5 standard deviations
// far outside chance.
func TestOrderIsBalanced(t *testing.T) {
	p := New(matrix("host", "bridge", "macvlan"), 0)
	k := len(p.Cells)
	counts := make([][]int, k)
	for i := range counts {
		counts[i] = make([]int, k)
	}
	const seeds, blocks = 500, 20
	for seed := range uint64(seeds) {
		p.Seed = seed
		for block := 1; block <= blocks; block++ {
			for position, s := range p.Block(block, nil) {
				counts[position][s.Index]++
			}
		}
	}
	expected, chi := float64(seeds*blocks)/float64(k), 0.0
	for _, row := range counts {
		for _, n := range row {
			chi += (float64(n) - expected) * (float64(n) - expected) / expected
		}
	}
	// For a uniform permutation the entries' covariance makes the statistic
	// k/(k-1) times a chi-square of (k-1)² degrees.
	chi *= float64(k-1) / float64(k)
	degrees := float64((k - 1) * (k - 1))
	if z := (chi - degrees) / math.Sqrt(2*degrees); z > 5 || z < -5 {
		t.Errorf("chi-square %.1f with %.0f degrees of freedom, z = %.1f", chi, degrees, z)
	}
}

func TestEstimate(t *testing.T) {
	c := matrix("host", "bridge") // 6 cells
	tests := []struct {
		budget      float64
		least, most time.Duration
	}{
		{0, 39 * time.Second, 156 * time.Second},
		{100, 39 * time.Second, 100 * time.Second},
		{10, 39 * time.Second, 39 * time.Second}, // the least number of blocks is always run
		{1000, 39 * time.Second, 156 * time.Second},
	}
	for _, tt := range tests {
		c.Sampling.MaxSeconds = tt.budget
		least, most := New(c, 1).Estimate(c.Sampling, 100*time.Millisecond, time.Hour)
		if least != tt.least || most != tt.most {
			t.Errorf("budget %g s: %v to %v, want %v to %v", tt.budget, least, most, tt.least, tt.most)
		}
	}
}

// The example that everybody runs first ends within six minutes: with 0.15 s
// for what surrounds a sample, its least is two and its most five.
func TestQuickstart(t *testing.T) {
	takes := []string{"message_bytes", "streams"}
	c, err := campaign.Load("../../examples/quickstart.yaml", campaign.Known{
		Networks: []string{"host", "bridge", "flannel/vxlan", "flannel/host-gw", "calico/direct", "macvlan"},
		Links:    []string{"unshaped"}, Profiles: []string{"default_settings"}, Testbeds: []string{"lab"}, Probes: []string{"cpu", "process", "counters", "stacks"},
		Workloads: []workload.Spec{{Name: "tcp_stream", Factors: takes}, {Name: "tcp_rr", Factors: takes}},
	})
	if err != nil {
		t.Fatal(err)
	}
	p := New(c, 1)
	if len(p.Cells) != 18 {
		t.Errorf("%d cells, want 6 networks × 3 traffics", len(p.Cells))
	}
	least, most := p.Estimate(c.Sampling, 150*time.Millisecond, 0)
	if least > 125*time.Second || most > 300*time.Second {
		t.Errorf("expected time %v to %v", least, most)
	}
}

func BenchmarkNew5000Cells(b *testing.B) {
	c := matrix("host", "bridge")
	c.Workloads = c.Workloads[:1]
	var sizes []any
	for i := range 2500 {
		sizes = append(sizes, i+1)
	}
	c.Workloads[0].Values["message_bytes"] = sizes
	for b.Loop() {
		if p := New(c, 1); len(p.Cells) != 5000 {
			b.Fatal(len(p.Cells))
		}
	}
}

func BenchmarkBlock5000Cells(b *testing.B) {
	p := Plan{MaxBlocks: 20}
	for i := range 5000 {
		p.Cells = append(p.Cells, result.Cell{Network: "bridge", MessageBytes: i + 1})
	}
	for b.Loop() {
		if len(p.Block(3, nil)) != 5000 {
			b.Fatal("short block")
		}
	}
}

func TestPlanRoundTrip(t *testing.T) {
	c := matrix("host", "bridge", "mine")
	c.Networks[2].Conflist, c.Networks[2].Contents = "mine.conflist", [][]byte{[]byte("{}")}
	p := New(c, 1<<63+5)
	data, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(p, got); diff != "" {
		t.Error(diff)
	}
}

// TestEstimateTuning: a block of a plan with several profiles or MTUs goes
// through all of them; with one there is nothing to change.
func TestEstimateTuning(t *testing.T) {
	p := Plan{MinBlocks: 2, MaxBlocks: 3}
	for _, profile := range []string{"a", "b"} {
		for _, mtu := range []int{1500, 9000} {
			p.Cells = append(p.Cells, result.Cell{Profile: profile, MTU: mtu}, result.Cell{Profile: profile, MTU: mtu, Workload: "x"})
		}
	}
	s := campaign.Sampling{Seconds: 1}
	least, most := p.Estimate(s, 0, 5*time.Second)
	if least != 2*(8+4*5)*time.Second || most != 3*(8+4*5)*time.Second {
		t.Errorf("%v to %v", least, most)
	}
	// In each block, cells of one profile and MTU are together.
	for n := 1; n <= 20; n++ {
		seen, last := map[settings]bool{}, settings{}
		for _, slot := range p.Block(n, nil) {
			now := settings{slot.Cell.Profile, slot.Cell.MTU}
			if now != last && seen[now] {
				t.Fatalf("block %d comes back to %v", n, now)
			}
			seen[now], last = true, now
		}
	}
}

func TestCellsOfClusters(t *testing.T) {
	c := matrix("host", campaign.Detected)
	c.Testbed, c.MTU, c.Policies = campaign.Kubernetes, nil, []int{0, 10}
	c.Workloads = c.Workloads[1:]
	c.Clusters = []campaign.Cluster{
		{Name: "a", Found: campaign.Found{Network: "bridge", MTU: 1500}},
		{Name: "b", Found: campaign.Found{Network: "cilium/native", MTU: 9000, Enforces: true}},
		{Name: "c", Found: campaign.Found{Network: "bridge", MTU: 1500}},
	}
	var got []string
	for _, cell := range Cells(c) {
		got = append(got, fmt.Sprintf("%s of %s at %d with %d", cell.Network, cell.Cluster, cell.MTU, cell.Policies))
		if b := cell.Baseline(); b.Cluster != cell.Cluster || b.MTU != cell.MTU {
			t.Errorf("the baseline of %v is %v", cell, b)
		}
	}
	want := []string{"bridge@a of a at 1500 with 0", "bridge@c of c at 1500 with 0", "host of a at 1500 with 0", "host of c at 1500 with 0",
		"cilium/native of b at 9000 with 0", "host of b at 9000 with 0", "cilium/native of b at 9000 with 10"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
