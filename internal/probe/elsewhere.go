//go:build !linux

package probe

// elsewhere stands for a probe on a system that is not Linux: it reads nothing.
type elsewhere struct{ name string }

// Name is the probe's name.
func (e elsewhere) Name() string { return e.name }

// Start returns why nothing is read.
func (elsewhere) Start() error { return absentf("unsupported: needs Linux") }

// Stop returns the same.
func (e elsewhere) Stop() (map[string]float64, error) { return nil, e.Start() }

// NewCPU stands for the probe cpu.
func NewCPU(Roots) Probe { return elsewhere{CPUName} }

// NewProcess stands for the probe process.
func NewProcess(Roots) Probe { return elsewhere{ProcessName} }

// OpenCounters stands for the probe counters.
func OpenCounters(Roots) Probe { return elsewhere{CountersName} }

// OpenStacks stands for the probe stacks.
func OpenStacks(Roots) Probe { return elsewhere{StacksName} }
