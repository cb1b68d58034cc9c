package bench

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/workload"
)

func netPIPECell(test string) result.Cell {
	c := jobCell("mpi_netpipe", "", 1024)
	c.Test, c.Ranks, c.RanksPerNode = test, 2, 2
	return c
}

// fakes puts programs in place of all others.
func fakes(t *testing.T, programs map[string]string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "cnb-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil { // tools of root are nobody
		t.Fatal(err)
	}
	for name, text := range programs {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
}

// allMPI are stand-ins for all programs of mpi_netpipe under Open MPI; mpirun runs script.
func allMPI(script string) map[string]string {
	return map[string]string{
		"orted": "exit 0", "NPopenmpi": "exit 0", "ompi_info": "echo Open MPI v9", "dpkg-query": "echo netpipe-openmpi 9",
		"mpirun.openmpi": `case "$1" in --version) echo mpirun 9; exit 0;; esac` + "\n" + script,
	}
}

const (
	goodNetPIPE = `echo Now starting the main loop >&2; echo "  0:    1024 bytes   2500 times -->    312.50 Mbps in      25.00 usec" >&2`
	goodCounts  = `printf 'E\t0\t1\t1000 bytes\t1 msgs sent\t1\nE\t1\t0\t900 bytes\t1 msgs sent\t1\n' >&2`
)

// A job of MPI is recorded with what its program printed, and its failures with the last
// words of the launcher. All ranks share a place here.
func TestMPISamples(t *testing.T) {
	labtest.Slow(t)
	for name, k := range map[string]struct{ script, reason string }{
		"good":   {goodNetPIPE + "\n" + goodCounts, ""},
		"failed": {"echo rank 1 is gone >&2; exit 1", "mpirun.openmpi (launcher) ended with status 1: rank 1 is gone"},
		"silent": {goodNetPIPE, "did not print what its ranks sent"},
		"wrong":  {strings.ReplaceAll(goodNetPIPE, "usec", "nsec"), `its output is not understood: unknown units "Mbps" and "nsec"`},
	} {
		t.Run(name, func(t *testing.T) {
			fakes(t, allMPI(k.script))
			fake, _ := newGathering(t, 2)
			store := &memory{}
			if _, err := Run(t.Context(), jobOptions(fake, store, 0.03, netPIPECell("openmpi"))); err != nil {
				t.Fatal(err)
			}
			if len(store.records) == 0 {
				t.Fatal("no record")
			}
			s := store.records[0]
			if k.reason != "" {
				if s.Status != result.StatusFailed || !strings.Contains(s.Reason, k.reason) || len(s.Metrics) > 0 {
					t.Errorf("%s %q, want %q", s.Status, s.Reason, k.reason)
				}
				return
			}
			if s.Status != result.StatusOK || s.Metrics["message_time_seconds"] != 25e-6 || s.Tools["mpirun.openmpi"] != "mpirun 9" || s.Tools["NPopenmpi"] != "netpipe-openmpi 9" || len(s.Tools) != 3 || s.Raw == "" {
				t.Errorf("%+v", s)
			}
			if !slices.ContainsFunc(s.Warnings, func(w string) bool { return strings.Contains(w, "share one network namespace") }) {
				t.Errorf("warnings %q", s.Warnings)
			}
		})
	}
}

// What is missing is named with its package, for the MPI that the cell has alone.
func TestMPIIsMissing(t *testing.T) {
	fakes(t, allMPI(""))
	fake, _ := newGathering(t, 2)
	v6 := netPIPECell("openmpi")
	v6.Family = "ipv6"
	store := &memory{}
	if _, err := Run(t.Context(), jobOptions(fake, store, 0.03, netPIPECell("mpich"), v6)); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"": "mpiexec.mpich, hydra_pmi_proxy, NPmpich2 is not installed at node1 pod1: apt-get install mpich netpipe-mpich2 (or make tools)", "ipv6": "mpi_netpipe uses IPv4 only"}
	if len(store.records) != 2 {
		t.Fatalf("%d records", len(store.records))
	}
	for _, s := range store.records {
		if s.Status != result.StatusUnsupported || s.Reason != want[s.Cell.Family] {
			t.Errorf("%s %q, want %q", s.Status, s.Reason, want[s.Cell.Family])
		}
	}
}

// Ranks that share an address are one host, and ranks are numbered on each machine.
func TestMPIHosts(t *testing.T) {
	fake, _ := newGathering(t, 4)
	for i, a := range []string{"10.244.1.2", "10.244.1.2", "10.244.2.2", "10.244.3.2"} {
		fake.ranks[i].Address = netip.MustParseAddr(a)
	}
	j := &mpiJob{}
	j.group(fake.ranks)
	if len(j.hosts) != 3 || !slices.Equal(j.hosts[0].Ranks, []int{0, 1}) || !slices.Equal(j.hosts[2].Ranks, []int{3}) || !slices.Equal(j.hosts[2].LocalRanks, []int{3}) || j.places[1].Name != "node2 pod1" {
		t.Errorf("%+v", j.hosts)
	}
	if err := j.located(errors.New("no route to 10.244.3.2")); !strings.Contains(err.Error(), "(10.244.3.2 is node2 pod2)") {
		t.Errorf("%v", err)
	}
}

// A testbed without places for ranks cannot run it.
func TestMPINeedsRanks(t *testing.T) {
	r := &run{Options: Options{Testbed: newLoopback(t)}}
	if _, err := r.ranksOf(t.Context(), netPIPECell("openmpi")); err == nil || !strings.Contains(err.Error(), "measure it in the lab") {
		t.Errorf("%v", err)
	}
	if err := r.manyEnds(t.Context(), &result.Sample{}, workload.Iperf3{}); err == nil {
		t.Error("iperf3 has ranks")
	}

}
