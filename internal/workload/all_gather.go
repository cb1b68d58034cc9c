package workload

import "github.com/cnibench/cnibench/internal/traffic"

// AllGather has each rank get a message of every other rank.
func AllGather() Workload {
	return manyEnds(traffic.AllGather, "each rank gets a message of every other rank: time per operation of the slowest rank", 4096)
}
