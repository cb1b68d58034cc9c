package dataset

import (
	"cmp"

	"github.com/cnibench/cnibench/internal/result"
)

// cost is something that the probes measure and that traffic uses, per second,
// both ends together.
type cost struct {
	name, label, unit string
	rate              func(Record, Meter) (float64, bool)
	// sliced reports that it is read in the slices themselves, where a sample has any:
	// then it is about their window and not of the probes'.
	sliced bool
}

// workOf is the work of the window that the cost of a record was measured in.
func (c cost) workOf(s Record, w Work) (float64, bool) {
	if _, _, ok := slicedCPU(s); ok && c.sliced {
		return w.rate(inSlices(s))
	}
	return w.rate(besideProbes(s))
}

func costs() []cost {
	machine := func(names ...string) func(Record, Meter) (float64, bool) {
		return func(s Record, m Meter) (float64, bool) { return m.Machines(s, names) }
	}
	return []cost{
		{"cpu_seconds", "CPU", "s", machine(BusyModes()...), false},
		{"own_cpu_seconds", "own CPU", "s", ownCPU, true},
		{"instructions", "instructions", "1", machine("instructions_user", "instructions_kernel"), false},
		{"instructions_kernel", "kernel instructions", "1", machine("instructions_kernel"), false},
		{"cycles", "cycles", "1", machine("cycles_user", "cycles_kernel"), false},
	}
}

// BusyModes are the modes of CPU time that traffic is charged with. Most of what
// a network costs is softirq. Guest time is inside user; nice time is not the
// ends', which are not nice.
func BusyModes() []string {
	return []string{"cpu_user_seconds", "cpu_system_seconds", "cpu_irq_seconds", "cpu_softirq_seconds"}
}

// Ends are the names of both ends of a sample.
func Ends() []string { return []string{result.ClientNode, result.ServerNode} }

// Meter reads costs off samples.
type Meter struct {
	idle IdleRates
	// oneMachine reports that both ends are on one machine, for records that do not say so.
	oneMachine bool
}

// IdleRates is what each machine's probes count per second while nothing is
// measured. A record without a machine has one for each end.
type IdleRates map[string]map[string]float64

// MachineOf is the machine of an end, or the end itself where that is not known.
func MachineOf(s Record, end string) string { return cmp.Or(s.machine(end), end) }

// Machines is the sum of some probes that are of a whole machine, less what it
// does while idle. On one machine both ends read the same, so that their mean is
// taken and not their sum; one of them is then enough. Of two machines both are
// needed: an end that was not measured makes the sum unknown, not smaller.
func (m Meter) Machines(s Record, names []string) (float64, bool) {
	client, okClient := m.end(s, result.ClientNode, names)
	server, okServer := m.end(s, result.ServerNode, names)
	one := m.oneMachine
	if a, b := s.machine(result.ClientNode), s.machine(result.ServerNode); a != "" && b != "" {
		one = a == b
	}
	switch {
	case okClient && okServer && one:
		return (client + server) / 2, true
	case okClient && one:
		return client, true
	case okServer && one:
		return server, true
	}
	return client + server, okClient && okServer
}

// ownCPU is the CPU time of both ends' own processes, of those that carry their
// packets in user space, and of the threads that
// carry packets when softirqs are many. It counts nobody else's work, so that
// nothing but those threads' idling is subtracted.
func ownCPU(s Record, m Meter) (float64, bool) {
	if cpu, seconds, ok := slicedCPU(s); ok {
		return cpu / seconds, true
	}
	client, okClient := PerSecond(s, result.ClientNode, "process_cpu_seconds")
	server, okServer := PerSecond(s, result.ServerNode, "process_cpu_seconds")
	threads, ok := m.Machines(s, []string{"ksoftirqd_cpu_seconds"})
	return client + server + max(0, threads), okClient && okServer && ok
}

// slicedCPU is the CPU time of both ends in the slices of a sample, from clocks of
// nanoseconds, and how long they were.
func slicedCPU(s Record) (cpu, seconds float64, ok bool) {
	client, okClient := Measured(s, "client_cpu_seconds")
	server, okServer := Measured(s, "server_cpu_seconds")
	seconds, okSeconds := s.seconds()
	return client + server, seconds, okClient && okServer && okSeconds && seconds > 0
}

// end sums probes of one end, less the machine's idle rates.
func (m Meter) end(s Record, end string, names []string) (float64, bool) {
	idle := m.idle[MachineOf(s, end)]
	var sum float64
	for _, name := range names {
		v, ok := PerSecond(s, end, name)
		if !ok {
			return 0, false
		}
		sum += v - idle[name]
	}
	return sum, true
}

// PerSecond is a probe's value over the probes' own window, or over the
// measured one where they do not report theirs.
func PerSecond(s Record, end, name string) (float64, bool) {
	v, ok := s.Probe(end, name)
	seconds, own := s.Probe(end, "window_seconds")
	if !own {
		seconds, _ = s.seconds()
		if s.row().explained {
			return 0, false // the sample's own window is another
		}
	}
	if !ok || seconds <= 0 {
		return 0, false
	}
	return v / seconds, true
}

// newIdleRates takes the idle readings of all blocks together: one is short, and
// CPU time is counted in hundredths of a second. cells is sorted, so that the
// sums do not depend on the order of the records.
func newIdleRates(cells []*CellData) IdleRates {
	seconds, sums := IdleRates{}, IdleRates{}
	for _, d := range cells {
		for _, s := range d.OK {
			for _, end := range Ends() {
				reading := end + result.IdleSuffix
				window, ok := s.Probe(reading, "window_seconds")
				if !ok || window <= 0 {
					continue
				}
				id := MachineOf(s, end)
				if sums[id] == nil {
					sums[id], seconds[id] = map[string]float64{}, map[string]float64{}
				}
				for name, column := range d.Probes[reading] {
					if v, ok := column.At(s.At); ok {
						sums[id][name] += v
						seconds[id][name] += window
					}
				}
			}
		}
	}
	for id, of := range sums {
		for name := range of {
			of[name] /= seconds[id][name]
		}
	}
	return sums
}

// BusyCores is how many cores a machine uses while nothing is measured.
func (r IdleRates) BusyCores(machine string) (float64, bool) {
	var sum float64
	for _, mode := range append(BusyModes(), "cpu_nice_seconds") {
		v, ok := r[machine][mode]
		if !ok {
			return 0, false
		}
		sum += v
	}
	return sum, true
}
