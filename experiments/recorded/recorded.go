// Package recorded has what the programs share that read one recorded run.
package recorded

import (
	"fmt"
	"io"
	"os"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/stat/dataset"
)

// Main runs a program on the result directory that its one argument names, and gives the
// exit status: 2 for wrong usage, 1 for an error.
func Main(name string, run func(w io.Writer, dir string) error) int {
	if len(os.Args) != 2 {
		fmt.Fprintf(os.Stderr, "usage: %s RESULT_DIR\n", name)
		return 2
	}
	if err := run(os.Stdout, os.Args[1]); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		return 1
	}
	return 0
}

// Analysed reads all records of a run, and gives them with their cells.
func Analysed(dir string) (*stat.Collector, map[result.Cell]bool, error) {
	collector, cells := stat.NewCollector(dataset.Options{}), map[result.Cell]bool{}
	_, err := result.Each(dir, func(s *result.Sample) {
		collector.Add(s)
		cells[s.Cell] = true
	})
	if err != nil {
		return nil, nil, err
	}
	collector.Analyse()
	return collector, cells, nil
}
