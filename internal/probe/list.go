package probe

import "slices"

// Kind is one probe: what people read of it, and how an end opens it.
type Kind struct {
	// Name is the probe's name in campaigns; Summary is one line for `cnibench list
	// probes`, and Short a few words for `cnibench doctor`.
	Name, Summary, Short string
	// OfMachine reports that it counts the whole machine: where several pairs of ends are
	// on one, its values belong to all of them.
	OfMachine bool
	// Exclusive reports that it takes some of the few counters of a CPU, so that one end
	// alone reads it where both are on one machine.
	Exclusive bool
	// Open makes the probe for one window; nil: the testbed reads it on the nodes under
	// both ends. A probe that holds something open has a Close (io.Closer).
	Open func(Roots) Probe
}

// Kinds lists every probe, in the order in which they are read. An added probe is a file
// and an entry.
func Kinds() []Kind {
	return []Kind{
		{Name: CPUName, Summary: "CPU time of each end's machine by mode, of all CPUs and of each, at the window's edges",
			Short: "CPU time of the machine by mode", OfMachine: true, Open: func(r Roots) Probe { return NewCPU(r) }},
		{Name: ProcessName, Summary: "CPU time and memory of each end's own process, and of what carries its packets in user space",
			Short: "CPU time of the two ends alone", Open: func(r Roots) Probe { return NewProcess(r) }},
		{Name: CountersName, Summary: "instructions and cycles of the whole machine, user space and kernel apart",
			Short: "the CPU's instructions and cycles", OfMachine: true, Exclusive: true, Open: func(r Roots) Probe { return OpenCounters(r) }},
		{Name: StacksName, Summary: "sampled kernel stacks, by which CPU time is charged to components of the datapath",
			Short: "where in the kernel the time goes", OfMachine: true, Exclusive: true, Open: func(r Roots) Probe { return OpenStacks(r) }},
		{Name: NetfilterName, Summary: "rules and chains that the packets of a sample met on the lab's nodes", Short: "rules per packet"},
		{Name: MemoryName, Summary: "memory that the lab's nodes hold for their network", Short: "memory of the network"},
	}
}

// Names lists the probes for which all of the conditions hold, in the order of Kinds.
func Names(conditions ...func(Kind) bool) []string {
	var names []string
	for _, k := range Kinds() {
		if !slices.ContainsFunc(conditions, func(holds func(Kind) bool) bool { return !holds(k) }) {
			names = append(names, k.Name)
		}
	}
	return names
}

// IsOfMachine reports whether a probe counts the whole machine.
func IsOfMachine(k Kind) bool { return k.OfMachine }

// IsExclusive reports whether one end alone may read a probe on one machine.
func IsExclusive(k Kind) bool { return k.Exclusive }

// IsOfNodes reports whether the testbed reads a probe, on the nodes under both ends.
func IsOfNodes(k Kind) bool { return k.Open == nil }

// The names of the probes that other packages ask for.
const (
	CPUName       = "cpu"
	ProcessName   = "process"
	CountersName  = "counters"
	StacksName    = "stacks"
	NetfilterName = "netfilter"
	MemoryName    = "memory"
)

// List is every probe that an end reads but those named, ready for one window.
func List(roots Roots, without []string) []Probe {
	var list []Probe
	for _, k := range Kinds() {
		if k.Open != nil && !slices.Contains(without, k.Name) {
			list = append(list, k.Open(roots))
		}
	}
	return list
}
