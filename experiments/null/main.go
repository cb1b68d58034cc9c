// Command null runs A/A campaigns in the lab, one after the other, and counts
// how many differences they found where there is none.
//
//	go run ./experiments/null        # ten campaigns of a minute; needs root
package main

import (
	"context"
	_ "embed"
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
	"github.com/cnibench/cnibench/internal/scratch"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/traffic"
)

//go:embed campaign.yaml
var campaign string

func main() {
	n := flag.Int("n", 10, "number of campaigns")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout, *n)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "null:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, w io.Writer, n int) (err error) {
	dir, remove, err := scratch.Fresh("cnb-null-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	r := exec.NewRunner()
	defer r.Close()
	program, file := filepath.Join(dir, "cnibench"), filepath.Join(dir, "campaign.yaml")
	if _, err := r.Run(ctx, exec.Cmd{Argv: []string{"go", "build", "-o", program, "."}}); err != nil {
		return err
	}
	if err := os.WriteFile(file, []byte(campaign), 0o644); err != nil {
		return err
	}
	fmt.Fprintln(w, "| campaign | load | pairs | called different | after Holm | noise floor of round trips | of streams | could see |")
	fmt.Fprintln(w, "|---:|---:|---:|---:|---:|---:|---:|---:|")
	var all stat.NullResult
	for i := range n {
		load := loadNow()
		out := filepath.Join(dir, fmt.Sprint(i))
		res, err := r.Run(ctx, exec.Cmd{Argv: []string{program, "run", file, "--null-test", "--json", "--out", out}})
		if err != nil {
			return err
		}
		var report struct {
			Analysis struct {
				NullTest *stat.NullResult `json:"null_test"`
			} `json:"analysis"`
		}
		if err := json.Unmarshal(res.Stdout, &report); err != nil {
			return err
		}
		got := report.Analysis.NullTest
		if got == nil {
			return errors.New("the report has no null test")
		}
		fmt.Fprintf(w, "| %d | %s | %d | %d | %d | %s | %s | %.1f %% |\n", i+1, load, len(got.Pairs), got.False, got.FalseAfterHolm,
			floor(got, traffic.TCPRR), floor(got, traffic.TCPStream), 100*got.Detectable)
		all.Pairs = append(all.Pairs, got.Pairs...)
		all.False, all.FalseAfterHolm, all.Expected = all.False+got.False, all.FalseAfterHolm+got.FalseAfterHolm, all.Expected+got.Expected
	}
	fmt.Fprintf(w, "\n%d of %d pairs called different, %.1f expected by chance; %d after Holm's correction inside each campaign.\n",
		all.False, len(all.Pairs), all.Expected, all.FalseAfterHolm)
	fmt.Fprintf(w, "Intervals hold the truth, which is 1, in %.1f %% of the pairs.\n", 100*(1-float64(all.False)/float64(len(all.Pairs))))
	return nil
}

// floor is the widest half-width of the pairs of a workload, in per cent.
func floor(of *stat.NullResult, workload string) string {
	widest, seen := 0.0, false
	for _, p := range of.Pairs {
		if h, ok := p.Ratio.RelativeHalfwidth(); ok && p.A.Workload == workload {
			widest, seen = max(widest, h), true
		}
	}
	if !seen {
		return "none"
	}
	return fmt.Sprintf("± %.1f %%", 100*widest)
}

// loadNow is how many threads want a processor, on average over a minute.
func loadNow() string {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Fields(string(data))[0]
}
