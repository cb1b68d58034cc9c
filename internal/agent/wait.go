//go:build linux

package agent

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
)

// WaitFor is the main process of a container in which agents are started later:
// it does nothing until ctx ends, but take the exit status of every process that
// has lost its parent, as the first process of a PID namespace must
// (pid_namespaces(7)).
func WaitFor(ctx context.Context) {
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	defer signal.Stop(children)
	for {
		for {
			pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
			if errors.Is(err, syscall.EINTR) {
				continue
			}
			if pid <= 0 || err != nil {
				break // none has ended, or there is none
			}
		}
		select {
		case <-children:
		case <-ctx.Done():
			return
		}
	}
}
