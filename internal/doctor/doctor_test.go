package doctor

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/workload"
)

var update = flag.Bool("update", false, "write the golden files")

// fixture is a machine made of folders below testdata.
func fixture(name string, count func(Event) (uint64, error), free float64, probe func(feature string) error) Options {
	feature := func(n, doc string) netns.Feature {
		return netns.Feature{Name: n, Doc: doc, Cure: "modprobe " + n, Probe: func() error { return probe(n) }}
	}
	veth, tunnel := feature("veth", "pod interfaces"), feature("ipip", "IP in IP tunnels")
	tool := feature("iptables-restore", "rules of networks") // known to its network alone
	dir := filepath.Join("testdata", name)
	return Options{
		Proc: filepath.Join(dir, "proc"), Sys: filepath.Join(dir, "sys"), Run: filepath.Join(dir, "run"),
		Out: filepath.Join(dir, "not", "yet", "there"), PluginDirs: []string{"testdata/none", filepath.Join(dir, "cni")},
		Features: []netns.Feature{veth, tunnel},
		Networks: []network.Network{
			{Name: "host", HostNetwork: true},
			{Name: "bridge", Needs: []netns.Feature{veth, tool}, Wants: []netns.Feature{tunnel}, Plugins: []string{"bridge", "odd"}},
			{Name: "calico/ipip", Needs: []netns.Feature{veth, tunnel}, Plugins: []string{"bridge", "tunnelplugin"}},
		},
		Workloads: []workload.Spec{
			{Name: "tcp_stream"},
			{Name: "quick", Needs: []workload.Tool{{Name: "quicktool", Package: "quick", Version: []string{"quicktool", "--version"}}}},
			{Name: "slow", Needs: []workload.Tool{{Name: "quicktool", Package: "quick"}, {Name: "slowtool", Package: "slow"}}},
		},
		Profiles: []profile.Profile{
			{Name: "plain", Summary: "nothing is changed"},
			{Name: "quick", Summary: "two settings", Sysctls: map[string]string{"net.core.rmem_max": "1", "net.ipv4.tcp_sack": "0"}},
			{Name: "network-latency", Tuned: "network-latency"},
		},
		TryProfile: func(p profile.Profile) ([]result.Setting, error) {
			var all []result.Setting
			for _, s := range p.Settings() {
				all = append(all, result.Setting{Name: s.Name, Asked: s.Asked, Value: s.Asked})
			}
			if len(all) > 0 && name == "poor" {
				all[0].Value, all[0].Reason = "212992", "it is the whole machine's"
			}
			return all, nil
		},
		Count: count,
		Stacks: func() (string, error) {
			if name == "poor" {
				return "", fmt.Errorf("kernel stacks: CPU 0: %w", unix.EACCES)
			}
			return "the CPU's cycles", nil
		},
		FirstEdge: func(of string) (time.Duration, error) {
			if name == "poor" && of == "process" {
				return 0, errors.New("ksoftirqd: the kernel's threads are not seen from here (a container without the host's processes)")
			}
			return 840 * time.Microsecond, nil
		},
		Loops: func() []float64 {
			if name == "poor" {
				return []float64{200e-6, 410e-6, 205e-6}
			}
			return []float64{210e-6, 200e-6, 205e-6}
		},
		FreeBytes: func(string) (float64, error) { return free, nil },
	}
}

func TestRun(t *testing.T) {
	good := fixture("good", func(Event) (uint64, error) { return 3_000_000, nil }, 80e9, func(string) error { return nil })
	counted := 0
	poor := fixture("poor", func(Event) (uint64, error) {
		if counted++; counted == 1 {
			return 0, unix.EACCES
		}
		return 0, nil
	}, 10e6, func(feature string) error {
		if feature == "ipip" {
			return &netns.MissingError{Feature: feature, Err: unix.EOPNOTSUPP}
		}
		if feature == "veth" {
			return unix.EPERM
		}
		return fmt.Errorf("%s is not installed", feature)
	})
	for _, c := range []struct {
		name string
		o    Options
		can  bool
	}{{"good", good, true}, {"poor", poor, false}} {
		t.Run(c.name, func(t *testing.T) {
			path, err := filepath.Abs(filepath.Join("testdata", c.name, "bin"))
			if err != nil {
				t.Fatal(err)
			}
			t.Setenv("PATH", path+":/bin")
			checks := Run(t.Context(), c.o)
			here, err := os.Getwd()
			if err != nil {
				t.Fatal(err)
			}
			for i := range checks { // the only text that depends on where this tree is
				checks[i].Detail = strings.ReplaceAll(checks[i].Detail, here, "HERE")
			}
			var text, asJSON bytes.Buffer
			if err := errors.Join(WriteText(&text, checks, false), WriteJSON(&asJSON, checks)); err != nil {
				t.Fatal(err)
			}
			golden(t, c.name+".txt", text.Bytes())
			golden(t, c.name+".json", asJSON.Bytes())
			err = CanRunLab(checks)
			if (err == nil) != c.can {
				t.Errorf("CanRunLab: %v", err)
			}
			if err != nil {
				golden(t, c.name+".error.txt", []byte(err.Error()+"\n"))
			}
		})
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got)\n%s", name, diff)
	}
}

// A required thing that cannot be checked without more rights is not called missing:
// the rights are.
func TestCanRunLab(t *testing.T) {
	for _, c := range []struct {
		name  string
		check Check
		can   bool
	}{
		{"there", Check{Required: true, Status: OK}, true},
		{"missing, not required", Check{Status: Missing}, true},
		{"limited, required", Check{Required: true, Status: Limited}, true},
		{"missing, required", Check{Required: true, Status: Missing}, false},
	} {
		if err := CanRunLab([]Check{c.check}); (err == nil) != c.can {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// This machine, whatever it is: every check says what was read, all that is
// missing says what it is for or how it is fixed, and no line but a cure is
// longer than a terminal.
func TestThisMachine(t *testing.T) {
	checks := Run(t.Context(), Options{Out: t.TempDir()})
	for _, c := range checks {
		if c.Area == "" || c.Name == "" || c.Detail == "" {
			t.Errorf("says too little: %+v", c)
		}
		if c.Status == Missing && c.Cure == "" {
			t.Errorf("no cure: %+v", c)
		}
	}
	var text strings.Builder
	if err := WriteText(&text, checks, false); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(text.String()) {
		line = strings.TrimRight(line, "\n")
		if utf8.RuneCountInString(line) > width && !strings.Contains(line, "fix: ") && strings.Contains(strings.TrimSpace(line), " ") {
			t.Errorf("over %d columns: %s", width, line)
		}
	}
	t.Log("\n" + text.String())
}

func TestColorChangesNoText(t *testing.T) {
	checks := []Check{{Area: "a", Name: "b", Status: OK, Detail: "c"}, {Area: "a", Name: "d", Status: Limited, Detail: "e"}, {Area: "f", Name: "g", Status: Missing, Detail: "h"}}
	var plain, colored strings.Builder
	if err := errors.Join(WriteText(&plain, checks, false), WriteText(&colored, checks, true)); err != nil {
		t.Fatal(err)
	}
	bare := colored.String()
	for _, code := range []string{"\x1b[0m", "\x1b[31m", "\x1b[32m", "\x1b[33m"} {
		if !strings.Contains(bare, code) {
			t.Errorf("no %q", code)
		}
		bare = strings.ReplaceAll(bare, code, "")
	}
	if diff := cmp.Diff(plain.String(), bare); diff != "" {
		t.Error(diff)
	}
}

func TestStolen(t *testing.T) {
	for _, c := range []struct {
		numbers string
		want    float64
		bad     bool
	}{
		{"1 1 1 1 1 1 1 1 900 900", 12.5, false},
		{"100 0 0 0 0 0 0 0", 0, false},
		{"1 2 3", 0, true},
		{"0 0 0 0 0 0 0 0", 0, true},
		{"a 0 0 0 0 0 0 0", 0, true},
		{"", 0, true},
	} {
		got, err := stolen(c.numbers)
		if got != c.want || (err != nil) != c.bad {
			t.Errorf("%q: %v, %v", c.numbers, got, err)
		}
	}
}
