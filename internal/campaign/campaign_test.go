package campaign

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/labtest/fuzzed"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares got with a file, or writes it with -update.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (run the test with -update)", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (run the test with -update where the change is meant): %s", path, diff)
	}
}

// Every wrong file has its exact error, all errors of the file in its order.
func TestBadCampaigns(t *testing.T) {
	t.Chdir("testdata/bad") // files are named as a person beside them would
	files := files(t, "*.yaml")
	if len(files) < 30 {
		t.Fatalf("%d wrong campaigns, expected 30 at least", len(files))
	}
	for _, path := range files {
		t.Run(path, func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			_, err = Parse(path, data, testKnown())
			if err == nil {
				t.Fatal("no error")
			}
			golden(t, strings.TrimSuffix(path, ".yaml")+".golden", err.Error()+"\n")
			holdOrder(t, err)
		})
	}
}

// holdOrder holds that an error is a join of *Error in the order of the file.
func holdOrder(t *testing.T, err error) {
	t.Helper()
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		t.Fatalf("%T is no join", err)
	}
	line, column := 0, 0
	for _, err := range joined.Unwrap() {
		var e *Error
		if !errors.As(err, &e) {
			t.Fatalf("%T is no *Error", err)
		}
		if e.Line < line || e.Line == line && e.Column < column {
			t.Errorf("%d:%d comes after %d:%d", e.Line, e.Column, line, column)
		}
		line, column = e.Line, e.Column
		if line < 1 || column < 1 {
			t.Errorf("no position: %d:%d", line, column)
		}
	}
}

func files(t *testing.T, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) == 0 {
		t.Fatalf("%s: %d files, %v", pattern, len(found), err)
	}
	return found
}

func TestGoodCampaigns(t *testing.T) {
	for _, path := range files(t, "testdata/good/*.yaml") {
		if _, err := Load(path, testKnown()); err != nil {
			t.Error(err)
		}
	}
}

func TestDefaults(t *testing.T) {
	got, err := Parse("c.yaml", []byte("name: c\nnetworks: [host]\nworkloads: [{name: iperf3}, {name: netperf}, {name: plain}]\n"), testKnown())
	if err != nil {
		t.Fatal(err)
	}
	want := Campaign{
		Name: "c", Testbed: "lab", Networks: []Network{{Name: "host"}}, Links: []string{"unshaped"}, Profiles: []string{"default_settings"},
		Paths: []Path{{From: "pod", To: "pod", Placement: "inter-host"}},
		Workloads: []Workload{
			{Name: "iperf3", Values: Values{"protocol": {"tcp"}, "message_bytes": {1460}, "streams": {1}}},
			{Name: "netperf", Values: Values{"test": {"TCP_STREAM"}}},
			{Name: "plain"},
		},
		MTU: []int{1500}, Families: []string{"ipv4"}, Probes: []string{"cpu", "process", "counters", "stacks", "netfilter", "memory"},
		Services: []int{1}, ServiceProxies: []string{"iptables"}, Policies: []int{0}, Encryption: []string{"none"},
		Sampling: Sampling{Seconds: 1, WarmupSeconds: 0.2, MinBlocks: 5, MaxBlocks: 20, TargetRelativeHalfwidth: 0.02, Until: "target", Confidence: 0.95, Retries: 1,
			SliceSeconds: 0.02, ExplainSeconds: 0.3, ExplainEvery: 8},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Every value lands in its field, however YAML writes it.
func TestEveryKey(t *testing.T) {
	got, err := Load("testdata/good/everything.yaml", testKnown())
	if err != nil {
		t.Fatal(err)
	}
	conflist, err := os.ReadFile("testdata/good/mine.conflist")
	if err != nil {
		t.Fatal(err)
	}
	want := Campaign{
		Name: "everything", Testbed: "lab",
		Networks: []Network{
			{Name: "host"}, {Name: "flannel/vxlan"}, {Name: "calico/direct", Enforces: true},
			{Name: "mine", Conflist: "./mine.conflist", Contents: [][]byte{conflist}},
			{Name: "mine/per-node", Conflists: []string{"mine.conflist", "mine.conflist"}, Contents: [][]byte{conflist, conflist}},
		},
		Links: []string{"1-gigabit", "10-gigabit"}, Profiles: []string{"default_settings"},
		Paths: []Path{{"pod", "pod", "intra-host"}, {"pod", "host", "inter-host"}, {"pod", "cluster-ip", "inter-host"},
			{"pod", "node-port", "intra-host"}, {"host", "host", "inter-host"}},
		Workloads: []Workload{
			{Name: "tcp_stream", Values: Values{"message_bytes": {1472, 65536}, "streams": {1, 8}, "direction": {"forward", "bidirectional"}, "rate_bits_per_second": {1e9, 2.5e9}, "zero_copy": {false, true}, "pin_cpus": {true}, "cpus": {"free"}, "congestion_control": {"bbr"}}, Asked: Conditions{CongestionControl: true}},
			{Name: "tcp_stream", Values: Values{"message_bytes": {65536}, "streams": {1}, "cpus": {"same"}, "congestion_control": {"cubic"}}},
			{Name: "udp_stream", Values: Values{"message_bytes": {64}, "streams": {1}, "udp_gso": {true}}},
			{Name: "udp_rr", Values: Values{"message_bytes": {64}, "response_bytes": {1024}, "streams": {1}, "rate_per_second": {1000.0}, "burst": {1, 16}}},
			{Name: "netperf", Values: Values{"test": {"TCP_RR", "TCP_STREAM"}}},
			{Name: "iperf3", Values: Values{"protocol": {"udp", "tcp"}, "message_bytes": {1460}, "streams": {1}}},
		},
		MTU: []int{1500, 9000}, Families: []string{"ipv4", "ipv6"}, Probes: []string{"cpu", "process", "counters", "stacks", "netfilter", "memory"},
		Services: []int{1, 10000}, ServiceProxies: []string{"iptables", "ebpf"}, Policies: []int{0, 1000}, Encryption: []string{"wireguard-go"},
		Sampling: Sampling{Seconds: 0.5, WarmupSeconds: 0, MinBlocks: 3, MaxBlocks: 3, MaxSeconds: 300, TargetRelativeHalfwidth: 0.05, Until: "target", Confidence: 0.99, Retries: 0,
			SliceSeconds: 0.01, Slices: 12, ExplainSeconds: 0, ExplainEvery: 3},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// The copy of a campaign in a result directory has no conflists beside it.
func TestRecordedCampaignNeedsNoConflists(t *testing.T) {
	text := []byte("name: c\nnetworks: [host, {name: mine, conflist: gone.conflist}]\nworkloads: [{name: plain}]\n")
	known := testKnown()
	if _, err := Parse("c.yaml", text, known); err == nil || !strings.Contains(err.Error(), `cannot read conflist "gone.conflist"`) {
		t.Errorf("missing conflist: %v", err)
	}
	known.Recorded = true
	c, err := Parse("c.yaml", text, known)
	if err != nil || c.Networks[1].Conflist != "gone.conflist" {
		t.Errorf("recorded: %+v, %v", c.Networks, err)
	}
}

// What is too large for a golden file.
func TestHostileFiles(t *testing.T) {
	deep := strings.Repeat("[", 20_000)
	many := "name: c\nnetworks: [host]\nworkloads:\n- name: tcp_stream\n  message_bytes: [1"
	for i := range 30_000 {
		many += ", " + string(rune('0'+i%10))
	}
	tests := []struct{ name, text, want string }{
		{"huge", strings.Repeat("# x\n", 1<<19), "the file has more than 1048576 bytes"},
		{"deep", "networks: " + deep, "nested more than 16 deep"},
		{"dashes", strings.Repeat("- ", 20_000), "nested more than 16 deep"},
		{"indented", indented(1000), "missing key"},
		{"bomb", "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n", "anchors, aliases and merge keys are not taken"},
		{"many", many, "more than 50000 words and signs"},
		{"long line", "name: " + strings.Repeat("x", 500_000), "is not possible"},
		{"many keys", keys(10_000), "more errors from here on"},
		{"cells", tooManyCells(), "the campaign has 131072 cells, more than 100000"},
		{"colons", strings.Repeat("a: ", 20_000), "not valid YAML"},
		{"quotes", strings.Repeat("\"", 20_001), "not valid YAML"},
		{"questions", strings.Repeat("? ", 20_000), `keys written with "?" are not taken`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			began := time.Now()
			_, err := Parse("c.yaml", []byte(tt.text), testKnown())
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("expected %q, found %.300v", tt.want, err)
			}
			t.Logf("%d bytes took %v", len(tt.text), time.Since(began))
		})
	}
}

func indented(depth int) string {
	var b strings.Builder
	for i := range depth {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}

func keys(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("k" + strings.Repeat("x", i%7) + string(rune('a'+i%26)) + ": 1\n")
	}
	return b.String()
}

func tooManyCells() string {
	sizes := make([]string, 128)
	for i := range sizes {
		sizes[i] = strconv.Itoa(i + 1)
	}
	list := "[" + strings.Join(sizes, ", ") + "]"
	return "name: c\nnetworks: [host, bridge]\nlinks: [unshaped, 1-gigabit]\nmtu: [1500, 9000]\nworkloads:\n- {name: tcp_stream, message_bytes: " + list + ", streams: " + list + "}\n"
}

func TestNotes(t *testing.T) {
	c := Campaign{Networks: []Network{{Name: "bridge"}}}
	if n := c.Notes(); len(n) != 1 || !strings.Contains(n[0], "no baseline") {
		t.Errorf("without host: %q", n)
	}
	c.Networks = append(c.Networks, Network{Name: "host"})
	if n := c.Notes(); len(n) != 0 {
		t.Errorf("with host: %q", n)
	}
}

func TestSuggest(t *testing.T) {
	known := testKnown().Networks
	tests := []struct{ name, want string }{
		{"flanel/vxlan", `did you mean "flannel/vxlan"?`},
		{"Bridge", `did you mean "bridge"?`},
		{"flannel/hostgw", `did you mean "flannel/host-gw"?`},
		{"hots", `did you mean "host"?`},
		{"weave", "known networks: host, bridge, flannel/vxlan, flannel/host-gw, calico/direct, macvlan"},
		{strings.Repeat("x", 5000), "known networks: host, bridge, flannel/vxlan, flannel/host-gw, calico/direct, macvlan"},
	}
	for _, tt := range tests {
		if got := suggest("network", tt.name, known); got != tt.want {
			t.Errorf("%.20q: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// A load error that is not about the content names the file.
func TestLoadErrors(t *testing.T) {
	for _, path := range []string{filepath.Join(t.TempDir(), "gone.yaml"), t.TempDir()} {
		if _, err := Load(path, testKnown()); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/good/*.yaml", "testdata/bad/*.yaml", "../../examples/*.yaml"} {
		paths, _ := filepath.Glob(pattern)
		for _, path := range paths {
			data, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	known := testKnown()
	schema := compiled(f, known)
	f.Fuzz(func(t *testing.T, data []byte) {
		defer fuzzed.Within(t)()
		c, err := Parse("testdata/good/fuzz.yaml", data, known)
		if err != nil {
			holdOrder(t, err)
			_ = err.Error()
			return
		}
		if c.Name == "" || len(c.Networks) == 0 || len(c.Workloads) == 0 || !(c.Sampling.Seconds > 0) || c.Sampling.MaxBlocks < c.Sampling.MinBlocks {
			t.Errorf("an impossible campaign was accepted: %+v", c)
		}
		root, _ := readYAML(bytes.TrimPrefix(data, []byte("\ufeff")))
		if err := schema.Validate(root.value()); err != nil {
			t.Errorf("the parser takes what the schema refuses: %v", err)
		}
	})
}

// The networks of a ladder are measured, each once, after those that are named.
func TestLadders(t *testing.T) {
	const rest = "\nworkloads: [{name: tcp_rr}]\n"
	c, err := Parse("c.yaml", []byte("name: c\nnetworks: [flannel/host-gw, host]\nladders: [flannel/vxlan]"+rest), testKnown())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, n := range c.Networks {
		names = append(names, n.Name)
	}
	if got := strings.Join(names, " "); got != "flannel/host-gw host calico/direct flannel/vxlan" {
		t.Errorf("networks %s", got)
	}
	if !c.Networks[2].Enforces {
		t.Error("a network that a ladder adds is not known to enforce policies")
	}
	_, err = Parse("c.yaml", []byte("name: c\nnetworks: [host]\nladders: [macvlan]"+rest), testKnown())
	if err == nil || !strings.Contains(err.Error(), `c.yaml:3:11`) || !strings.Contains(err.Error(), "flannel/vxlan") {
		t.Errorf("a ladder of a network that has none: %v", err)
	}
}
