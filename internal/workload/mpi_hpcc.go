package workload

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/result"
)

// DefaultMatrixSize is N of HPL where a campaign names none: 8 MB, a second of work.
const DefaultMatrixSize = 1000

// DefaultBlockSize is NB where a campaign names none, the size of the blocks that HPL and
// PTRANS divide a matrix into.
const DefaultBlockSize = 64

// hpccBlock is NB of a cell, which leaves out the default.
func hpccBlock(c result.Cell) int { return cmp.Or(c.BlockSize, DefaultBlockSize) }

// hpccMPICH is the program that scripts/build-hpcc.sh builds: Debian's hpcc is linked with
// Open MPI, and no binary runs under both.
const hpccMPICH = "hpcc.mpich"

// hpccProgram is the one that is linked with the MPI of a test.
func hpccProgram(test string) string {
	if isMPICH(test) {
		return hpccMPICH
	}
	return "hpcc"
}

// MPIHPCC is the HPC Challenge benchmark: HPL, PTRANS, RandomAccess, FFT, STREAM, DGEMM and
// the latency and bandwidth of b_eff, in one run.
func MPIHPCC() MPI {
	return MPI{
		spec: mpiSpec(Spec{
			Name:      "mpi_hpcc",
			Summary:   "HPC Challenge over a real MPI: HPL, PTRANS, RandomAccess, FFT, latency and bandwidth",
			Primary:   "hpl_flops_per_second",
			Factors:   []string{"matrix_size", "block_size"},
			MostRanks: hpccRanks,
			Tests:     mpiNames(),
			Needs: slices.Concat(openMPITools(), mpichTools(), []Tool{{
				Name: "hpcc", Package: "hpcc", Version: []string{"dpkg-query", "-W", "hpcc"}, MPI: openMPIName,
				Calls: []string{"sh", "mktemp", "cat", "tail", "grep", "cut", "sleep"}, // hpccScript
			}, {
				Name: hpccMPICH, Package: "hpcc, and scripts/build-hpcc.sh", MPI: mpichName,
				Cure: "hpcc of Debian is linked with Open MPI; in a clone, sudo sh scripts/build-hpcc.sh builds " + hpccMPICH + " from its source",
			}}),
		}),
		rank: func(p Params) ([]string, string, error) {
			if p.Cell.MatrixSize < 1 || p.Cell.Ranks < 1 {
				return nil, "", errors.New("mpi_hpcc needs ranks and a matrix size")
			}
			return []string{"sh", "-c", hpccScript(p.Cell)}, hpccBegun, nil
		},
		usual:   func(p Params) time.Duration { return hpccOthers + hplTime(p.Cell.MatrixSize, hpccUsual) },
		longest: func(p Params) time.Duration { return 5*time.Minute + hplTime(p.Cell.MatrixSize, hpccSlowest) },
		parse:   parseHPCC,
		least:   hpccLeast,
	}
}

const (
	// hpccRanks is how many ranks' counts of bytes fit into what an agent keeps of stderr.
	hpccRanks = 32
	// hpccUsual is the rate of HPL that estimates assume, flop/s, hpccSlowest that below
	// which a run is ended, and maxHPCCSeconds the longest that HPL may take.
	hpccUsual      = 1e9
	hpccSlowest    = 1e8
	maxHPCCSeconds = 24 * 3600
	// hpccOthers is what the parts of hpcc take together that a small matrix leaves short.
	hpccOthers = 3 * time.Second
	// hpccBegun is what the script prints once hpcc has written its first lines, which it
	// does after MPI_Init.
	hpccBegun = "cnibench: hpcc has begun"
)

// hplTime is how long HPL takes at a rate: it solves a system of n equations.
func hplTime(n int, flopsPerSecond float64) time.Duration {
	order := float64(n)
	return time.Duration(min(2*order*order*order/3/flopsPerSecond, maxHPCCSeconds) * float64(time.Second))
}

// hpccScript is what each rank runs. hpcc reads its input and writes its output at rank 0,
// in a folder of its own, and rank 0 prints the output. Of what Open MPI counted only the
// bytes between ranks are printed, and of what UCX reports only its choice: the rest is
// long. A rank that a signal ended ends by it here too, so that the launcher names it. That it
// can no longer write to another does not end it (SIGPIPE): the launcher would name it in place
// of the other.
func hpccScript(c result.Cell) string {
	return `trap '' PIPE
dir=$(mktemp -d) && cd "$dir" || exit 1
rank=$OMPI_COMM_WORLD_RANK
[ -n "$rank" ] || rank=$PMI_RANK
cat >hpccinf.txt <<'END'
` + hpccInput(c.MatrixSize, hpccBlock(c), c.Ranks) + `END
(
` + hpccProgram(c.Test) + ` 2>stderr
status=$?
if [ $status != 0 ]; then tail -n 20 stderr >&2; exit $status; fi
grep '^E' stderr | cut -f 1-5 >&2
grep 'UCX *INFO.*cfg' stderr >&2 || :
) &
hpcc=$!
if [ "$rank" = 0 ]; then
while [ ! -s hpccoutf.txt ] && kill -0 $hpcc 2>/dev/null; do sleep 0.05; done
[ -s hpccoutf.txt ] && echo '` + hpccBegun + `'
fi
wait $hpcc
status=$?
[ $status -gt 128 ] && kill -$((status - 128)) $$
[ $status = 0 ] || exit $status
[ "$rank" != 0 ] || cat hpccoutf.txt
`
}

// hpccGrid is the most square grid of processes, with at most as many rows as columns.
func hpccGrid(ranks int) (rows, columns int) {
	rows = 1
	for d := 2; d*d <= ranks; d++ {
		if ranks%d == 0 {
			rows = d
		}
	}
	return rows, ranks / rows
}

// hpccInput is hpccinf.txt: each value by its line, as HPL reads HPL.dat, and no further
// sizes for PTRANS.
func hpccInput(n, block, ranks int) string {
	rows, columns := hpccGrid(ranks)
	number := strconv.Itoa
	var b strings.Builder
	for _, line := range [][2]string{
		{"HPC Challenge", ""}, {"written by cnibench", ""},
		{"HPL.out", "output file"}, {"8", "device of the output: a file"},
		{"1", "number of Ns"}, {number(n), "N"}, {"1", "number of NBs"}, {number(block), "NB"},
		{"0", "processes by rows"}, {"1", "number of grids"}, {number(rows), "P"}, {number(columns), "Q"},
		{"16.0", "threshold of the residual"},
		{"1", "number of PFACTs"}, {"2", "PFACT: right"}, {"1", "number of NBMINs"}, {"4", "NBMIN"},
		{"1", "number of NDIVs"}, {"2", "NDIV"}, {"1", "number of RFACTs"}, {"1", "RFACT: Crout"},
		{"1", "number of BCASTs"}, {"1", "BCAST: 1ringM"}, {"1", "number of DEPTHs"}, {"1", "DEPTH"},
		{"2", "SWAP: mix"}, {"64", "its threshold"}, {"0", "L1 transposed"}, {"0", "U transposed"},
		{"1", "equilibration"}, {"8", "alignment in doubles"}, {"##", "separator"},
		{"0", "further Ns of PTRANS"}, {"1200", "unused"}, {"0", "further NBs of PTRANS"}, {"40", "unused"},
	} {
		fmt.Fprintf(&b, "%-12s %s\n", line[0], line[1])
	}
	return b.String()
}

// hpccValue is one line of hpcc's summary as a metric. The name of a line ends with its
// unit; hpcc's prefixes are decimal.
type hpccValue struct {
	metric, line string
	factor       float64
}

func hpccValues() []hpccValue {
	return []hpccValue{
		{"hpl_flops_per_second", "HPL_Tflops", 1e12},
		{"hpl_seconds", "HPL_time", 1},
		{"ptrans_bits_per_second", "PTRANS_GBs", 8e9},
		{"random_access_updates_per_second", "MPIRandomAccess_GUPs", 1e9},
		{"fft_flops_per_second", "MPIFFT_Gflops", 1e9},
		{"dgemm_flops_per_second", "StarDGEMM_Gflops", 1e9},
		{"stream_triad_bits_per_second", "StarSTREAM_Triad", 8e9},
		{"ping_pong_latency_mean_seconds", "AvgPingPongLatency_usec", 1e-6},
		{"ping_pong_latency_min_seconds", "MinPingPongLatency_usec", 1e-6},
		{"ping_pong_latency_max_seconds", "MaxPingPongLatency_usec", 1e-6},
		{"ping_pong_mean_bits_per_second", "AvgPingPongBandwidth_GBytes", 8e9},
		{"ping_pong_min_bits_per_second", "MinPingPongBandwidth_GBytes", 8e9},
		{"ping_pong_max_bits_per_second", "MaxPingPongBandwidth_GBytes", 8e9},
		{"ring_latency_seconds", "NaturallyOrderedRingLatency_usec", 1e-6},
		{"ring_bits_per_second", "NaturallyOrderedRingBandwidth_GBytes", 8e9},
		{"random_ring_latency_seconds", "RandomlyOrderedRingLatency_usec", 1e-6},
		{"random_ring_bits_per_second", "RandomlyOrderedRingBandwidth_GBytes", 8e9},
	}
}

// parseHPCC reads the summary that hpcc's output ends with. A part that hpcc did not
// measure is 0 there, and an error: the parts of a run are compared together.
func parseHPCC(p Params, launcher Output) (Measurement, error) {
	values, err := hpccSummary(launcher.Stdout)
	if err != nil {
		return Measurement{}, err
	}
	if values["CommWorldProcs"] == "1" && p.Cell.Ranks > 1 {
		return Measurement{}, fmt.Errorf("each rank was a job of its own: %s is linked with another MPI", hpccProgram(p.Cell.Test))
	}
	for name, want := range map[string]int{"Success": 1, "VersionMajor": 1, "CommWorldProcs": p.Cell.Ranks, "HPL_N": p.Cell.MatrixSize, "HPL_NB": hpccBlock(p.Cell)} {
		if got := values[name]; got != strconv.Itoa(want) {
			return Measurement{}, fmt.Errorf("%s is %q where %d was expected", name, clip(got), want)
		}
	}
	if strings.Contains(launcher.Stdout, "FAILED") {
		return Measurement{}, errors.New("a residual check failed: the result of HPL or PTRANS is wrong")
	}
	m := metrics{}
	for _, v := range hpccValues() {
		text, found := values[v.line]
		if !found {
			return Measurement{}, fmt.Errorf("%s is missing", v.line)
		}
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsInf(n, 0) || !(n > 0) {
			return Measurement{}, fmt.Errorf("%s is %q, which is no measured value", v.line, clip(text))
		}
		if err := m.put(v.metric, n*v.factor); err != nil {
			return Measurement{}, err
		}
	}
	version := "hpcc " + values["VersionMajor"] + "." + values["VersionMinor"] + "." + values["VersionMicro"]
	return Measurement{MeasuredSeconds: m["hpl_seconds"], Metrics: m, Tools: map[string]string{hpccProgram(p.Cell.Test): clip(version)}}, nil
}

// ringMessage is the size of the messages of b_eff's test of ring bandwidth, bytes, of which
// each rank sends each neighbour at least one (bench_lat_bw_1.5.2.c: ring_lat_bw_loop).
const ringMessage = 2_000_000

// hpccLeast is what the ring of ranks in their order sends from each place at least: ranks
// send to both neighbours.
func hpccLeast(p Params, hosts []MPIHost, launcher Output) ([]float64, error) {
	if !strings.Contains(launcher.Stdout, fmt.Sprintf("Message Length: %d\n", ringMessage)) {
		return nil, fmt.Errorf("it reports no test of ring bandwidth with messages of %d bytes", ringMessage)
	}
	at := map[int]int{} // places of ranks
	for i, h := range hosts {
		for _, rank := range h.Ranks {
			at[rank] = i
		}
	}
	least := make([]float64, len(hosts))
	for rank := range p.Cell.Ranks {
		for _, to := range []int{rank + 1, rank + p.Cell.Ranks - 1} {
			if at[to%p.Cell.Ranks] != at[rank] {
				least[at[rank]] += ringMessage
			}
		}
	}
	return least, nil
}

// hpccSummary are the lines KEY=value of the last section.
func hpccSummary(out string) (map[string]string, error) {
	_, rest, found := strings.Cut(out, "Begin of Summary section.\n")
	if !found {
		return nil, errors.New("it has no summary")
	}
	text, _, found := strings.Cut(rest, "End of Summary section.")
	if !found {
		return nil, errors.New("its summary is cut off")
	}
	values := map[string]string{}
	for line := range strings.Lines(text) {
		key, value, found := strings.Cut(strings.TrimSpace(line), "=")
		if !found {
			continue
		}
		if _, twice := values[key]; twice {
			return nil, fmt.Errorf("%s occurs twice", clip(key))
		}
		values[key] = value
	}
	return values, nil
}
