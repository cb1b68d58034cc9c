package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/probe"
	"github.com/cnibench/cnibench/internal/unit"
)

const machineArea = "machine"

// machine reports how steady figures of this machine can be, and whether there is room
// for them.
func (o Options) machine() []Check {
	return append(o.processors(), o.clockSource(), o.governor(), o.speed(), o.diskSpace())
}

// processors counts CPUs and stolen time from /proc/stat: the eighth number of
// a line cpu is steal (proc(5)).
func (o Options) processors() []Check {
	count := Check{Area: machineArea, Name: "CPUs", NeededFor: "client and server that do not share a core"}
	steal := Check{Area: machineArea, Name: "steal", NeededFor: "figures that are this machine's own"}
	text, err := os.ReadFile(filepath.Join(o.Proc, "stat"))
	if err != nil {
		count.Status, count.Detail = Limited, "unknown: "+err.Error()
		return []Check{count}
	}
	cpus := 0
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "cpu") && !strings.HasPrefix(line, "cpu ") {
			cpus++
		}
	}
	count.Status, count.Detail = OK, strconv.Itoa(cpus)
	if cpus < 2 {
		count.Status = Limited
	}
	percent, err := stolen(field(string(text), "cpu "))
	steal.Status, steal.Detail = OK, fmt.Sprintf("%.2f %% of the CPU time since boot", percent)
	switch {
	case err != nil:
		steal.Status, steal.Detail = Limited, "unknown: "+err.Error()
	case percent > 1:
		steal.Status, steal.Cure = Limited, "a machine that is not shared; or more blocks (sampling.max_blocks)"
	}
	return []Check{count, steal}
}

// stolen is the share of steal in the first eight numbers, in percent; guest
// times, which follow, are already in user.
func stolen(numbers string) (float64, error) {
	words := strings.Fields(numbers)
	if len(words) < 8 {
		return 0, fmt.Errorf("/proc/stat has %d CPU times, not 8", len(words))
	}
	var sum, last float64
	for _, w := range words[:8] {
		v, err := strconv.ParseFloat(w, 64)
		if err != nil {
			return 0, fmt.Errorf("/proc/stat: %w", err)
		}
		sum, last = sum+v, v
	}
	if sum == 0 {
		return 0, fmt.Errorf("/proc/stat has no CPU time")
	}
	return 100 * last / sum, nil
}

// clockSource reports what reading the time costs: these are read without
// entering the kernel, others take up to a microsecond each.
func (o Options) clockSource() Check {
	c := Check{Area: machineArea, Name: "clock source", NeededFor: "latencies of a few microseconds"}
	file := filepath.Join(o.Sys, "devices/system/clocksource/clocksource0/current_clocksource")
	text, err := os.ReadFile(file)
	if err != nil {
		c.Status, c.Detail = Limited, "unknown: "+err.Error()
		return c
	}
	c.Status, c.Detail = OK, strings.TrimSpace(string(text))
	fast := []string{"tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter"}
	if !slices.Contains(fast, c.Detail) {
		c.Status, c.Cure = Limited, "echo tsc > "+file+", where the CPU has a steady one"
		c.Detail += ": slow to read"
	}
	return c
}

func (o Options) governor() Check {
	c := Check{Area: machineArea, Name: "CPU governor", Status: OK, NeededFor: "a clock rate that does not follow the load"}
	files, _ := filepath.Glob(filepath.Join(o.Sys, "devices/system/cpu/cpu*/cpufreq/scaling_governor")) // the pattern is well formed
	var found []string
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			c.Status, c.Detail = Limited, "unknown: "+err.Error()
			return c
		}
		if g := strings.TrimSpace(string(text)); !slices.Contains(found, g) {
			found = append(found, g)
		}
	}
	c.Detail = strings.Join(found, ", ")
	switch {
	case len(found) == 0:
		c.Status, c.Detail = Limited, "unknown here; in a virtual machine its host decides"
	case len(found) > 1 || found[0] != "performance":
		c.Status, c.Cure = Limited, "cpupower frequency-set -g performance"
	}
	return c
}

// speed reports whether a processor is as fast from moment to moment. Neighbours on the same
// cores are seen by nothing else: they are no stolen time.
func (o Options) speed() Check {
	c := Check{Area: machineArea, Name: "CPU speed", Status: OK, NeededFor: "narrow intervals, above all of tools with windows of a second"}
	loops := o.Loops()
	slices.Sort(loops)
	cut := len(loops) / 10
	slowest, fastest := loops[len(loops)-1-cut], loops[cut]
	if fastest <= 0 {
		c.Status, c.Detail = Limited, "unknown: the loop took no time"
		return c
	}
	c.Detail = fmt.Sprintf("changed by %.0f %% within a second", 100*(slowest/fastest-1))
	if slowest/fastest > unit.SpeedRange {
		c.Status, c.Cure = Limited, "a machine that is not shared, with a fixed clock; or wait until it is quiet"
	}
	return c
}

// timeLoops times a loop every 50 ms for a second, seconds.
func timeLoops() []float64 {
	var all []float64
	for range 20 {
		all = append(all, probe.Loop())
		time.Sleep(50 * time.Millisecond)
	}
	return all
}

// A quickstart writes well under a megabyte; a long campaign with the raw
// output of external tools some hundreds.
const (
	diskNeededBytes = 20e6
	diskWantedBytes = 1e9
)

func (o Options) diskSpace() Check {
	c := Check{Area: machineArea, Name: "disk space", NeededFor: "results", Required: true}
	dir, err := filepath.Abs(o.Out)
	for err == nil && !exists(dir) && dir != "/" {
		dir = filepath.Dir(dir)
	}
	var free float64
	if err == nil {
		free, err = o.FreeBytes(dir)
	}
	if err != nil {
		c.Status, c.Detail = Limited, "unknown: "+err.Error()
		return c
	}
	c.Status, c.Detail = OK, fmt.Sprintf("%.0f MB free at %s", free/1e6, dir)
	switch {
	case free < diskNeededBytes:
		c.Status = Missing
	case free < diskWantedBytes:
		c.Status = Limited
	}
	if c.Status != OK {
		c.Cure = "make room there, or --out DIR on another disk"
	}
	return c
}

// freeBytes is what an unprivileged user may still write to the disk under dir.
func freeBytes(dir string) (float64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, fmt.Errorf("free space of %s: %w", dir, err)
	}
	return float64(s.Bavail) * float64(s.Bsize), nil
}
