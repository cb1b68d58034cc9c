package probe

import "slices"

// Names lists every probe by its name, in the order in which they are read.
func Names() []string { return []string{CPUName, ProcessName, CountersName, StacksName} }

// The names of the probes.
const (
	CPUName      = "cpu"
	ProcessName  = "process"
	CountersName = "counters"
	StacksName   = "stacks"
)

// List is every probe but those named, ready for one window. Those that hold
// something open have a Close (io.Closer).
func List(roots Roots, without []string) []Probe {
	var list []Probe
	for _, p := range []struct {
		name string
		open func() Probe
	}{
		{CPUName, func() Probe { return NewCPU(roots) }},
		{ProcessName, func() Probe { return NewProcess(roots) }},
		{CountersName, func() Probe { return OpenCounters(roots) }},
		{StacksName, func() Probe { return OpenStacks(roots) }},
	} {
		if !slices.Contains(without, p.name) {
			list = append(list, p.open())
		}
	}
	return list
}
