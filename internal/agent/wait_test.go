package agent

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"
	"time"
)

// Children that end while it waits leave nothing behind, and it ends at once.
func TestWaitForReapsAndEnds(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() { WaitFor(ctx, nil); close(over) }()
	for range 20 {
		child, err := os.StartProcess("/bin/true", []string{"true"}, &os.ProcAttr{})
		if err != nil {
			t.Fatal(err)
		}
		deadline := time.Now().Add(10 * time.Second)
		for {
			// A zombie still exists for signal 0; a reaped one is not.
			if err := syscall.Kill(child.Pid, 0); errors.Is(err, syscall.ESRCH) {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("child %d was never reaped", child.Pid)
			}
			time.Sleep(time.Millisecond)
		}
		_ = child.Release()
	}
	select {
	case <-over:
		t.Fatal("it ended on its own")
	default:
	}
	end()
	select {
	case <-over:
	case <-time.After(5 * time.Second):
		t.Fatal("it does not end")
	}
}
