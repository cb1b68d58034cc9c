package workload

import "github.com/cnibench/cnibench/internal/traffic"

// HaloExchange has each rank exchange a message with its four neighbours in a grid.
func HaloExchange() Workload {
	return manyEnds(traffic.HaloExchange, "each rank exchanges a message with its four neighbours in a grid: time per operation of the slowest rank", 4096)
}
