package stat

import (
	"cmp"

	"github.com/cnibench/cnibench/internal/result"
)

// cost is something that the probes measure and that traffic uses, per second,
// both ends together.
type cost struct {
	name, label, unit string
	rate              func(record, meter) (float64, bool)
	// sliced reports that it is read in the slices themselves, where a sample has any:
	// then it is of their window and not of the probes'.
	sliced bool
}

// workOf is the work of the window that the cost of a record was measured in.
func (c cost) workOf(s record, w work) (float64, bool) {
	if _, _, ok := slicedCPU(s); ok && c.sliced {
		return w.rate(inSlices(s))
	}
	return w.rate(besideProbes(s))
}

func costs() []cost {
	machine := func(names ...string) func(record, meter) (float64, bool) {
		return func(s record, m meter) (float64, bool) { return m.machines(s, names) }
	}
	return []cost{
		{"cpu_seconds", "CPU", "s", machine(busyModes()...), false},
		{"own_cpu_seconds", "own CPU", "s", ownCPU, true},
		{"instructions", "instructions", "1", machine("instructions_user", "instructions_kernel"), false},
		{"instructions_kernel", "kernel instructions", "1", machine("instructions_kernel"), false},
		{"cycles", "cycles", "1", machine("cycles_user", "cycles_kernel"), false},
	}
}

// busyModes are the modes of CPU time that traffic is charged with. Most of what
// a network costs is softirq. Guest time is inside user; nice time is not the
// ends', which are not nice.
func busyModes() []string {
	return []string{"cpu_user_seconds", "cpu_system_seconds", "cpu_irq_seconds", "cpu_softirq_seconds"}
}

func ends() []string { return []string{result.ClientNode, result.ServerNode} }

// meter reads costs off samples.
type meter struct {
	idle idleRates
	// oneMachine reports that both ends are on one machine, for records that do not say so.
	oneMachine bool
}

// idleRates is what each machine's probes count per second while nothing is
// measured. A record without a machine has one for each end.
type idleRates map[string]map[string]float64

func machineOf(s record, end string) string { return cmp.Or(s.machine(end), end) }

// machines is the sum of some probes that are of a whole machine, less what it
// does while idle. On one machine both ends read the same, so that their mean is
// taken and not their sum; one of them is then enough. Of two machines both are
// needed: an end that was not measured makes the sum unknown, not smaller.
func (m meter) machines(s record, names []string) (float64, bool) {
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
func ownCPU(s record, m meter) (float64, bool) {
	if cpu, seconds, ok := slicedCPU(s); ok {
		return cpu / seconds, true
	}
	client, okClient := perSecond(s, result.ClientNode, "process_cpu_seconds")
	server, okServer := perSecond(s, result.ServerNode, "process_cpu_seconds")
	threads, ok := m.machines(s, []string{"ksoftirqd_cpu_seconds"})
	return client + server + max(0, threads), okClient && okServer && ok
}

// slicedCPU is the CPU time of both ends in the slices of a sample, from clocks of
// nanoseconds, and how long they were.
func slicedCPU(s record) (cpu, seconds float64, ok bool) {
	client, okClient := measured(s, "client_cpu_seconds")
	server, okServer := measured(s, "server_cpu_seconds")
	seconds, okSeconds := s.seconds()
	return client + server, seconds, okClient && okServer && okSeconds && seconds > 0
}

// end sums probes of one end, less the machine's idle rates.
func (m meter) end(s record, end string, names []string) (float64, bool) {
	idle := m.idle[machineOf(s, end)]
	var sum float64
	for _, name := range names {
		v, ok := perSecond(s, end, name)
		if !ok {
			return 0, false
		}
		sum += v - idle[name]
	}
	return sum, true
}

// perSecond is a probe's value over the probes' own window, or over the
// measured one where they do not report theirs.
func perSecond(s record, end, name string) (float64, bool) {
	v, ok := s.probe(end, name)
	seconds, own := s.probe(end, "window_seconds")
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
func newIdleRates(cells []*cellData) idleRates {
	seconds, sums := idleRates{}, idleRates{}
	for _, d := range cells {
		for _, s := range d.ok {
			for _, end := range ends() {
				reading := end + result.IdleSuffix
				window, ok := s.probe(reading, "window_seconds")
				if !ok || window <= 0 {
					continue
				}
				id := machineOf(s, end)
				if sums[id] == nil {
					sums[id], seconds[id] = map[string]float64{}, map[string]float64{}
				}
				for name, column := range d.probes[reading] {
					if v, ok := column.at(s.at); ok {
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

// busyCores is how many cores a machine uses while nothing is measured.
func (r idleRates) busyCores(machine string) (float64, bool) {
	var sum float64
	for _, mode := range append(busyModes(), "cpu_nice_seconds") {
		v, ok := r[machine][mode]
		if !ok {
			return 0, false
		}
		sum += v
	}
	return sum, true
}

// Cores is how many cores a rate would take, of both ends together.
type Cores struct {
	BitsPerSecond float64  `json:"bits_per_second"`
	Cores         Estimate `json:"cores"`
}

// coresAt extrapolates the CPU time per byte, which is the cycles per byte over
// the cycles of a busy second, to the rates of links. It takes the cost to grow
// with the rate, the messages and offloads to stay the same.
func coresAt(perByte Estimate) []Cores {
	var out []Cores
	for _, rate := range []float64{10e9, 25e9, 50e9, 100e9} {
		e := perByte
		e.Value *= rate / 8
		if low, high, ok := perByte.Interval(); ok {
			e.bound(low*rate/8, high*rate/8, perByte.Confidence)
		}
		out = append(out, Cores{rate, e})
	}
	return out
}
