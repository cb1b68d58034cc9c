package campaign_test

import (
	"os"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/campaign"
)

const jobText = `name: j
ranks: 8
operations:
  - {operation: all_to_all, message_bytes: 1048576, count: 10}
  - {operation: barrier, count: 3}
`

// The profile of a job has its defaults, and the example is one.
func TestJobProfile(t *testing.T) {
	p, err := campaign.ParseJobProfile("j.yaml", []byte(jobText), known())
	if err != nil {
		t.Fatal(err)
	}
	if p.RanksPerNode != 1 || p.ComputeSeconds != 0 || len(p.Operations) != 2 || p.Operations[0].Algorithm != "pairwise" || p.Operations[1].Algorithm != "dissemination" {
		t.Errorf("%+v", p)
	}
	p, err = campaign.LoadJobProfile("../../examples/jobs/spectral.yaml", known())
	if err != nil || len(p.Operations) != 4 || p.RanksPerNode != 2 || p.ComputeSeconds != 60 {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := campaign.LoadJobProfile("no.yaml", known()); !os.IsNotExist(unwrapped(err)) {
		t.Errorf("%v", err)
	}
}

func unwrapped(err error) error {
	for {
		u, ok := err.(interface{ Unwrap() error })
		if !ok {
			return err
		}
		if err = u.Unwrap(); os.IsNotExist(err) {
			return err
		}
	}
}

// Each error has its place.
func TestJobProfileErrors(t *testing.T) {
	for change, want := range map[[2]string]string{
		{"ranks: 8", "ranks: 1"}:                                        "j.yaml:2:8: ranks: expected a whole number from 2 to 256, found 1",
		{"ranks: 8", "rank: 8"}:                                         `j.yaml:2:1: unknown key "rank"`,
		{"ranks: 8", "ranks: 8\nranks_per_node: 9"}:                     "j.yaml:3:17: ranks_per_node: 9 ranks per node, and the job has 8",
		{"name: j\n", ""}:                                               `j.yaml:1:1: missing key "name"`,
		{"count: 3", "count: 0"}:                                        "j.yaml:5:33: operations[1].count: expected a whole number from 1 to 1000000000, found 0",
		{", count: 3", ""}:                                              `j.yaml:5:5: operations[1]: missing key "count"`,
		{"all_to_all", "all_to_one"}:                                    `j.yaml:4:17: operations[0].operation: unknown operation "all_to_one"`,
		{"all_to_all", "tcp_rr"}:                                        `j.yaml:4:17: operations[0].operation: unknown operation "tcp_rr"`,
		{"message_bytes: 1048576, ", ""}:                                `j.yaml:4:5: operations[0]: missing key "message_bytes"`,
		{"1048576", "1048577"}:                                          "j.yaml:4:44: operations[0].message_bytes: expected a whole number from 1 to 1048576, found 1048577",
		{"barrier", "barrier, message_bytes: 4"}:                        "j.yaml:5:41: operations[1].message_bytes: barrier has no messages",
		{"barrier", "barrier, algorithm: ring"}:                         `operations[1].algorithm: barrier has no algorithm "ring"`,
		{"barrier, count: 3", "all_reduce, message_bytes: 6, count: 1"}: "all_reduce adds 32-bit integers",
	} {
		text := strings.Replace(jobText, change[0], change[1], 1)
		if text == jobText {
			t.Fatalf("%q is not in the profile", change[0])
		}
		_, err := campaign.ParseJobProfile("j.yaml", []byte(text), known())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", change[1], err, want)
		}
	}
}

// Operations and round trips have messages of up to 1 MiB, as OSU's benchmarks; others of up
// to 64 KiB.
func TestLargestMessages(t *testing.T) {
	for workload, want := range map[string]string{
		"{name: tcp_rr, message_bytes: [1048576]}":                ``,
		"{name: all_to_all, message_bytes: [1048576]}":            ``,
		"{name: tcp_stream, message_bytes: [64, 65537]}":          "c.yaml:3:52: workloads[0].message_bytes[1]: messages of tcp_stream have at most 65536 bytes, found 65537",
		"{name: mpi_netpipe, ranks: [2], message_bytes: [65537]}": "messages of mpi_netpipe have at most 65536 bytes, found 65537",
	} {
		_, err := campaign.Parse("c.yaml", []byte("name: c\nnetworks: [host]\nworkloads: ["+workload+"]\n"), known())
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", workload, err, want)
		}
	}
}
