package stat

import (
	"math"

	"github.com/cnibench/cnibench/internal/result"
)

// JobPrediction compares a workload with many ends with what Hockney's model of the same
// network and path predicts for it. The model knows messages alone: that ranks compute,
// share CPUs and links, or wait for a late one is what the measured time has more.
type JobPrediction struct {
	Cell result.Cell `json:"cell"`
	// By is the cell of the model. Its CPUs and congestion control are those of Cell
	// where SameConditions.
	By             result.Cell `json:"by"`
	SameConditions bool        `json:"same_conditions"`
	// Predicted and Measured are the time of one operation, seconds.
	Predicted Estimate `json:"predicted_seconds"`
	Measured  Estimate `json:"measured_seconds"`
	// Ratio is Measured by Predicted, inside blocks.
	Ratio Estimate `json:"ratio"`
	// RanksPerCPU is how many ranks shared a CPU; nil where that is not known.
	RanksPerCPU *float64 `json:"ranks_per_cpu,omitempty"`
}

// jobTerms is what an operation takes by the model: latencies times α and bytes times
// 1/β, one after the other (Thakur, Rabenseifner and Gropp 2005, section 4; without the
// time that a reduction computes).
func jobTerms(c result.Cell) (latencies, bytes float64, ok bool) {
	n, m := float64(c.Ranks), float64(c.MessageBytes)
	doubling := c.Algorithm == "recursive_doubling"
	steps := math.Ceil(math.Log2(n))
	switch c.Workload {
	case "all_to_all":
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

// jobPredictions are those of all workloads with many ends for whose network and path
// there is a model.
func (c *dataset) jobPredictions(models []Hockney) []JobPrediction {
	var out []JobPrediction
	for _, d := range c.cells {
		latencies, bytes, ok := jobTerms(d.cell)
		if !ok || d.cell.Ranks < 2 || len(d.ok) == 0 {
			continue
		}
		h := modelFor(d.cell, models)
		if h == nil {
			continue
		}
		var predicted []point
		for _, f := range h.fits {
			if t := latencies*f.alpha + bytes*f.perByte; t > 0 {
				predicted = append(predicted, point{f.block, t})
			}
		}
		both := common([][]point{d.series("operation_time_mean_seconds"), predicted})
		if len(both[0]) == 0 {
			continue
		}
		ratios := inBoth(both[0], both[1], func(x, y float64) (float64, bool) { return math.Log(x / y), x > 0 })
		p := JobPrediction{Cell: d.cell, By: h.Cell, Measured: c.tables.mean(both[0]), Predicted: c.tables.mean(both[1]), Ratio: c.tables.geometricMean(ratios),
			SameConditions: sameConditions(d.cell, h.Cell)}
		if shared := values(d.series("ranks_per_cpu")); len(shared) > 0 {
			median := medianOf(shared)
			p.RanksPerCPU = &median
		}
		out = append(out, p)
	}
	return out
}

func sameConditions(a, b result.Cell) bool {
	return a.CPUs == b.CPUs && a.CongestionControl == b.CongestionControl
}

// modelFor is the model of a cell's network and path, one of the same conditions if there
// is one; nil where there is none.
func modelFor(cell result.Cell, models []Hockney) *Hockney {
	var found *Hockney
	for i := range models {
		h := &models[i]
		if withoutTraffic(h.Cell) != withoutTraffic(cell) {
			continue
		}
		if sameConditions(h.Cell, cell) {
			return h
		}
		if found == nil {
			found = h
		}
	}
	return found
}

// withoutTraffic is a cell without its traffic.
func withoutTraffic(c result.Cell) result.Cell {
	return result.Cell{Network: c.Network, Cluster: c.Cluster, Path: c.Path, Placement: c.Placement, Link: c.Link, Profile: c.Profile, MTU: c.MTU,
		Family: c.Family, Services: c.Services, ServiceProxy: c.ServiceProxy, Policies: c.Policies, Encryption: c.Encryption}
}
