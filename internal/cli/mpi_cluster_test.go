package cli_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed/lab"
)

// mpiOnCluster is a campaign of real MPI jobs, and of a native one, on the pods of a
// cluster.
const mpiOnCluster = `name: mpi
testbed: kubernetes
networks: [detected]
workloads:
  - {name: mpi_netpipe, test: [openmpi, mpich, openmpi-ucx], message_bytes: [1024]}
  - {name: mpi_hpcc, ranks: [4], ranks_per_node: [2], matrix_size: [200]}
  - {name: mpi_hpcc, test: [mpich], ranks: [2], matrix_size: [200]}
  - {name: all_to_all, message_bytes: [1024], ranks: [4], ranks_per_node: [2]}
sampling: {slices: 8, seconds: 0.1, warmup_seconds: 0.05, explain_seconds: 0.1, min_blocks: 2, max_blocks: 2}
`

// longOnCluster is a job of a minute.
const longOnCluster = `name: long
testbed: kubernetes
networks: [detected]
workloads: [{name: mpi_hpcc, ranks: [4], ranks_per_node: [2], matrix_size: [6000]}]
sampling: {min_blocks: 2, max_blocks: 2}
`

// TestMPIInCluster: on a lab's Kubernetes whose image has the tools and whose pods have the
// reference plugin ptp, jobs of both MPIs and
// a native one run through exec alone, and devices carried what MPI sent. Where the
// controller is killed in mid-job, no process of it is left in any pod.
func TestMPIInCluster(t *testing.T) {
	needsCluster(t)
	needAllTools(t) // all of them are in the image
	c := newClusters(t)
	c.run("lab", "up", "--kubernetes", "--tools", "--name", "mpi", "--cni", "ptp", "--kubeconfig", "examples/mpi.kubeconfig")
	c.write("mpi.yaml", mpiOnCluster)
	c.run("run", "examples/mpi.yaml", "--kubeconfig", "examples/mpi.kubeconfig", "--out", "mpi", "--seed", "1")
	recorded, err := result.Read(filepath.Join(c.work, "mpi"))
	if err != nil {
		t.Fatal(err)
	}
	measured := map[string]int{}
	for _, s := range recorded.Samples {
		if s.Status != result.StatusOK {
			t.Logf("%s: %s: %s", s.Cell.Traffic(), s.Status, s.Reason) // its retry counts
			continue
		}
		measured[s.Cell.Workload+" "+s.Cell.Test]++
		if s.Cell.Network != "ptp" {
			t.Errorf("%s: the network is found to be %s", s.Cell.Traffic(), s.Cell.Network)
		}
		m, counts := s.Metrics, s.Cell.Workload != "mpi_hpcc" || s.Cell.Test != "mpich" // MPICH does not
		if s.Job == nil && (counts != (m["mpi_sent_bytes"] > 0) || m["device_sent_bytes"] <= m["mpi_sent_bytes"]) {
			t.Errorf("%s: MPI sent %g bytes, the devices %g", s.Cell.Traffic(), m["mpi_sent_bytes"], m["device_sent_bytes"])
		}
		// The image has no package database.
		if program := map[string]string{"mpi_netpipe openmpi": "NPopenmpi", "mpi_netpipe mpich": "NPmpich2", "mpi_hpcc openmpi": "hpcc"}[s.Cell.Workload+" "+s.Cell.Test]; program != "" && s.Tools[program] == "" {
			t.Errorf("%s: no version of %s: %v", s.Cell.Traffic(), program, s.Tools)
		}
		if s.Job != nil && (len(s.Job.Ranks) != 4 || s.Job.Ranks[0].Node == s.Job.Ranks[3].Node) {
			t.Errorf("%s: %+v", s.Cell.Traffic(), s.Job.Ranks)
		}
	}
	for _, what := range []string{"mpi_netpipe openmpi", "mpi_netpipe mpich", "mpi_netpipe openmpi-ucx", "mpi_hpcc openmpi", "mpi_hpcc mpich", "all_to_all "} {
		if measured[what] != 2 {
			t.Errorf("%d samples of %s, want 2", measured[what], what)
		}
	}
	if names := c.left("mpi"); len(names) > 0 {
		t.Errorf("left: %v", names)
	}
	c.killedJob()
}

// killedJob kills the controller of a job that runs.
func (c *clusters) killedJob() {
	t := c.t
	c.write("long.yaml", longOnCluster)
	p, err := c.runner.StartPiped(t.Context(), c.command("run", "examples/long.yaml", "--kubeconfig", "examples/mpi.kubeconfig", "--out", "long"))
	if err != nil {
		t.Fatal(err)
	}
	if n := c.mpiProcesses(time.Minute, func(n int) bool { return n >= 4 }); n < 4 {
		t.Fatalf("%d processes of MPI in the pods: %s", n, p.Stderr())
	}
	if err := p.Kill(); err != nil {
		t.Error(err)
	}
	_ = p.Wait() // it was killed
	struck := time.Now()
	if n := c.mpiProcesses(15*time.Second, func(n int) bool { return n == 0 }); n > 0 {
		t.Errorf("%d processes of MPI are left in the pods", n)
	}
	t.Logf("all processes had ended after %v", time.Since(struck).Round(time.Millisecond))
	c.run("clean", "--kubeconfig", "examples/mpi.kubeconfig")
	c.run("lab", "freeze", "mpi")
	c.run("lab", "thaw", "mpi")
	if names := c.left("mpi"); len(names) > 0 {
		t.Errorf("left: %v", names)
	}
}

// mpiProcesses waits until the number of MPI's processes in the pods is as wanted, and
// gives it.
func (c *clusters) mpiProcesses(within time.Duration, wanted func(n int) bool) int {
	c.t.Helper()
	labs, err := lab.List(lab.Options{Dir: filepath.Join(c.work, "labs")})
	if err != nil || len(labs) != 1 {
		c.t.Fatalf("%d labs, %v", len(labs), err)
	}
	names := []string{"hpcc", "orted", "orterun", "mpirun.openmpi"}
	for end := time.Now().Add(within); ; time.Sleep(50 * time.Millisecond) {
		n := 0
		entries, err := os.ReadDir("/proc")
		if err != nil {
			c.t.Fatal(err)
		}
		for _, e := range entries {
			if _, err := strconv.Atoi(e.Name()); err != nil {
				continue
			}
			comm, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "comm")) // it may have ended
			in, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cgroup"))
			if slices.Contains(names, strings.TrimSpace(string(comm))) && strings.Contains(string(in), labs[0].ID) {
				n++
			}
		}
		if wanted(n) || time.Now().After(end) {
			return n
		}
	}
}
