package workload

import (
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/result"
)

// TestUCXCarriers: what UCX reports is read from the lines of several of its versions. The
// first two were printed by UCX 1.13.1 of Debian 12. The others are written from memory of what
// newer versions print.
func TestUCXCarriers(t *testing.T) {
	for line, want := range map[string]carriers{
		"[1795570595.347360] [vm:14694:0]      ucp_worker.c:1763 UCX  INFO    ep_cfg[0]: tag(self/memory0 tcp/lo tcp/eth0)\n": {"tcp/eth0", "tcp/lo"},
		"[1795570639.209420] [vm:14960:0]      ucp_worker.c:1763 UCX  INFO    ep_cfg[1]: tag(sysv/memory cma/memory)\n":       {"cma/memory", "sysv/memory"},
		"[1.0] [n1:7:0]  ucp_worker.c:1888 UCX  INFO  0x55d6 inter-node cfg#1 tag(rc_mlx5/mlx5_0:1 tcp/eth0)\n":               {"rc_mlx5/mlx5_0:1", "tcp/eth0"},
		"UCX  INFO  UCX_* env variables: UCX_TLS=tcp/eth0\n":                                                                  nil,
		"UCX  INFO    ep_cfg[0]: tag(self/memory0)\n":                                                                         nil,
		"": nil,
	} {
		for _, o := range []Output{{Stdout: line}, {Stderr: line + line}} {
			got, err := ucxCarriers(o)
			if !slices.Equal(got, want) || (err == nil) != (want != nil) {
				t.Errorf("%q: %v, %v, want %v", line, got, err, want)
			}
		}
	}
}

// TestCarriedBy: TCP on the measured device is accounted for, RDMA is reported, and anything
// else is an error.
func TestCarriedBy(t *testing.T) {
	for by, want := range map[string]struct {
		past   bool
		failed string
	}{
		"tcp/eth0":                  {false, ""},
		"rc_mlx5/mlx5_0:1 tcp/eth0": {true, ""},
		"ud_verbs/rxe0:1":           {true, ""},
		"tcp/eth0 tcp/lo":           {false, "UCX sent by tcp/lo, and the measured device is eth0"},
		"sysv/memory":               {false, "UCX sent by sysv/memory"},
	} {
		m := Measurement{Tools: map[string]string{}}
		past, err := m.carriedBy(strings.Fields(by), Output{Device: &Device{Name: "eth0"}})
		said := err != nil && strings.Contains(err.Error(), want.failed)
		if past != want.past || (want.failed == "") != (err == nil) || want.failed != "" && !said {
			t.Errorf("%s: %v, %v", by, past, err)
		}
		if err == nil && (m.Tools["UCX transport"] != strings.Join(strings.Fields(by), ", ") || past != (len(m.Warnings) == 1)) {
			t.Errorf("%s: %v, %v", by, m.Tools, m.Warnings)
		}
	}
}

// TestUCXSpeaksOnTheOtherStream: what UCX prints does not run into what the program prints.
func TestUCXSpeaksOnTheOtherStream(t *testing.T) {
	for _, c := range []struct {
		w    MPI
		cell result.Cell
		want string
	}{
		{MPINetPIPE(), netPIPECell(ucxName, 64), "UCX_LOG_FILE=stdout"},
		{MPIHPCC(), result.Cell{Workload: "mpi_hpcc", Test: ucxName, Ranks: 2, MatrixSize: 100}, "UCX_LOG_FILE=stderr"},
		{MPIOSU(), result.Cell{Workload: "mpi_osu", Test: withMPI("latency", ucxName), MessageBytes: 8, Ranks: 2}, "UCX_LOG_FILE=stderr"},
	} {
		p, err := c.w.Launch(Params{Cell: c.cell}, twoHosts())
		if err != nil || !slices.Contains(p.Argv, c.want) {
			t.Errorf("%s: no %s in %v, %v", c.cell.Workload, c.want, p.Argv, err)
		}
	}
}

// TestUCXNeedsOpenMPIsPrograms: programs that send by UCX are those of Open MPI, and how to
// build one names its compiler.
func TestUCXNeedsOpenMPIsPrograms(t *testing.T) {
	for _, w := range []MPI{MPINetPIPE(), MPIHPCC(), MPIOSU(), MPIIMB()} {
		for _, test := range w.Spec().Tests {
			if !isUCX(test) {
				continue
			}
			ofOpenMPI := withoutMPI(test)
			if test == ucxName {
				ofOpenMPI = openMPIName
			}
			var names, want []string
			for _, tool := range w.Spec().Needs {
				if tool.NeededBy(test) {
					names = append(names, tool.Name)
				}
				if tool.NeededBy(ofOpenMPI) {
					want = append(want, tool.Name)
				}
				if strings.Contains(tool.Install(), "mpicc."+ucxName) {
					t.Errorf("%s: %s", tool.Name, tool.Install())
				}
			}
			if !slices.Equal(names, want) {
				t.Errorf("%s %s needs %v, want %v", w.Spec().Name, test, names, want)
			}
		}
	}
}
