package workload

import (
	"math"
	"net/netip"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/labtest/fuzzed"
	"github.com/cnibench/cnibench/internal/result"
)

func osuCell(test string, bytes, ranks int) result.Cell {
	return result.Cell{Workload: "mpi_osu", Test: test, MessageBytes: bytes, Ranks: ranks}
}

func imbCell(test string, bytes, ranks int) result.Cell {
	return result.Cell{Workload: "mpi_imb", Test: test, MessageBytes: bytes, Ranks: ranks}
}

// Output in the layouts that are published, with the line of one size. The values of
// osuAllgather74 and osuBandwidth74 are from tests of NVIDIA's cloudai, those of imbAlltoall
// from a tutorial of Oracle Cloud Infrastructure. osuLatency56, osuLatency75 and
// imbPingPong2021 have the layout of their version (StackHPC's hpc-tests, the user guide of
// OLCF, the same tutorial) with values of this test. None was printed on this machine: no
// package has these programs.
const (
	osuAllgather74 = `# OSU MPI Allgather Latency Test v7.4
# Datatype: MPI_CHAR.
# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations
1048576               104.30            104.26            104.33        1000
`
	osuBandwidth74 = `# OSU MPI Bandwidth Test v7.4
# Datatype: MPI_CHAR.
# Size      Bandwidth (MB/s)
4194304             27161.33
`
	osuLatency56 = `# OSU MPI Latency Test v5.6.2
# Size          Latency (us)
1024                    2.74
`
	osuLatency75 = `# OSU MPI Latency Test v7.5
# Datatype: MPI_CHAR.
# Size       Avg Latency(us)
1024                    2.74
`
	imbAlltoall = `#----------------------------------------------------------------
#    Intel(R) MPI Benchmarks 2021.7, MPI-1 part
#----------------------------------------------------------------
# List of Benchmarks to run:

# Alltoall

#----------------------------------------------------------------
# Benchmarking Alltoall 
# #processes = 36 
#----------------------------------------------------------------
       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
     33554432            1    368774.69    377145.91    373427.99


# All processes entering MPI_Finalize
`
	imbPingPong2021 = `#    Intel(R) MPI Benchmarks 2021.7, MPI-1 part
#---------------------------------------------------
# Benchmarking PingPong 
# #processes = 2 
#---------------------------------------------------
       #bytes #repetitions      t[usec]   Mbytes/sec
    268435456            1     21943.60     12233.00
`
)

func TestOSU(t *testing.T) {
	for name, k := range map[string]struct {
		cell result.Cell
		text string
		want map[string]float64
	}{
		"allgather 7.4": {osuCell("allgather", 1048576, 4), osuAllgather74, map[string]float64{
			"collective_time_mean_seconds": 104.30e-6, "collective_time_min_seconds": 104.26e-6, "collective_time_max_seconds": 104.33e-6, "operations": 1000}},
		"bw 7.4":      {osuCell("bw-mpich", 4194304, 2), osuBandwidth74, map[string]float64{"throughput_bits_per_second": 27161.33 * 8e6}},
		"latency 5.6": {osuCell("latency", 1024, 2), osuLatency56, map[string]float64{"message_time_seconds": 2.74e-6}},
		"latency 7.5": {osuCell("latency", 1024, 2), osuLatency75, map[string]float64{"message_time_seconds": 2.74e-6}},
	} {
		m, err := parseOSU(Params{Cell: k.cell}, Output{Stdout: k.text})
		checkValues(t, name, m, err, k.want)
	}
	p := Params{Cell: osuCell("allgather", 1048576, 4)}
	for _, k := range []struct{ old, new, want string }{
		{"Allgather Latency", "Alltoall Latency", `it has no line "# OSU MPI Allgather Latency Test"`},
		{"Avg Latency(us)", "Avg Latency(ms)", `it has no column "Avg Latency(us)"`},
		{"1048576 ", "1048575 ", "messages of 1048575 bytes where 1048576 were asked for"},
		{"1048576 ", "1048576               104.30            104.26            104.33        1000\n1048576 ", "2 lines of message sizes"},
		{"104.30", "0.00", "0.00 is no measured value"},
		{"104.30", "10.4.30", "is no number"},
		{"104.30", "203.30", "the times of ranks are"},
		{"1000\n", "10\n", "10 operations where 1000 were asked for"},
		{"        1000\n", "\n", "3 values in the line"},
	} {
		if _, err := parseOSU(p, Output{Stdout: strings.Replace(osuAllgather74, k.old, k.new, 1)}); err == nil || !strings.Contains(err.Error(), k.want) {
			t.Errorf("%q: %v, want %q", k.new, err, k.want)
		}
	}
}

func TestIMB(t *testing.T) {
	m, err := parseIMB(Params{Cell: imbCell("Alltoall", 33554432, 36)}, Output{Stdout: imbAlltoall})
	checkValues(t, "Alltoall", m, err, map[string]float64{
		"collective_time_mean_seconds": 0.37342799, "collective_time_min_seconds": 0.36877469, "collective_time_max_seconds": 0.37714591, "operations": 1})
	p := Params{Cell: imbCell("PingPong-mpich", 268435456, 2)}
	m, err = parseIMB(p, Output{Stdout: imbPingPong2021})
	checkValues(t, "PingPong", m, err, map[string]float64{"message_time_seconds": 21943.60e-6, "throughput_bits_per_second": 8 * 268435456 / 21943.60e-6})
	for _, k := range []struct{ old, new, want string }{
		{"PingPong", "PingPing", `it has no line "# Benchmarking PingPong"`},
		{"processes = 2", "processes = 1", "IMB-MPI1.mpich may be linked with another MPI"},
		{"t[usec]", "t[msec]", "it has no headings"},
		{"268435456 ", "268435455 ", "messages of 268435455 bytes"},
		{"12233.00", "11000.00", "11000 Mbytes/sec are not 268435456 bytes in 21943.6 µs"},
		{"21943.60", "0.00", "0.00 is no measured value"},
		{"     12233.00", "", "1 values in the line"},
	} {
		if _, err := parseIMB(p, Output{Stdout: strings.Replace(imbPingPong2021, k.old, k.new, 1)}); err == nil || !strings.Contains(err.Error(), k.want) {
			t.Errorf("%q: %v, want %q", k.new, err, k.want)
		}
	}
}

// checkValues compares what was read with what must be.
func checkValues(t *testing.T, name string, m Measurement, err error, want map[string]float64) {
	t.Helper()
	if err != nil || len(m.Metrics) != len(want) || m.MeasuredSeconds <= 0 {
		t.Errorf("%s: %+v, %v, want %v", name, m, err, want)
		return
	}
	for metric, v := range want {
		if got := m.Metrics[metric]; math.Abs(got-v) > 1e-9*v {
			t.Errorf("%s: %s is %g, want %g", name, metric, got, v)
		}
	}
	sound(t, m, err)
}

// fourRanks are two places with two ranks each.
func fourRanks() []MPIHost {
	return []MPIHost{
		{Address: netip.MustParseAddr("10.244.1.2"), Ranks: []int{0, 1}, LocalRanks: []int{0, 1}},
		{Address: netip.MustParseAddr("10.244.2.2"), Ranks: []int{2, 3}, LocalRanks: []int{2, 3}},
	}
}

// What an MPI that does not count must have sent, by hand.
func TestLeastSent(t *testing.T) {
	for name, k := range map[string]struct {
		cell  result.Cell
		least func(Params, []MPIHost, Output) ([]float64, error)
		hosts []MPIHost
		text  string
		want  [2]float64
	}{
		// Each of two ranks has a message for each of the two of the other place.
		"alltoall": {osuCell("alltoall-mpich", 100, 4), osuLeast, fourRanks(), "", [2]float64{4 * 100 * 1100, 4 * 100 * 1100}},
		// Each rank's message leaves its place.
		"allgather": {osuCell("allgather-mpich", 100, 4), osuLeast, fourRanks(), "", [2]float64{2 * 100 * 1100, 2 * 100 * 1100}},
		"allreduce": {osuCell("allreduce-mpich", 100, 4), osuLeast, fourRanks(), "", [2]float64{100 * 1100, 100 * 1100}},
		"latency":   {osuCell("latency-mpich", 100, 2), osuLeast, twoHosts(), "", [2]float64{100 * 1100, 100 * 1100}},
		"bw":        {osuCell("bw-mpich", 100, 2), osuLeast, twoHosts(), "", [2]float64{64 * 100 * 1100, 4 * 1100}},
		"IMB":       {imbCell("PingPong-mpich", 268435456, 2), MPIIMB().least, twoHosts(), imbPingPong2021, [2]float64{268435456, 268435456}},
		// Ranks 1 and 2 are neighbours, and so are 3 and 0.
		"hpcc": {result.Cell{Workload: "mpi_hpcc", Test: mpichName, Ranks: 4}, hpccLeast, fourRanks(), "Message Length: 2000000\n", [2]float64{4e6, 4e6}},
	} {
		got, err := k.least(Params{Cell: k.cell}, k.hosts, Output{Stdout: k.text})
		if err != nil || len(got) != 2 || got[0] != k.want[0] || got[1] != k.want[1] {
			t.Errorf("%s: %v, %v, want %v", name, got, err, k.want)
		}
	}
	if _, err := hpccLeast(Params{Cell: hpccCell(200)}, fourRanks(), Output{}); err == nil {
		t.Error("hpcc without its test of ring bandwidth")
	}
	m := Measurement{Metrics: map[string]float64{}}
	outputs := []Output{{Device: &Device{Name: "eth0", SentBytes: 1000}}, {Device: &Device{Name: "eth0", SentBytes: 900}}}
	if err := m.accountLeast([]float64{1000, 900}, twoHosts(), outputs); err != nil || m.Metrics["device_sent_bytes"] != 1900 {
		t.Errorf("%v, %v", m, err)
	}
	if _, counted := m.Metrics["mpi_sent_bytes"]; counted {
		t.Error("what MPI sent was not counted, and is recorded")
	}
	if err := m.accountLeast([]float64{1000, 901}, twoHosts(), outputs); err == nil || !strings.Contains(err.Error(), "at least 901 bytes from 10.244.2.2 to other places, and device eth0 only 900: the job used another transport") {
		t.Errorf("%v", err)
	}
}

// Programs are those that are linked with the MPI that starts them.
func TestProgramsOfMPIs(t *testing.T) {
	for _, k := range []struct {
		w    MPI
		cell result.Cell
		want string
	}{
		{MPIOSU(), osuCell("alltoall", 64, 2), "mpirun.openmpi … osu_alltoall -m 64:64 -i 1000 -x 100 -f"},
		{MPIOSU(), osuCell("latency-mpich", 64, 2), "mpiexec.mpich … osu_latency.mpich -m 64:64 -i 1000 -x 100"},
		{MPIIMB(), imbCell("Alltoall", 64, 2), "mpirun.openmpi … exec IMB-MPI1 -npmin 2 -iter 1000 -msglen lengths Alltoall"},
		{MPIIMB(), imbCell("Allgather-mpich", 64, 2), "mpiexec.mpich … exec IMB-MPI1.mpich -npmin 2 -iter 1000 -msglen lengths Allgather"},
		{MPIHPCC(), result.Cell{Test: mpichName, Ranks: 2, MatrixSize: 200}, "mpiexec.mpich … \nhpcc.mpich 2>stderr\n"},
		{MPIHPCC(), result.Cell{Test: openMPIName, Ranks: 2, MatrixSize: 200, BlockSize: 128}, "mpirun.openmpi … \n128          NB\n"},
	} {
		p, err := k.w.Launch(Params{Cell: k.cell}, twoHosts())
		launcher, rest, _ := strings.Cut(k.want, " … ")
		if err != nil || p.Argv[0] != launcher || !strings.Contains(strings.Join(p.Argv, " ")+"\n", rest) {
			t.Errorf("%q, %v, want %q", p.Argv, err, k.want)
		}
		needed := 0
		for _, tool := range k.w.Spec().Needs {
			if tool.NeededBy(k.cell.Test) {
				needed++
			}
		}
		if needed != 3 { // the launcher, its daemon, the program
			t.Errorf("%s: %d programs are needed", k.want, needed)
		}
	}
	if _, err := MPIOSU().Launch(Params{Cell: osuCell("latency", 64, 4)}, fourRanks()); err == nil || err.Error() != "mpi_osu latency has 2 ranks, found 4" {
		t.Errorf("%v", err)
	}
}

func FuzzOSU(f *testing.F) {
	f.Add(osuAllgather74)
	f.Add(osuLatency56)
	f.Fuzz(func(t *testing.T, text string) {
		defer fuzzed.Within(t)()
		for _, cell := range []result.Cell{osuCell("allgather", 1048576, 4), osuCell("latency", 1024, 2), osuCell("bw", 4194304, 2)} {
			m, err := parseOSU(Params{Cell: cell}, Output{Stdout: text})
			sound(t, m, err)
		}
	})
}

func FuzzIMB(f *testing.F) {
	f.Add(imbAlltoall)
	f.Add(imbPingPong2021)
	f.Fuzz(func(t *testing.T, text string) {
		defer fuzzed.Within(t)()
		for _, cell := range []result.Cell{imbCell("Alltoall", 33554432, 36), imbCell("PingPong", 268435456, 2)} {
			m, err := parseIMB(Params{Cell: cell}, Output{Stdout: text})
			sound(t, m, err)
		}
	})
}
