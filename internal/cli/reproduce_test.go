package cli_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/cli"
	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/paper"
	"github.com/cnibench/cnibench/papers"
)

// TestReproduceEveryPaper measures what fits into a short time of each study, and wants
// tables, figures and a verdict with its reason for every claim. That a verdict is right is what internal/paper tests.
func TestReproduceEveryPaper(t *testing.T) {
	t.Parallel()
	labtest.Turn(t, labtest.Studies)
	labtest.Root(t)
	names, err := paper.List(papers.FS)
	if err != nil {
		t.Fatal(err)
	}
	runner := exec.NewRunner()
	t.Cleanup(runner.Close) // after the studies, which run side by side
	for _, id := range names {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			if id == "infrabuilder2024" {
				labtest.Tool(t, "iperf3", "iperf3")
			}
			if id == "spiderpool-v0.8" {
				for _, tool := range []string{"iperf3", "sockperf", "netperf"} {
					labtest.Tool(t, tool, tool)
				}
			}
			budget := "20s"
			if id == "dakic2024" || id == "infrabuilder2024" {
				budget = "60s" // their cheapest claims are of the bare network, which shows nothing where the CPUs are slow
			}
			out := filepath.Join(t.TempDir(), "r")
			res, err := runner.Run(t.Context(), exec.Cmd{
				Argv: []string{filepath.Join(built, "cnibench"), "reproduce", id, "--for", budget, "--json", "--out", out},
				Env:  []string{"CNIBENCH_STATE_DIR=" + filepath.Join(t.TempDir(), "labs")},
			})
			if err != nil {
				t.Fatal(err)
			}
			var r paper.Reproduction
			if err := json.Unmarshal(res.Stdout, &r); err != nil {
				t.Fatal(err)
			}
			holdReproduction(t, id, r)
			for _, file := range []string{"reproduction.html", "reproduction.md", "samples.jsonl"} {
				if info, err := os.Stat(filepath.Join(out, file)); err != nil || info.Size() == 0 {
					t.Errorf("%s: %v", file, err)
				}
			}
			// The same records say the same when they are read again.
			again, err := runner.Run(t.Context(), exec.Cmd{Argv: []string{filepath.Join(built, "cnibench"), "reproduce", id, "--from", out, "--json"}})
			if err != nil || string(again.Stdout) != string(res.Stdout) {
				t.Errorf("read again: %v", err)
			}
		})
	}
}

// holdReproduction checks that everything of the paper is reported.
func holdReproduction(t *testing.T, id string, r paper.Reproduction) {
	t.Helper()
	p, err := paper.Load(papers.FS, id, cli.PaperKnown())
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Verdicts) != len(p.Claims) || len(r.Tables) != len(p.Tables) || len(r.Setup) != len(p.Setup) || !r.Cut {
		t.Errorf("%d of %d claims, %d of %d tables, %d of %d of the set-up, part %t", len(r.Verdicts), len(p.Claims), len(r.Tables), len(p.Tables), len(r.Setup), len(p.Setup), r.Cut)
	}
	compared := 0
	for _, v := range r.Verdicts {
		if !slices.Contains(paper.Outcomes(), v.Outcome) || !v.Outcome.Compared() && len(v.Missing) == 0 || v.Outcome.Compared() && len(v.Pairs) == 0 {
			t.Errorf("%s: %+v", v.Claim.ID, v)
		}
		compared += len(v.Pairs)
	}
	ours := 0
	for _, table := range r.Tables {
		for _, row := range table.Cells {
			for _, e := range row {
				if e.Ours != nil {
					ours++
				} else if table.Table.Ours != nil && e.Why == "" {
					t.Errorf("%s: a place without ours and without a reason", table.Table.ID)
				}
			}
		}
	}
	if compared == 0 || ours == 0 {
		t.Errorf("%d pairs compared, %d places of tables measured", compared, ours)
	}
}

// TestASixthPaper: a stranger's folder is measured without a line of Go.
func TestASixthPaper(t *testing.T) {
	t.Parallel()
	labtest.Root(t)
	dir := t.TempDir()
	for name, text := range sixthPaper() {
		file := filepath.Join(dir, "sixth", name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	runner := exec.NewRunner()
	defer runner.Close()
	out := filepath.Join(t.TempDir(), "r")
	res, err := runner.Run(t.Context(), exec.Cmd{
		Argv: []string{filepath.Join(built, "cnibench"), "reproduce", "sixth", "--papers", dir, "--for", "20s", "--out", out},
		Env:  []string{"CNIBENCH_STATE_DIR=" + filepath.Join(t.TempDir(), "labs")},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Reproduction of sixth", "Of 3 findings and numbers:", "bridge-slower", "no network nobody-has-this", "not yet: nobody has measured it", "Table 1: Throughput"} {
		if !strings.Contains(string(res.Stdout), want) {
			t.Errorf("the report lacks %q:\n%s", want, res.Stdout)
		}
	}
	if _, err := fs.Stat(papers.FS, "sixth"); err == nil {
		t.Error("sixth is built in: this tests nothing")
	}
}

func sixthPaper() map[string]string {
	campaign := "networks: [host, bridge]\nworkloads: [{name: tcp_stream, message_bytes: [1472]}]\nsampling: {seconds: 0.1, warmup_seconds: 0, min_blocks: 2, max_blocks: 2}\n"
	return map[string]string{
		"paper.yaml": `id: sixth
title: A sixth study
authors: [A stranger]
year: 2026
published_in: a note
question: Is a bridge slower than the bare network?
setup: [{what: nodes, published: two machines, of: processors}]
cells: {link: unshaped, profile: default_settings, mtu: 1500, path: pod-to-pod, placement: inter-host, workload: tcp_stream}
tables:
  - id: table-1
    kind: table
    where: Table 1
    title: Throughput
    ours: {metric: throughput_bits_per_second, unit: Gbit/s, base_per_unit: 1e9}
    columns: [{name: throughput}]
    rows:
      - {name: bare, cell: {network: host}, values: [10], baseline: true}
      - {name: bridge, cell: {network: bridge}, values: [9]}
`,
		"claims.yaml": `claims:
  - {id: bridge-slower, where: Table 1, published: The bridge is slower., metric: throughput_bits_per_second, left: {network: bridge}, kind: finding, quote: q, relation: less, right: {network: host}}
  - {id: nobody-faster, where: text, published: Another is faster., metric: throughput_bits_per_second, left: {network: nobody-has-this}, kind: finding, quote: q, relation: greater, right: {network: host}}
  - {id: open, where: text, published: It is open., kind: finding, quote: q, not_yet: nobody has measured it}
`,
		"campaign.yaml": "name: sixth\n" + campaign,
	}
}
