package probe

import (
	"slices"
	"time"
)

// LoopSeconds is the name under which the agent puts how long a fixed piece of arithmetic
// takes, seconds: what a processor gives one program.
const LoopSeconds = "cpu_loop_seconds"

// The loop takes some 0.2 ms on processors of this decade, and all of its runs 3 ms.
const (
	loopSteps = 100_000
	loopRuns  = 15
)

// Loop times a fixed piece of arithmetic that needs no memory: the median of several runs,
// seconds. It gets longer where the clock gets slower, and in a virtual machine where a
// neighbour works on the other half of the same core. No counter of a virtual machine's
// kernel shows these: stolen time (proc_stat(5)) is only that in which its processor did not
// run at all. What interrupts some of the runs does not change the median. Values of two
// builds of this program do not compare.
func Loop() float64 {
	seconds := make([]float64, loopRuns)
	x := uint64(time.Now().UnixNano()) | 1
	for i := range seconds {
		begin := time.Now()
		for range loopSteps { // xorshift64: Marsaglia, Xorshift RNGs, J. Stat. Softw. 8, 2003
			x ^= x << 13
			x ^= x >> 7
			x ^= x << 17
		}
		seconds[i] = time.Since(begin).Seconds()
	}
	slices.Sort(seconds)
	if x == 0 { // a xorshift never gets there: without this, a compiler may leave the loop out
		return 0
	}
	return seconds[loopRuns/2]
}
