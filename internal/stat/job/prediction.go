package job

import (
	"math"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/stat/estimate"
)

// Prediction compares a workload with many ends with what Hockney's model of the same
// network and path predicts for it. The model knows messages alone: that ranks compute,
// share CPUs and links, or wait for a late one is what the measured time has more.
type Prediction struct {
	Cell result.Cell `json:"cell"`
	// By is the cell of the model. Its CPUs and congestion control are those of Cell
	// where SameConditions.
	By             result.Cell `json:"by"`
	SameConditions bool        `json:"same_conditions"`
	// Predicted and Measured are the time of one operation, seconds.
	Predicted estimate.Estimate `json:"predicted_seconds"`
	Measured  estimate.Estimate `json:"measured_seconds"`
	// Ratio is Measured by Predicted, inside blocks.
	Ratio estimate.Estimate `json:"ratio"`
	// RanksPerCPU is how many ranks shared a CPU; nil where that is not known.
	RanksPerCPU *float64 `json:"ranks_per_cpu,omitempty"`
}

// terms is what an operation takes by the model: latencies times α and bytes times
// 1/β, one after the other (Thakur, Rabenseifner and Gropp 2005, section 4; without the
// time that a reduction computes).
func terms(c result.Cell) (latencies, bytes float64, ok bool) {
	n, m := float64(c.Ranks), float64(c.MessageBytes)
	doubling := c.Algorithm == "recursive_doubling"
	steps := math.Ceil(math.Log2(n))
	switch c.Workload {
	case "all_to_all":
		if c.Algorithm == "linear" { // a rank's link carries all of its messages
			return 1, (n - 1) * m, true
		}
		return n - 1, (n - 1) * m, true
	case "all_gather":
		if doubling {
			return steps, (n - 1) * m, true
		}
		return n - 1, (n - 1) * m, true
	case "all_reduce":
		if doubling {
			return steps, steps * m, true
		}
		return 2 * (n - 1), 2 * (n - 1) / n * m, true
	case "barrier":
		return steps, steps, true
	case "incast", "outcast": // the root's link carries all flows
		return 1, (n - 1) * m, true
	case "halo_exchange": // a rank's link carries its sides
		return 1, haloSides(c.Ranks) * m, true
	}
	return 0, 0, false
}

// Times are what the model predicts of an operation of a workload with many ends, seconds by
// block; none of other workloads.
func (h *Hockney) Times(c result.Cell) []estimate.Point {
	latencies, bytes, _ := terms(c)
	var out []estimate.Point
	for _, f := range h.fits {
		if t := latencies*f.alpha + bytes*f.perByte; t > 0 {
			out = append(out, estimate.Point{Block: f.block, Value: t})
		}
	}
	return out
}

// haloSides is how many sides of a rank are another rank's, in the grid that is as near to
// a square as the number of ranks allows.
func haloSides(ranks int) float64 {
	rows := 1
	for r := 1; r*r <= ranks; r++ {
		if ranks%r == 0 {
			rows = r
		}
	}
	sides := 0.0
	for _, size := range []int{rows, ranks / rows} {
		if size > 1 {
			sides += 2
		}
	}
	return sides
}

// Predictions are those of all workloads with many ends for whose network and path
// there is a model.
func Predictions(c *dataset.Dataset, models []Hockney) []Prediction {
	var out []Prediction
	for _, d := range c.Cells {
		if _, _, ok := terms(d.Cell); !ok || d.Cell.Ranks < 2 || len(d.OK) == 0 {
			continue
		}
		h := ModelFor(d.Cell, models)
		if h == nil {
			continue
		}
		both := estimate.Common([][]estimate.Point{d.Series("operation_time_mean_seconds"), h.Times(d.Cell)})
		if len(both[0]) == 0 {
			continue
		}
		ratios := estimate.InBoth(both[0], both[1], func(x, y float64) (float64, bool) { return math.Log(x / y), x > 0 })
		p := Prediction{Cell: d.Cell, By: h.Cell, Measured: c.Tables.Mean(both[0]), Predicted: c.Tables.Mean(both[1]), Ratio: c.Tables.GeometricMean(ratios),
			SameConditions: SameConditions(d.Cell, h.Cell)}
		if shared := estimate.Values(d.Series("ranks_per_cpu")); len(shared) > 0 {
			median := estimate.MedianOf(shared)
			p.RanksPerCPU = &median
		}
		out = append(out, p)
	}
	return out
}

// SameConditions reports whether two cells have the same CPUs and congestion control.
func SameConditions(a, b result.Cell) bool {
	return a.CPUs == b.CPUs && a.CongestionControl == b.CongestionControl
}

// ModelFor is the model of a cell's network and path, one of the same conditions if there
// is one; nil where there is none.
func ModelFor(cell result.Cell, models []Hockney) *Hockney {
	var found *Hockney
	for i := range models {
		h := &models[i]
		if WithoutTraffic(h.Cell) != WithoutTraffic(cell) {
			continue
		}
		if SameConditions(h.Cell, cell) {
			return h
		}
		if found == nil {
			found = h
		}
	}
	return found
}

// WithoutTraffic is a cell without its traffic.
func WithoutTraffic(c result.Cell) result.Cell {
	return result.Cell{Network: c.Network, Cluster: c.Cluster, Path: c.Path, Placement: c.Placement, Link: c.Link, Profile: c.Profile, MTU: c.MTU,
		Family: c.Family, Services: c.Services, ServiceProxy: c.ServiceProxy, Policies: c.Policies, Encryption: c.Encryption}
}
