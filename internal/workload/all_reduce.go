package workload

import "github.com/cnibench/cnibench/internal/traffic"

// AllReduce gives all ranks the sum of one message of each.
func AllReduce() Workload {
	return manyEnds(traffic.AllReduce, "all ranks get the sum of one message of each, as 32-bit integers: time per operation of the slowest rank", 4096)
}
