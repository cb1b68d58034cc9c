package profile

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/ansible"
	"github.com/cnibench/cnibench/internal/result"
)

func TestList(t *testing.T) {
	all, err := List()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != len(names()) {
		t.Fatalf("%d profiles, want %d", len(all), len(names()))
	}
	for _, p := range all {
		if p.Summary == "" || p.Source == "" {
			t.Errorf("%s: no summary or no source", p.Name)
		}
		if (len(p.Settings()) == 0) != (p.Name == result.DefaultProfile) {
			t.Errorf("%s asks for %v", p.Name, p.Settings())
		}
	}
	// A file that is in no list would be read by nobody.
	files, err := ansible.Files.ReadDir("profiles")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !slices.Contains(names(), strings.TrimSuffix(f.Name(), ".yml")) {
			t.Errorf("%s is not in names()", f.Name())
		}
	}
}

// What the paper says it changed (Dakić et al. 2024, section 3).
func TestAsPublished(t *testing.T) {
	for name, want := range map[string][]Setting{
		"kernel_optimizations": {
			{"net.core.rmem_max", "16777216"}, {"net.core.wmem_max", "16777216"},
			{"net.ipv4.tcp_max_syn_backlog", "4096"}, {"net.ipv4.tcp_sack", "0"}, {"net.ipv4.tcp_window_scaling", "1"},
		},
		"nic_optimizations": {{"offload gro", "on"}, {"offload tso", "on"}, {"ring rx", "4096"}, {"ring tx", "4096"}},
		"network-latency":   {{"tuned", "network-latency"}},
	} {
		p, err := Find(name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, p.Settings()); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}

func TestFindUnknown(t *testing.T) {
	if _, err := Find("fast"); err == nil || !strings.Contains(err.Error(), "kernel_optimizations") {
		t.Errorf("%v: want the known names", err)
	}
}

func TestBroken(t *testing.T) {
	for name, text := range map[string]string{
		"a key that is not known": "name: x\nsysctl: {}\n",
		"another name inside":     "name: y\n",
		"a path for a sysctl":     "name: x\nsysctls: {net/ipv4/tcp_sack: \"0\"}\n",
		"a ring of nothing":       "name: x\nrings: {rx: 0}\n",
		"no such ring":            "name: x\nrings: {mini: 5}\n",
		"no YAML":                 "name: [x\n",
	} {
		if _, err := list(fstest.MapFS{"profiles/x.yml": {Data: []byte(text)}}, []string{"x"}); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	if _, err := list(fstest.MapFS{}, []string{"x"}); err == nil {
		t.Error("a file that does not exist is taken")
	}
}
