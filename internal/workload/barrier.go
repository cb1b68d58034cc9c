package workload

import "github.com/cnibench/cnibench/internal/traffic"

// Barrier lets no rank go on before all have arrived.
func Barrier() Workload {
	return manyEnds(traffic.Barrier, "no rank goes on before all have arrived: time per operation of the slowest rank", 0)
}
