package workload

import "github.com/cnibench/cnibench/internal/traffic"

// Incast has all ranks send a message to rank 0 at the same time.
func Incast() Workload {
	return manyEnds(traffic.Incast, "all ranks send a message to rank 0 at once: time until the last flow is complete, and each flow's", 65536)
}
