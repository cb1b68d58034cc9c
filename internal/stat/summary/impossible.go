package summary

import (
	"strings"

	"github.com/cnibench/cnibench/internal/result"
)

// beyondBaseline is how much better than its baseline a cell's whole interval
// must be before it is not believed: some networks cost next to nothing.
const beyondBaseline = 0.01

// impossible reports that a cell is faster than its baseline, whose path its own
// contains: between nodes a pod's packets take the way of its node's. Inside a node
// they need not pass the node's own stack, a program at the sockets passes by the
// stack altogether, and with BIG TCP there are fewer segments than the baseline's.
func impossible(s Cell) bool {
	if s.Efficiency == nil || s.Cell.Placement != result.InterHost || accelerated(s.Cell.Network) || s.LinkBound {
		return false
	}
	low, _, ok := s.Efficiency.Interval()
	return ok && low > 1+beyondBaseline
}

// accelerated recognises a network whose pods send in another way than the baseline's nodes.
func accelerated(network string) bool {
	return strings.Contains(network, "+sockmap") || strings.Contains(network, "+bigtcp")
}

// Impossible are the cells whose answer cannot be true: goals are not ranked by them.
func Impossible(all []Cell) map[result.Cell]bool {
	out := map[result.Cell]bool{}
	for _, s := range all {
		if impossible(s) {
			out[s.Cell] = true
		}
	}
	return out
}
