// Command savings shows what blocks and the stopping rule save: how many
// seconds each cell takes until its efficiency is known to 2 %, compared with fixed
// protocols of published benchmarks, which measure one network after the other.
// Both are taken from one long recorded run, recorded.csv, from many beginnings.
//
//	go run ./experiments/savings                             # the table
//	bin/cnibench run experiments/savings/campaign.yaml --out DIR
//	go run ./experiments/savings -from DIR                   # make recorded.csv of it
package main

import (
	_ "embed"
	"encoding/csv"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/result"
)

//go:embed recorded.csv
var recorded string

func main() {
	from := flag.String("from", "", "result directory to make recorded.csv of")
	flag.Parse()
	err := run(os.Stdout, *from)
	if err != nil {
		fmt.Fprintln(os.Stderr, "savings:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, from string) error {
	if from != "" {
		return record(from, "experiments/savings/recorded.csv")
	}
	rec, err := read(strings.NewReader(recorded))
	if err != nil {
		return err
	}
	table(w, rec)
	return nil
}

// recording is a long run: what each cell gave, in order of time.
type recording struct {
	// sampleSeconds and warmupSeconds are the length of each sample.
	sampleSeconds, warmupSeconds float64
	// length is from the first sample to the end of the last.
	length float64
	cells  map[cell][]value
}

// cell is a network and a workload.
type cell struct{ network, workload string }

// value is one sample; seconds count from the beginning of the run.
type value struct {
	block   int
	seconds float64
	value   float64
}

// primary is the metric that a workload is judged by here.
func primary(workload string) string {
	if workload == "tcp_rr" {
		return "transactions_per_second"
	}
	return "throughput_bits_per_second"
}

// record makes the CSV file of a result directory.
func record(dir, path string) error {
	var begin time.Time
	var out strings.Builder
	csvOut := csv.NewWriter(&out)
	rows := [][]string{{"network", "workload", "block", "start_seconds", "window_seconds", "value"}}
	_, err := result.Each(dir, func(s *result.Sample) {
		if begin.IsZero() {
			begin = s.Started
		}
		v, ok := s.Metrics[primary(s.Cell.Workload)]
		if s.Status != result.StatusOK || !ok {
			return
		}
		rows = append(rows, []string{s.Cell.Network, s.Cell.Workload, strconv.Itoa(s.Block),
			fmt.Sprintf("%.3f", s.Started.Sub(begin).Seconds()), fmt.Sprint(s.RequestedSeconds), fmt.Sprintf("%.6g", v)})
	})
	if err != nil {
		return err
	}
	if err := csvOut.WriteAll(rows); err != nil {
		return err
	}
	return result.WriteFile(path, []byte(out.String()))
}

// recordedWarmup is what each recorded sample was preceded by.
const recordedWarmup = 0.05

func read(r io.Reader) (recording, error) {
	rows, err := csv.NewReader(r).ReadAll()
	if err != nil {
		return recording{}, err
	}
	rec := recording{warmupSeconds: recordedWarmup, cells: map[cell][]value{}}
	for _, row := range rows[1:] {
		var v value
		var window float64
		if _, err := fmt.Sscan(strings.Join(row[2:], " "), &v.block, &v.seconds, &window, &v.value); err != nil {
			return rec, fmt.Errorf("recorded.csv: %v: %w", row, err)
		}
		k := cell{row[0], row[1]}
		rec.cells[k] = append(rec.cells[k], v)
		rec.sampleSeconds = window
		rec.length = max(rec.length, v.seconds+window)
	}
	return rec, nil
}
