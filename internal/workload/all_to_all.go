package workload

import "github.com/cnibench/cnibench/internal/traffic"

// AllToAll has each rank send a message to each other rank.
func AllToAll() Workload {
	return manyEnds(traffic.AllToAll, "each rank sends a message to each other rank: time per operation of the slowest rank", 4096)
}
