package probe

import (
	"math"
	"testing"
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
