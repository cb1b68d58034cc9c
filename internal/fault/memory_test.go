package fault

import (
	"errors"
	"testing"

	"github.com/cnibench/cnibench/internal/exec"
)

// TestOutOfMemory: the kernel kills a process for lack of memory, and whoever started it is
// given the reason. A process that is killed otherwise has another one.
func TestOutOfMemory(t *testing.T) {
	NeedsMemory(t)
	r := exec.NewRunner()
	defer r.Close()
	for _, memory := range []bool{true, false} {
		p, err := r.StartPiped(t.Context(), exec.Cmd{Argv: []string{"sleep", "100"}})
		if err != nil {
			t.Fatal(err)
		}
		if memory {
			ended := make(chan error, 1)
			go func() { ended <- p.Wait() }()
			OutOfMemory(t, p.PID())
			err = <-ended
		} else {
			Kill(t, p.PID())
			err = p.Wait()
		}
		if errors.Is(err, exec.ErrMemory) != memory || err == nil {
			t.Errorf("out of memory %v: %v", memory, err)
		}
	}
}
