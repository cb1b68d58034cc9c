package probe

import "slices"

// Kind is a probe in words.
type Kind struct{ Name, Summary string }

// Kinds lists every probe, in the order in which they are read.
func Kinds() []Kind {
	return []Kind{
		{CPUName, "CPU time of each end's machine by mode, of all CPUs and of each, at the window's edges"},
		{ProcessName, "CPU time and memory of each end's own process, and of what carries its packets in user space"},
		{CountersName, "instructions and cycles of the whole machine, user space and kernel apart"},
		{StacksName, "sampled kernel stacks, by which CPU time is told to components of the datapath"},
		{NetfilterName, "rules and chains that the packets of a sample met on the lab's nodes"},
		{MemoryName, "memory that the lab's nodes hold for their network"},
	}
}

// Names lists every probe by its name, in that order.
func Names() []string {
	var names []string
	for _, k := range Kinds() {
		names = append(names, k.Name)
	}
	return names
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
