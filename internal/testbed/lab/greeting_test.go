package lab

import (
	"strings"
	"testing"
	"time"
)

// TestAgentThatNeverGreets: an agent that is stopped before its first word costs its
// sample, and not the run.
func TestAgentThatNeverGreets(t *testing.T) {
	needLab(t)
	o := options(newRunner(t), stateDir(t))
	o.Agent, o.Greeting = []string{"sleep", "120"}, 300*time.Millisecond
	l := New(o)
	all := cells("host")
	buildLab(t, l, all)
	ended := make(chan error, 1)
	go func() {
		_, err := l.Ends(t.Context(), all[0])
		ended <- err
	}()
	select {
	case err := <-ended:
		if err == nil || !strings.Contains(err.Error(), "no greeting within 300ms") {
			t.Errorf("error %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the run waits for an agent that never greets")
	}
}
