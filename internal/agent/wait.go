//go:build linux

package agent

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// orphansEvery is how often the first process of a container looks for orphans.
const orphansEvery = time.Second

// WaitFor is the main process of a container in which agents are started later:
// it does nothing until ctx ends, but take the exit status of every process that
// has lost its parent, as the first process of a PID namespace must
// (pid_namespaces(7)), and kill those that go on. That of a newcomer reports; nil: it does not.
func WaitFor(ctx context.Context, reports *Newcomer) {
	if reports != nil {
		go reports.report(ctx, time.Now())
	}
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	defer signal.Stop(children)
	var look <-chan time.Time
	if isFirst() {
		tick := time.NewTicker(orphansEvery)
		defer tick.Stop()
		look = tick.C
	}
	var orphans map[int]bool
	for {
		for {
			pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
			if errors.Is(err, syscall.EINTR) {
				continue
			}
			if pid <= 0 || err != nil {
				break // none has ended, or there is none
			}
			delete(orphans, pid)
		}
		select {
		case <-children:
		case <-look:
			orphans = orphansGone("/proc", os.Getpid(), orphans)
		case <-ctx.Done():
			return
		}
	}
}
