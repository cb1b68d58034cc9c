package lab

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed/lab/processes"
	"github.com/cnibench/cnibench/internal/workload"
)

// mpiCell is one of a workload of MPI on two nodes.
func mpiCell(of, name, test string) result.Cell {
	c := cells(of)[0] // between nodes
	c.Workload, c.Test, c.CPUs, c.CongestionControl = name, test, result.CPUsApart, "cubic"
	c.MessageBytes = 0
	switch name {
	case "mpi_netpipe":
		c.Ranks, c.MessageBytes = 2, 1024
	case "mpi_hpcc":
		c.Ranks, c.RanksPerNode, c.MatrixSize = 4, 2, 200
	default:
		c.Ranks, c.MessageBytes = 2, 1024
	}
	return c
}

// builtPrograms are cells of the programs that no package has, where they are installed.
func builtPrograms(t *testing.T) []result.Cell {
	var all []result.Cell
	for _, w := range []workload.MPI{workload.MPIOSU(), workload.MPIIMB()} {
		spec := w.Spec()
		for _, test := range spec.Tests {
			missing := ""
			for _, tool := range spec.Needs {
				if _, err := exec.LookPath(tool.Name); err != nil && tool.NeededBy(test) {
					missing = tool.Name
				}
			}
			if missing != "" {
				t.Logf("%s %s is left out: %s is not installed", spec.Name, test, missing)
				continue
			}
			c := mpiCell("bridge", spec.Name, test)
			if spec.Ranks(test) == 0 {
				c.Ranks, c.RanksPerNode = 4, 2
			}
			all = append(all, c)
		}
	}
	return all
}

// needMPI is needLab with the programs of all workloads of MPI.
func needMPI(t *testing.T) {
	t.Helper()
	needLab(t)
	for _, w := range []workload.MPI{workload.MPINetPIPE(), workload.MPIHPCC()} {
		for _, tool := range w.Spec().Needs {
			labtest.Tool(t, tool.Name, tool.Package)
		}
	}
}

// TestMPI: NetPIPE runs under both MPIs on two pods, hpcc on four, and on nodes, and the
// devices carried what MPI sent. UCX, where it chooses, takes TCP on the measured device.
func TestMPI(t *testing.T) {
	needMPI(t)
	all := []result.Cell{
		mpiCell("bridge", "mpi_netpipe", "openmpi"), mpiCell("host", "mpi_netpipe", "openmpi"),
		mpiCell("flannel/vxlan", "mpi_netpipe", "mpich"), mpiCell("bridge", "mpi_hpcc", "openmpi"),
		mpiCell("bridge", "mpi_netpipe", "openmpi-ucx"), mpiCell("bridge", "mpi_hpcc", "openmpi-ucx"), mpiCell("bridge", "mpi_hpcc", "mpich"),
	}
	// MPICH's ranks do not leave their CPU to each other while they wait.
	all[len(all)-1].Ranks, all[len(all)-1].RanksPerNode = 2, 0
	all = append(all, builtPrograms(t)...)
	for i, c := range all {
		if c.Network == result.HostNetwork {
			all[i] = c.Baseline()
		}
	}
	k := measureRanks(t, 0.1, all, nil)
	if len(k.records) != len(all) {
		t.Errorf("%d records of %d cells", len(k.records), len(all))
	}
	for _, s := range k.records {
		what := s.Cell.Network + " " + s.Cell.Traffic()
		if s.Status != result.StatusOK {
			t.Errorf("%s: %s %s", what, s.Status, s.Reason)
			continue
		}
		m := s.Metrics
		t.Logf("%s: %v, %v", what, m, s.Tools)
		// MPICH and UCX do not count what they send, and only NetPIPE's output has all of it.
		ucx := strings.HasSuffix(s.Cell.Test, "openmpi-ucx")
		counts := s.Cell.Workload == "mpi_netpipe" || !strings.HasSuffix(s.Cell.Test, "mpich") && !ucx
		if by := s.Tools["UCX transport"]; ucx != (by == "tcp/eth0") || !ucx && by != "" {
			t.Errorf("%s: UCX sent by %q", what, by)
		}
		if counts != (m["mpi_sent_bytes"] > 0) || m["device_sent_bytes"] <= m["mpi_sent_bytes"] {
			t.Errorf("%s: MPI sent %g bytes, the devices %g", what, m["mpi_sent_bytes"], m["device_sent_bytes"])
		}
		if s.Cell.Workload == "mpi_netpipe" && (m["message_time_seconds"] < 1e-6 || m["device_sent_bytes"] > 3*m["mpi_sent_bytes"]) {
			t.Errorf("%s: %v", what, m)
		}
		if s.Cell.Workload == "mpi_hpcc" && (m["hpl_flops_per_second"] <= 0 || m["ranks_per_cpu"] < 1) {
			t.Errorf("%s: %v", what, m)
		}
		if s.Conditions[result.ClientNode]["cpus"] == "" || len(s.Tools) == 0 {
			t.Errorf("%s: conditions %v, tools %v", what, s.Conditions, s.Tools)
		}
	}
}

// TestMPIFaults: a rank or a daemon that is killed or stopped, a node that is cut off, and an
// MPI that hangs at its start, fail the sample within 15 s, with a reason, and nothing is
// left.
func TestMPIFaults(t *testing.T) {
	needMPI(t)
	long := mpiCell("bridge", "mpi_hpcc", "openmpi")
	long.MatrixSize = 6000 // a minute
	polls := mpiCell("bridge", "mpi_hpcc", "mpich")
	polls.Ranks, polls.RanksPerNode, polls.MatrixSize = 2, 0, 6000
	for name, fault := range map[string]struct {
		cell result.Cell
		do   func(t *testing.T, l *Lab, c result.Cell)
		want string // a regular expression
	}{
		"rank":    {long, func(t *testing.T, l *Lab, c result.Cell) { signalIn(t, l, c, 3, "hpcc", syscall.SIGKILL) }, "bridge node2 pod2"},
		"daemon":  {long, func(t *testing.T, l *Lab, c result.Cell) { signalIn(t, l, c, 2, "orted", syscall.SIGKILL) }, "orted"},
		"stopped": {long, func(t *testing.T, l *Lab, c result.Cell) { signalIn(t, l, c, 3, "hpcc", syscall.SIGSTOP) }, "was stopped"},
		"all stopped": {long, func(t *testing.T, l *Lab, c result.Cell) {
			for _, signal := range []syscall.Signal{0, syscall.SIGSTOP} { // all have connections before one is stopped
				for rank := range c.Ranks {
					signalIn(t, l, c, rank, "hpcc", signal)
				}
			}
		}, "was stopped"},
		// MPICH's ranks wait for each other without a limit, and take all CPU time meanwhile.
		"hangs": {polls, func(t *testing.T, l *Lab, c result.Cell) {
			signalIn(t, l, c, 1, "hpcc.mpich", 0)
			cutNode(t, l, 2)
		}, "no rank computed or sent for 10s"},
		"cut off": {long, func(t *testing.T, l *Lab, c result.Cell) { signalIn(t, l, c, 3, "hpcc", 0); cutNode(t, l, 2) }, `bridge node2|mpirun\.openmpi`}, // a rank there, or the launcher
		"start":   {mpiCell("bridge", "mpi_netpipe", "openmpi"), func(t *testing.T, l *Lab, c result.Cell) { signalIn(t, l, c, 1, "orted", syscall.SIGSTOP) }, `orted \(daemon at`},
	} {
		t.Run(name, func(t *testing.T) {
			struck := time.Time{}
			k := measureRanks(t, 0.1, []result.Cell{fault.cell}, func(l *Lab) {
				fault.do(t, l, fault.cell)
				struck = time.Now()
			})
			if len(k.records) != 1 {
				t.Fatalf("%d records", len(k.records))
			}
			s := k.records[0]
			took := k.at[0].Sub(struck)
			t.Logf("after %v: %s", took.Round(time.Millisecond), s.Reason)
			if took > 15*time.Second {
				t.Errorf("the sample failed after %v", took)
			}
			if s.Status != result.StatusFailed || !regexp.MustCompile(fault.want).MatchString(s.Reason) {
				t.Errorf("%s %q, want %q", s.Status, s.Reason, fault.want)
			}
		})
	}
}

// signalIn sends a signal to a program at the place of a rank: to a daemon as soon as it is
// there, to a rank once it has connections to others.
func signalIn(t *testing.T, l *Lab, cell result.Cell, rank int, name string, signal syscall.Signal) {
	t.Helper()
	sites, err := rankSites(cell, false)
	if err != nil {
		t.Error(err)
		return
	}
	inode, err := l.ordered[0].ns(sites[rank]).Inode()
	if err != nil {
		t.Error(err)
		return
	}
	connections := map[string]int{"hpcc": 4, "hpcc.mpich": 2}[name]
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		pids, err := processes.In(map[string]bool{"net:[" + strconv.FormatUint(inode, 10) + "]": true})
		if err != nil {
			t.Error(err)
			return
		}
		for _, pid := range pids {
			if comm(pid) == name && established(pid) >= connections {
				if err := syscall.Kill(pid, signal); err != nil {
					t.Error(err)
				}
				return
			}
		}
	}
	t.Errorf("no %s runs at rank %d", name, rank)
}

func comm(pid int) string {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "comm"))
	if err != nil {
		return "" // it has ended
	}
	return strings.TrimSpace(string(text))
}

// What other testbeds cannot run is refused before anything starts; a lab refuses what has
// no place.
func TestMPIThatCannotBePlaced(t *testing.T) {
	c := mpiCell("bridge", "mpi_hpcc", "openmpi")
	c.RanksPerNode = 4
	specs, unsupported := (&planner{features: map[string]error{}}).specs([]result.Cell{c})
	if len(specs) != 0 || !strings.Contains(unsupported[c], "on one node") {
		t.Errorf("%d clusters, %q", len(specs), unsupported[c])
	}
}
