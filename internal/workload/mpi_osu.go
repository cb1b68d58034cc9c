package workload

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// osuTests are the tests of the OSU micro-benchmarks, each with the title of its output
// and the heading of the values that are read.
func osuTests() []osuTest {
	return []osuTest{
		{"latency", "OSU MPI Latency Test", "Latency (us)"},
		{"bw", "OSU MPI Bandwidth Test", "Bandwidth (MB/s)"},
		{"alltoall", "OSU MPI All-to-All Personalized Exchange Latency Test", "Avg Latency(us)"},
		{"allgather", "OSU MPI Allgather Latency Test", "Avg Latency(us)"},
		{"allreduce", "OSU MPI Allreduce Latency Test", "Avg Latency(us)"},
	}
}

type osuTest struct{ name, title, heading string }

// osuTestOf is the one of a cell's test.
func osuTestOf(test string) (osuTest, error) {
	name := withoutMPI(test)
	for i, t := range osuTests() {
		if t.name == name || test == "" && i == 0 {
			return t, nil
		}
	}
	return osuTest{}, fmt.Errorf("mpi_osu has no test %q", test)
}

// collective reports whether all ranks take part.
func (t osuTest) collective() bool { return strings.HasPrefix(t.name, "all") }

const (
	// osuIterations and osuWarmup are how many operations are timed, and how many come
	// before them. osu_bw has osuWindow messages in each.
	osuIterations = 1000
	osuWarmup     = 100
	osuWindow     = 64
)

// MPIOSU is the OSU micro-benchmarks 5.6 to 7, as their users install them: no package of
// Debian has them.
func MPIOSU() MPI {
	spec := mpiSuite("mpi_osu", "OSU micro-benchmarks over a real MPI, where they are installed: latency, bandwidth, collectives")
	for _, mpi := range mpiNames() {
		for _, t := range osuTests() {
			test := withMPI(t.name, mpi)
			spec.Tests = append(spec.Tests, test)
			if !t.collective() {
				spec.ExactRanksByTest[test] = 2
				spec.PrimaryByTest[test] = map[string]string{"latency": "message_time_seconds", "bw": "throughput_bits_per_second"}[t.name]
			}
			spec.Needs = append(spec.Needs, Tool{Name: osuProgram(test), Test: test, Cure: builtForMPI("the OSU micro-benchmarks", mpiOf(test))})
		}
	}
	spec.Needs = slices.Concat(spec.Needs, openMPITools(), mpichTools())
	return MPI{
		spec: mpiSpec(spec),
		rank: func(p Params) ([]string, string, error) {
			t, err := osuTestOf(p.Cell.Test)
			if err != nil {
				return nil, "", err
			}
			if p.Cell.MessageBytes < 1 {
				return nil, "", errors.New("mpi_osu needs a message size")
			}
			size := strconv.Itoa(p.Cell.MessageBytes)
			argv := []string{osuProgram(p.Cell.Test), "-m", size + ":" + size, "-i", strconv.Itoa(osuIterations), "-x", strconv.Itoa(osuWarmup)}
			if t.collective() {
				argv = append(argv, "-f")
			}
			return argv, "# OSU MPI ", nil
		},
		usual:   suiteUsual,
		longest: suiteLongest,
		parse:   parseOSU,
		least:   osuLeast,
	}
}

// mpiSuite is a suite of small tests of an MPI that measures collectives, but for its tests
// and what they need.
func mpiSuite(name, summary string) Spec {
	return Spec{
		Name:                name,
		Summary:             summary,
		Primary:             "collective_time_mean_seconds",
		PrimaryByTest:       map[string]string{},
		ExactRanksByTest:    map[string]int{},
		Factors:             []string{"message_bytes"},
		DefaultMessageBytes: 1024,
	}
}

// suiteUsual and suiteLongest are the times of one test of a suite (MPI.usual, MPI.longest).
func suiteUsual(Params) time.Duration   { return time.Second }
func suiteLongest(Params) time.Duration { return 2 * time.Minute }

// osuProgram is the program of a test. Those that are linked with MPICH have its name, as
// mpiexec.mpich has.
func osuProgram(test string) string {
	name := "osu_" + withoutMPI(test)
	if isMPICH(test) {
		name += "." + mpichName
	}
	return name
}

// withMPI is the name of a test under an MPI, and withoutMPI that of the test itself: those
// of Open MPI have no ending.
func withMPI(test, mpi string) string {
	if mpi == openMPIName {
		return test
	}
	return test + "-" + mpi
}

func withoutMPI(test string) string {
	return strings.TrimSuffix(strings.TrimSuffix(test, "-"+mpichName), "-"+ucxName)
}

// builtForMPI says how to get programs that no package has.
func builtForMPI(what, mpi string) string {
	names := ""
	if mpi == mpichName {
		names = " with ." + mpichName + " behind their names"
	}
	return fmt.Sprintf("no package has %s: build them with mpicc.%s and put the programs into PATH%s (docs/hpc.md)", what, mpi, names)
}

// osuRow matches a line of values: a size, then numbers.
var osuRow = regexp.MustCompile(`^(\d{1,9})((?: +[0-9.]+)+)$`)

// parseOSU reads the one line of the size that was asked for. Version 7 has more lines that
// begin with #. Times are microseconds, and MB are 10^6 bytes (osu_bw.c).
func parseOSU(p Params, launcher Output) (Measurement, error) {
	t, err := osuTestOf(p.Cell.Test)
	if err != nil {
		return Measurement{}, err
	}
	values, err := osuValues(t, p.Cell.MessageBytes, launcher)
	if err != nil {
		return Measurement{}, err
	}
	m := metrics{}
	switch {
	case t.name == "latency" && len(values) == 1:
		one := values[0] / 1e6
		err = m.put("message_time_seconds", one)
		return Measurement{MeasuredSeconds: 2 * osuIterations * one, Metrics: m}, err
	case t.name == "bw" && len(values) == 1:
		err = m.put("throughput_bits_per_second", values[0]*8e6)
		bits := 8 * float64(p.Cell.MessageBytes) * osuIterations * osuWindow
		return Measurement{MeasuredSeconds: bits / (values[0] * 8e6), Metrics: m}, err
	case t.collective() && len(values) == 4:
		mean, least, most, count := values[0]/1e6, values[1]/1e6, values[2]/1e6, values[3]
		if count != osuIterations {
			return Measurement{}, fmt.Errorf("%g operations where %d were asked for", count, osuIterations)
		}
		return collective(m, mean, least, most, count)
	}
	return Measurement{}, fmt.Errorf("%d values in the line of %d bytes", len(values), p.Cell.MessageBytes)
}

// osuValues are the numbers of the line of a size, below the title and the heading of a test.
func osuValues(t osuTest, size int, launcher Output) ([]float64, error) {
	titled, headed := false, false
	var rows [][]string
	for line := range strings.Lines(launcher.Stdout) {
		line = strings.TrimSpace(line)
		switch found := osuRow.FindStringSubmatch(line); {
		case strings.HasPrefix(line, "# "+t.title+" v"):
			titled = true
		case strings.HasPrefix(line, "# Size"):
			// Version 7.4 has the heading of collectives for latency too.
			headed = strings.Contains(line, t.heading) || t.name == "latency" && strings.Contains(line, "Latency(us)")
		case found != nil:
			rows = append(rows, found)
		}
	}
	switch {
	case !titled:
		return nil, fmt.Errorf("it has no line %q", "# "+t.title)
	case !headed:
		return nil, fmt.Errorf("it has no column %q", t.heading)
	case len(rows) != 1:
		return nil, fmt.Errorf("it has %d lines of message sizes where 1 was asked for", len(rows))
	case rows[0][1] != strconv.Itoa(size):
		return nil, fmt.Errorf("messages of %s bytes where %d were asked for", rows[0][1], size)
	}
	var values []float64
	for _, field := range strings.Fields(rows[0][2]) {
		v, err := number(field)
		if err != nil {
			return nil, err
		}
		if !(v > 0) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("%s is no measured value", clip(field))
		}
		values = append(values, v)
	}
	return values, nil
}

// collective is a measurement of an operation of all ranks: the mean time of each rank, over
// the ranks, in seconds.
func collective(m metrics, mean, least, most, count float64) (Measurement, error) {
	if !(least > 0) || least > mean*1.01 || mean > most*1.01 {
		return Measurement{}, fmt.Errorf("the times of ranks are %g to %g s with a mean of %g s", least, most, mean)
	}
	err := errors.Join(m.put("collective_time_mean_seconds", mean), m.put("collective_time_min_seconds", least),
		m.put("collective_time_max_seconds", most), m.put("operations", count))
	return Measurement{MeasuredSeconds: count * mean, Metrics: m}, err
}

// osuLeast is what the operations that were timed and those before them send from each
// place at least.
func osuLeast(p Params, hosts []MPIHost, _ Output) ([]float64, error) {
	t, err := osuTestOf(p.Cell.Test)
	if err != nil {
		return nil, err
	}
	least := leastSent(t.name, p.Cell.MessageBytes, osuIterations+osuWarmup, hosts)
	if t.name == "bw" { // rank 1 answers each window with four bytes
		least[0] *= osuWindow
		if last := len(least) - 1; last > 0 {
			least[last] = 4 * (osuIterations + osuWarmup)
		}
	}
	return least, nil
}

// leastSent is what operations send from each place at least, whatever algorithm an MPI
// chooses. In an alltoall each rank has a message for each other one; in other operations the
// message of each rank leaves its place once.
func leastSent(operation string, messageBytes, operations int, hosts []MPIHost) []float64 {
	ranks := 0
	for _, h := range hosts {
		ranks += len(h.Ranks)
	}
	least := make([]float64, len(hosts))
	if len(hosts) < 2 {
		return least
	}
	for i, h := range hosts {
		messages := len(h.Ranks)
		switch strings.ToLower(operation) {
		case "alltoall":
			messages *= ranks - len(h.Ranks)
		case "allreduce": // ranks of a place may add theirs up first
			messages = 1
		}
		least[i] = float64(messages) * float64(messageBytes) * float64(operations)
	}
	return least
}
