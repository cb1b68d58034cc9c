// Command drift says how fast the machine of a recorded run changes its speed: how much of
// what a sample differs by from its cell's mean another sample has as well, by the time
// between them. Samples in slices are left out: theirs is averaged over a whole batch.
//
//	go run ./experiments/drift results/latest
package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"time"

	"github.com/cnibench/cnibench/experiments/recorded"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/workload"
)

// leastSamples is how many samples a cell needs: with fewer, its mean has much of each.
const leastSamples = 8

// classes is how many distances between the starts of two samples the table has. Each goes
// twice as far as the one before.
const classes = 8

// bound is the end of a class.
func bound(class int) time.Duration { return 2500 * time.Millisecond << class }

func main() { os.Exit(recorded.Main("drift", run)) }

// sample is the start of one and the log of its primary metric.
type sample struct {
	start time.Time
	value float64
}

func run(w io.Writer, dir string) error {
	cells := map[result.Cell][]sample{}
	if _, err := result.Each(dir, func(s *result.Sample) {
		if s.Status != result.StatusOK || s.Slices != nil {
			return
		}
		work, err := workload.Find(s.Cell.Workload)
		if err != nil {
			return
		}
		if v := s.Metrics[work.Spec().Primary]; v > 0 {
			cells[s.Cell] = append(cells[s.Cell], sample{s.Started, math.Log(v)})
		}
	}); err != nil {
		return err
	}
	all := residuals(cells)
	if len(all) < 2 {
		return fmt.Errorf("no cell of the run has %d samples that are one window each", leastSamples)
	}
	return write(w, all)
}

// residuals are the samples of cells with enough of them, less the means of their cells, in
// the order of their starts.
func residuals(cells map[result.Cell][]sample) (all []sample) {
	for _, of := range cells {
		if len(of) < leastSamples {
			continue
		}
		mean := 0.0
		for _, s := range of {
			mean += s.value / float64(len(of))
		}
		for _, s := range of {
			all = append(all, sample{s.start, s.value - mean})
		}
	}
	slices.SortFunc(all, func(a, b sample) int { return a.start.Compare(b.start) })
	return all
}

func write(w io.Writer, all []sample) error {
	square := 0.0
	for _, s := range all {
		square += s.value * s.value / float64(len(all))
	}
	if square <= 0 {
		return errors.New("all samples of a cell are the same")
	}
	var products [classes]float64
	var pairs [classes]int
	for i, a := range all {
		for _, b := range all[i+1:] {
			class := 0
			for class < classes && b.start.Sub(a.start) >= bound(class) {
				class++
			}
			if class == classes {
				break
			}
			products[class] += a.value * b.value
			pairs[class]++
		}
	}
	fmt.Fprintf(w, "%d samples differ from the means of their cells by %.1f %% (standard deviation).\n\n", len(all), 100*math.Sqrt(square))
	fmt.Fprintln(w, "| time between two samples | pairs | correlation |\n|---|---:|---:|")
	from := time.Duration(0)
	for class := range classes {
		to := bound(class)
		if pairs[class] > 0 {
			fmt.Fprintf(w, "| %g to %g s | %d | %.2f |\n", from.Seconds(), to.Seconds(), pairs[class], products[class]/float64(pairs[class])/square)
		}
		from = to
	}
	return nil
}
