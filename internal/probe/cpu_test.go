package probe

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/cnibench/cnibench/internal/labtest/fuzzed"
)

func TestCPU(t *testing.T) {
	c := NewCPU(Roots{Proc: "testdata/first"})
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	c.Roots.Proc = "testdata/second"
	got, err := c.Stop()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{
		"cpu_user_seconds": 0.20, "cpu_nice_seconds": 0, "cpu_system_seconds": 0.50, "cpu_idle_seconds": 0.90,
		"cpu_iowait_seconds": 0, "cpu_irq_seconds": 0, "cpu_softirq_seconds": 0.30, "cpu_steal_seconds": 0.10,
		"cpu_busiest_core_ratio": 80.0 / 90.0, // processor 0: 15 + 40 + 25 of 90 ticks
	}
	if len(got) != len(want) {
		t.Errorf("got %v", got)
	}
	for name, w := range want {
		if g, ok := got[name]; !ok || math.Abs(g-w) > 1e-9 {
			t.Errorf("%s: %v, want %v", name, g, w)
		}
	}
}

func TestCPUThatCannotBeRead(t *testing.T) {
	c := NewCPU(Roots{Proc: "testdata/none"})
	if err := c.Start(); err == nil {
		t.Error("no error")
	}
	if v, err := c.Stop(); err == nil || v != nil {
		t.Errorf("%v %v", v, err)
	}
}

// Guest time is in user already (proc_stat(5)), and must not be counted again;
// a column that cannot run backwards and does is no number; with a processor
// that came or went nothing is reported.
func TestCPUOddities(t *testing.T) {
	at := func(stat string) Roots {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "stat"), []byte(stat), 0o644); err != nil {
			t.Fatal(err)
		}
		return Roots{Proc: dir}
	}
	const first = "cpu  10 0 10 100 9 0 0 0 0 0\ncpu0 10 0 10 100 9 0 0 0 0 0\n"
	for _, tc := range []struct {
		name, second string
		want         map[string]float64
	}{
		{"guest", "cpu  60 0 10 150 9 0 0 0 50 0\ncpu0 60 0 10 150 9 0 0 0 50 0\n",
			map[string]float64{"cpu_user_seconds": 0.5, "cpu_system_seconds": 0, "cpu_idle_seconds": 0.5, "cpu_busiest_core_ratio": 0.5}},
		{"backwards", "cpu  20 0 8 150 7 0 0 0 0 0\ncpu0 20 0 8 150 7 0 0 0 0 0\n",
			map[string]float64{"cpu_user_seconds": 0.1, "cpu_idle_seconds": 0.5, "cpu_iowait_seconds": 0}},
		{"a processor came", "cpu  60 0 10 150 9 0 0 0 50 0\ncpu0 60 0 10 150 9 0 0 0 50 0\ncpu1 1 0 0 0 0 0 0 0 0 0\n", nil},
		{"another processor", "cpu  60 0 10 150 9 0 0 0 50 0\ncpu1 60 0 10 150 9 0 0 0 50 0\n", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := NewCPU(at(first))
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			c.Roots = at(tc.second)
			got, err := c.Stop()
			if (err != nil) != (tc.want == nil) || tc.want == nil && got != nil {
				t.Fatalf("%v (%v)", got, err)
			}
			for name, w := range tc.want {
				if g, ok := got[name]; !ok || math.Abs(g-w) > 1e-9 {
					t.Errorf("%s: %v, want %v", name, g, w)
				}
			}
			if _, there := got["cpu_system_seconds"]; there && tc.name == "backwards" {
				t.Errorf("system time that ran backwards: %v", got)
			}
		})
	}
}

func FuzzStat(f *testing.F) {
	for _, path := range []string{"testdata/first/stat", "testdata/second/stat"} {
		raw, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Add([]byte("cpu 1 2\ncpu0 x"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		defer fuzzed.Within(t)()
		cpus, err := parseStat(raw)
		if (err == nil) != (len(cpus["cpu"]) > 0) {
			t.Errorf("%v with %v", err, cpus)
		}
		for _, after := range cpus {
			if ratio, ok := busy(cpus["cpu"], after); ok && (ratio < 0 || ratio > 1) {
				t.Errorf("busy for %g", ratio)
			}
		}
	})
}
