//go:build linux

package probe

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// userHZ is the unit of /proc/stat: USER_HZ is 100 on every architecture that
// Go runs on (sysconf(_SC_CLK_TCK), time(7)).
const userHZ = 100

// cpuModes are the columns of /proc/stat that are kept, by their position
// (proc_stat(5)). iowait is idle time; guest is contained in user.
func cpuModes() []struct {
	name   string
	column int
} {
	return []struct {
		name   string
		column int
	}{{"user", 0}, {"nice", 1}, {"system", 2}, {"idle", 3}, {"iowait", 4}, {"irq", 5}, {"softirq", 6}, {"steal", 7}}
}

// CPU measures processor time by mode, of the whole machine: a network
// namespace has no processor time of its own. Its values are cpu_<mode>_seconds
// summed over all processors, and cpu_busiest_core_ratio, the share of the
// window in which the busiest processor was not idle.
type CPU struct {
	Roots Roots
	first map[string][]uint64
}

// NewCPU makes the probe.
func NewCPU(roots Roots) *CPU { return &CPU{Roots: roots} }

// Name is the probe's name.
func (c *CPU) Name() string { return CPUName }

// Start reads the first edge.
func (c *CPU) Start() error {
	first, err := c.read()
	c.first = first
	return err
}

// Stop reads the second edge and gives the differences.
func (c *CPU) Stop() (map[string]float64, error) {
	if c.first == nil {
		return nil, errors.New("the first edge was not read")
	}
	second, err := c.read()
	if err != nil {
		return nil, err
	}
	if !maps.EqualFunc(c.first, second, func(_, _ []uint64) bool { return true }) {
		return nil, fmt.Errorf("a processor came or went inside the window: %d were listed before, %d after", len(c.first)-1, len(second)-1)
	}
	values := map[string]float64{}
	for _, m := range cpuModes() {
		if d, ok := ticks(c.first["cpu"], second["cpu"], m.column); ok {
			values["cpu_"+m.name+"_seconds"] = float64(d) / userHZ
		}
	}
	busiest, found := 0.0, false
	for name, after := range second {
		if name == "cpu" {
			continue
		}
		if ratio, ok := busy(c.first[name], after); ok {
			busiest, found = max(busiest, ratio), true
		}
	}
	if found {
		values["cpu_busiest_core_ratio"] = busiest
	}
	return values, nil
}

// busy is the share of its time in which one processor was not idle. Steal is
// busy: the processor was wanted and given to somebody else.
func busy(before, after []uint64) (float64, bool) {
	var all, idle uint64
	for _, m := range cpuModes() {
		d, ok := ticks(before, after, m.column)
		if !ok {
			continue
		}
		all += d
		if m.name == "idle" || m.name == "iowait" {
			idle += d
		}
	}
	if all == 0 {
		return 0, false // shorter than a tick
	}
	return float64(all-idle) / float64(all), true
}

// ticks is the difference of one column. iowait may go backwards (proc_stat(5)),
// and idle with it; that counts as no time. Another that does so is no number.
func ticks(before, after []uint64, column int) (uint64, bool) {
	if column >= len(before) || column >= len(after) {
		return 0, false
	}
	if after[column] < before[column] {
		name := cpuModes()[column].name
		return 0, name == "idle" || name == "iowait"
	}
	return after[column] - before[column], true
}

// read gives the columns of each "cpu" line.
func (c *CPU) read() (map[string][]uint64, error) {
	path := filepath.Join(c.Roots.Proc, "stat")
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	cpus, err := parseStat(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return cpus, nil
}

func parseStat(raw []byte) (map[string][]uint64, error) {
	cpus := map[string][]uint64{}
	for line := range bytes.Lines(raw) {
		fields := strings.Fields(string(line))
		if len(fields) == 0 || !strings.HasPrefix(fields[0], "cpu") {
			continue
		}
		for _, f := range fields[1:] {
			n, err := strconv.ParseUint(f, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", fields[0], err)
			}
			cpus[fields[0]] = append(cpus[fields[0]], n)
		}
	}
	if len(cpus["cpu"]) == 0 {
		return nil, errors.New("no line of all processors")
	}
	return cpus, nil
}
