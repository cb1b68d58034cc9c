package probe

import "slices"

// Names lists every probe by its name, in the order in which they are read.
func Names() []string {
	return []string{CPUName, ProcessName, CountersName, StacksName, NetfilterName, MemoryName}
}

// The names of the probes.
const (
	CPUName      = "cpu"
	ProcessName  = "process"
	CountersName = "counters"
	StacksName   = "stacks"
	// The testbed reads these, of the nodes under both ends (node.go).
	NetfilterName = "netfilter"
	MemoryName    = "memory"
)

// List is every probe that an end reads but those named, ready for one window. Those that hold
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
