package workload

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const (
	// imbPingPong is the test with two ranks, and imbMostRepetitions what IMB does of a test
	// at most.
	imbPingPong        = "PingPong"
	imbMostRepetitions = 1000
)

// imbTests are tests of IMB-MPI1, by its names.
func imbTests() []string { return []string{imbPingPong, "Alltoall", "Allgather", "Allreduce"} }

// MPIIMB is IMB-MPI1 of the Intel MPI Benchmarks 2018 and later, as their users install them:
// no package of Debian has them.
func MPIIMB() MPI {
	spec := mpiSuite("mpi_imb", "Intel MPI Benchmarks (IMB-MPI1) over a real MPI, where they are installed: ping-pong, collectives")
	for _, mpi := range mpiNames() {
		for _, name := range imbTests() {
			test := withMPI(name, mpi)
			spec.Tests = append(spec.Tests, test)
			if name == imbPingPong {
				spec.ExactRanksByTest[test], spec.PrimaryByTest[test] = 2, "message_time_seconds"
			}
		}
		if mpi != mpiOf(mpi) {
			continue // the same program
		}
		spec.Needs = append(spec.Needs, Tool{
			Name: imbProgram(mpi), MPI: mpi, Cure: builtForMPI("the Intel MPI Benchmarks", mpi), Calls: []string{"sh", "mktemp"}, // imbScript
		})
	}
	spec.Needs = slices.Concat(spec.Needs, openMPITools(), mpichTools())
	return MPI{
		spec: mpiSpec(spec),
		rank: func(p Params) ([]string, string, error) {
			if p.Cell.MessageBytes < 1 {
				return nil, "", errors.New("mpi_imb needs a message size")
			}
			return []string{"sh", "-c", imbScript(p)}, "Intel(R) MPI Benchmarks", nil
		},
		usual:   suiteUsual,
		longest: suiteLongest,
		parse:   parseIMB,
		least: func(p Params, hosts []MPIHost, launcher Output) ([]float64, error) {
			row, err := imbRowOf(p, launcher)
			if err != nil {
				return nil, err
			}
			return leastSent(imbTestOf(p), p.Cell.MessageBytes, int(row[0]), hosts), nil
		},
	}
}

// imbTestOf is the test of a cell, by IMB's name.
func imbTestOf(p Params) string {
	if p.Cell.Test == "" {
		return imbPingPong
	}
	return withoutMPI(p.Cell.Test)
}

// imbProgram is IMB-MPI1. The one that is linked with MPICH has its name, as mpiexec.mpich
// has.
func imbProgram(test string) string {
	if isMPICH(test) {
		return "IMB-MPI1." + mpichName
	}
	return "IMB-MPI1"
}

// imbScript is what each rank runs: every version takes message sizes that are no powers of
// two from a file alone.
func imbScript(p Params) string {
	return fmt.Sprintf(`dir=$(mktemp -d) && cd "$dir" || exit 1
echo %d >lengths
exec %s -npmin %d -iter %d -msglen lengths %s
`, p.Cell.MessageBytes, imbProgram(p.Cell.Test), p.Cell.Ranks, imbMostRepetitions, imbTestOf(p))
}

// imbRow matches a line of values: bytes, repetitions, then numbers.
var imbRow = regexp.MustCompile(`^(\d{1,9}) +(\d{1,9})((?: +[0-9.]+)+)$`)

// imbRowOf are the repetitions and the values of the line of the size that was asked for,
// below the headings of its test.
func imbRowOf(p Params, launcher Output) ([]float64, error) {
	test, heading := imbTestOf(p), "#bytes #repetitions t_min[usec] t_max[usec] t_avg[usec]"
	if test == imbPingPong {
		heading = "#bytes #repetitions t[usec] Mbytes/sec"
	}
	begun, headed, ranks := false, false, false
	var rows [][]string
	for line := range strings.Lines(launcher.Stdout) {
		line = strings.Join(strings.Fields(line), " ")
		switch found := imbRow.FindStringSubmatch(line); {
		case line == "# Benchmarking "+test:
			begun = true
		case strings.HasPrefix(line, "# #processes = "):
			ranks = line == "# #processes = "+strconv.Itoa(p.Cell.Ranks)
		case begun && line == heading:
			headed = true
		case headed && found != nil:
			rows = append(rows, found)
		}
	}
	switch {
	case !begun:
		return nil, fmt.Errorf("it has no line %q", "# Benchmarking "+test)
	case !ranks:
		return nil, fmt.Errorf("it did not run on %d processes: %s may be linked with another MPI", p.Cell.Ranks, imbProgram(p.Cell.Test))
	case !headed:
		return nil, fmt.Errorf("it has no headings %q", heading)
	case len(rows) != 1:
		return nil, fmt.Errorf("it has %d lines of message sizes where 1 was asked for", len(rows))
	case rows[0][1] != strconv.Itoa(p.Cell.MessageBytes):
		return nil, fmt.Errorf("messages of %s bytes where %d were asked for", rows[0][1], p.Cell.MessageBytes)
	}
	var values []float64
	for _, field := range append([]string{rows[0][2]}, strings.Fields(rows[0][3])...) {
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

// parseIMB reads the one line of the size that was asked for. Times are microseconds.
// Versions before 2018 have Mbytes of 2^20 bytes, so that the throughput is taken from the
// time.
func parseIMB(p Params, launcher Output) (Measurement, error) {
	row, err := imbRowOf(p, launcher)
	if err != nil {
		return Measurement{}, err
	}
	count, values := row[0], row[1:]
	m := metrics{}
	if imbTestOf(p) != imbPingPong {
		if len(values) != 3 {
			return Measurement{}, fmt.Errorf("%d values in the line of %d bytes", len(values), p.Cell.MessageBytes)
		}
		return collective(m, values[2]/1e6, values[0]/1e6, values[1]/1e6, count)
	}
	if len(values) != 2 {
		return Measurement{}, fmt.Errorf("%d values in the line of %d bytes", len(values), p.Cell.MessageBytes)
	}
	one := values[0] / 1e6
	bytesPerSecond := float64(p.Cell.MessageBytes) / one
	const least, most = 0.94, 1.01 // Mbytes of 2^20 bytes, and rounding
	if share := values[1] * 1e6 / bytesPerSecond; (share < least || share > most) && values[1] > 1 {
		return Measurement{}, fmt.Errorf("%g Mbytes/sec are not %d bytes in %g µs", values[1], p.Cell.MessageBytes, values[0])
	}
	err = errors.Join(m.put("message_time_seconds", one), m.put("throughput_bits_per_second", 8*bytesPerSecond))
	return Measurement{MeasuredSeconds: 2 * count * one, Metrics: m}, err
}
