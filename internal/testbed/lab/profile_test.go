package lab

import (
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed/lab/state"
)

// TestProfiles: in one lab, each node and pod has the settings of its own
// profile and no other, every record's ends say what is in force, and what did
// not take has a reason. It is read with sysctl and ethtool's own eyes: the
// namespaces' files and devices.
func TestProfiles(t *testing.T) {
	needLab(t)
	l := New(options(newRunner(t), stateDir(t)))
	var all []result.Cell
	for _, profile := range []string{"default_settings", "kernel_optimizations", "nic_optimizations", "network-latency"} {
		for _, c := range cells("host", "bridge") {
			if c.Placement == result.InterHost {
				c.Profile = profile
				all = append(all, c)
			}
		}
	}
	unsupported, err := l.Build(t.Context(), all)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	sack := map[string]string{}
	for _, c := range all {
		if c.Profile == "network-latency" {
			if !strings.Contains(unsupported[c], "tuned") {
				t.Errorf("%s: %q, want tuned as the reason", c.Profile, unsupported[c])
			}
			continue
		}
		ends, err := l.Ends(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		from, _, err := sites(c, c.Network == "host")
		if err != nil {
			t.Fatal(err)
		}
		ns := l.clusters[keyOf(c)].ns(from)
		for _, name := range []string{"net.ipv4.tcp_sack", "net.core.rmem_max"} {
			have, err := netns.Sysctl(ns, strings.ReplaceAll(name, ".", "/"))
			if err == nil && ends.Client.Settings[name] != have {
				t.Errorf("%s %s: %s is %s, recorded %q", c.Network, c.Profile, name, have, ends.Client.Settings[name])
			}
		}
		sack[c.Profile] = ends.Client.Settings["net.ipv4.tcp_sack"]
		if ends.Client.Settings["offload gro"] == "" {
			t.Errorf("%s %s: no offload gro recorded, which another profile asks for", c.Network, c.Profile)
		}
		doubts := strings.Join(slices.Concat(ends.Client.Doubts, ends.Server.Doubts), "\n")
		for profile, word := range map[string]string{"kernel_optimizations": "net.core.rmem_max", "nic_optimizations": "ring rx"} {
			if strings.Contains(doubts, word) && c.Profile != profile {
				t.Errorf("%s doubts %s", c.Profile, doubts)
			}
		}
		if c.Profile == "nic_optimizations" && !strings.Contains(doubts, "ring rx") {
			t.Errorf("veth has rings now? %q", doubts)
		}
	}
	if sack["kernel_optimizations"] != "0" || sack["default_settings"] != "1" {
		t.Errorf("tcp_sack is %v", sack)
	}
	env, err := l.Environment(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	checkProfiles(t, env)
}

func checkProfiles(t *testing.T, env result.Environment) {
	t.Helper()
	seen := map[string]int{}
	for name, p := range env.Places {
		seen[p.Profile]++
		if (p.Profile == "") != (len(p.Settings) == 0) {
			t.Errorf("%s: profile %q with %d settings", name, p.Profile, len(p.Settings))
		}
		for _, s := range p.Settings {
			if s.Reason == "" && s.Value != s.Asked {
				t.Errorf("%s: %+v is not as asked, and has no reason", name, s)
			}
		}
	}
	// A node each for host, and a node and its pod for bridge, twice.
	for _, profile := range []string{"", "kernel_optimizations", "nic_optimizations"} {
		if seen[profile] != 6 {
			t.Errorf("%d places of profile %q, want 6", seen[profile], profile)
		}
	}
}

// TestUpWithProfile: a lab that stays has its profile too.
func TestUpWithProfile(t *testing.T) {
	needLab(t)
	dir := stateDir(t)
	o := options(newRunner(t), dir)
	info, err := Up(t.Context(), o, []state.Spec{{Network: "host", Link: "unshaped", Profile: "kernel_optimizations", MTU: 1500, Pods: []int{0, 0}}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if _, err := Down(t.Context(), o, info.ID); err != nil {
			t.Error(err)
		}
	}()
	for _, p := range info.Places {
		if p.Kind != "node" {
			continue
		}
		if v, err := netns.Sysctl(netns.Named(p.Namespace), "net/ipv4/tcp_max_syn_backlog"); err != nil || v != "4096" {
			t.Errorf("%s: tcp_max_syn_backlog is %s, %v", p.Namespace, v, err)
		}
	}
	if _, err := Up(t.Context(), o, []state.Spec{{Network: "host", Link: "unshaped", Profile: "fast", MTU: 1500, Pods: []int{0}}}); err == nil {
		t.Error("an unknown profile is built")
	}
}
