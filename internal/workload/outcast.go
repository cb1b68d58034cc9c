package workload

import "github.com/cnibench/cnibench/internal/traffic"

// Outcast has rank 0 send a message to all other ranks at the same time.
func Outcast() Workload {
	return manyEnds(traffic.Outcast, "rank 0 sends a message to all others at once: time until the last flow is complete, and each flow's", 65536)
}
