package probe

import "testing"

// The loop is not left out by the compiler: a step takes at least a tenth of a nanosecond.
// Its order is not that of seconds.
func TestLoopTakesTime(t *testing.T) {
	if got := Loop(); got < loopSteps*1e-10 || got > 1 {
		t.Errorf("a loop of %d steps took %g s", loopSteps, got)
	}
}
