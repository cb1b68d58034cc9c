// Command repeat runs one campaign several times in a row in the lab and compares each
// two of the runs: whatever differs between them is not the networks'. With -neighbour
// every second run has a neighbour that burns half of one CPU in bursts.
//
//	go run ./experiments/repeat                          # five quickstarts, about ten minutes; needs root and a quiet machine
//	go run ./experiments/repeat -n 4 -neighbour          # two quiet ones, two with a neighbour
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/scratch"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/stat/comparison"
)

func main() {
	n := flag.Int("n", 5, "number of runs")
	neighbour := flag.Bool("neighbour", false, "burn half of one CPU in bursts during every second run")
	keep := flag.String("keep", "", "keep the result directories in this folder, which must not exist")
	file := flag.String("f", "examples/quickstart.yaml", "campaign file")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout, *file, *keep, *n, *neighbour)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "repeat:", err)
		os.Exit(1)
	}
}

// runs are a program and the folders of what it measured.
type runs struct {
	r       *exec.Runner
	program string
	out     []string
	burned  []bool
}

func run(ctx context.Context, w io.Writer, file, keep string, n int, neighbour bool) (err error) {
	dir, remove, err := scratch.Fresh("cnb-repeat-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	all := runs{r: exec.NewRunner(), program: filepath.Join(dir, "cnibench")}
	defer all.r.Close()
	if _, err := all.r.Run(ctx, exec.Cmd{Argv: []string{"go", "build", "-o", all.program, "."}}); err != nil {
		return err
	}
	results := dir
	if keep != "" {
		if results = keep; os.Mkdir(keep, 0o755) != nil {
			return fmt.Errorf("-keep %s: it exists, or cannot be made", keep)
		}
	}
	var analyses []stat.Analysis
	for i := range n {
		burn := neighbour && i%2 == 1
		a, err := all.measure(ctx, file, filepath.Join(results, fmt.Sprint(i+1)), burn)
		if err != nil {
			return err
		}
		analyses = append(analyses, a)
	}
	printEfficiencies(w, analyses, all.burned)
	return all.compare(ctx, w)
}

// measure runs the campaign once more.
func (a *runs) measure(ctx context.Context, file, out string, burned bool) (stat.Analysis, error) {
	if burned {
		stop := burn()
		defer stop()
	}
	res, err := a.r.Run(ctx, exec.Cmd{Argv: []string{a.program, "run", file, "--json", "--out", out}})
	if err != nil {
		return stat.Analysis{}, err
	}
	var report struct {
		Analysis stat.Analysis `json:"analysis"`
	}
	a.out, a.burned = append(a.out, out), append(a.burned, burned)
	return report.Analysis, json.Unmarshal(res.Stdout, &report)
}

// printEfficiencies prints a line for each cell and a column for each run.
func printEfficiencies(w io.Writer, analyses []stat.Analysis, burned []bool) {
	fmt.Fprint(w, "| cell |")
	for i, b := range burned {
		fmt.Fprintf(w, " run %d%s |", i+1, map[bool]string{true: ", neighbour"}[b])
	}
	fmt.Fprintf(w, "\n|---|%s\n", strings.Repeat("---:|", len(burned)))
	for _, s := range analyses[0].Cells {
		if s.Cell.IsBaseline() {
			continue
		}
		fmt.Fprintf(w, "| %s %s %d B |", s.Cell.Network, s.Cell.Workload, s.Cell.MessageBytes)
		for _, a := range analyses {
			fmt.Fprintf(w, " %s |", efficiency(a, s.Cell))
		}
		fmt.Fprintln(w)
	}
}

func efficiency(a stat.Analysis, cell result.Cell) string {
	for _, s := range a.Cells {
		if s.Cell != cell || s.Efficiency == nil {
			continue
		}
		if h, ok := s.Efficiency.RelativeHalfwidth(); ok {
			return fmt.Sprintf("%.1f %% ± %.1f", 100*s.Efficiency.Value, 100*s.Efficiency.Value*h)
		}
	}
	return "none"
}

// compare compares each run with every later one, by the program itself.
func (a *runs) compare(ctx context.Context, w io.Writer) error {
	pairs, cells := 0, 0
	verdicts := map[comparison.Verdict]int{}
	for i := range a.out {
		for j := i + 1; j < len(a.out); j++ {
			res, err := a.r.Run(ctx, exec.Cmd{Argv: []string{a.program, "compare", a.out[i], a.out[j], "--json"}})
			if err != nil && res.ExitCode != regression {
				return err
			}
			var answer struct {
				Comparison comparison.Comparison `json:"comparison"`
			}
			if err := json.Unmarshal(res.Stdout, &answer); err != nil {
				return err
			}
			pairs++
			for _, cell := range answer.Comparison.Cells {
				cells++
				verdicts[cell.Verdict]++
				if cell.Verdict == comparison.Worse || cell.Verdict == comparison.Better {
					fmt.Fprintf(w, "\nruns %d and %d: %s %s %d B is %s", i+1, j+1, cell.Cell.Network, cell.Cell.Workload, cell.Cell.MessageBytes, cell.Verdict)
				}
			}
		}
	}
	fmt.Fprintf(w, "\n%d comparisons, %d cells:", pairs, cells)
	for v, n := range verdicts {
		fmt.Fprintf(w, " %d %s;", n, v)
	}
	fmt.Fprintln(w)
	return nil
}

// regression is the exit status of compare where a cell is worse.
const regression = 3
