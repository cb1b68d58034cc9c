package doctor

import (
	"errors"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/probe"
)

// stacks samples what the kernel does for a moment, as the probe does.
func (o Options) stacks() Check {
	c := Check{Area: counterArea, Name: "kernel stacks", Status: OK, NeededFor: "where in the kernel the cost goes: cnibench explain"}
	event, err := o.Stacks()
	if err == nil {
		c.Detail = "sampled by " + event
		return c
	}
	c.Status, c.Detail = Missing, err.Error()
	switch {
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		c.Cure = "sysctl -w kernel.perf_event_paranoid=-1"
	case errors.Is(err, probe.ErrHidden):
		c.Cure = "sysctl -w kernel.kptr_restrict=0"
	}
	return c
}

// samplingTime is long enough for some samples on every CPU that is busy.
const samplingTime = 50 * time.Millisecond

func sampleStacks() (event string, err error) {
	s := probe.OpenStacks(probe.Roots{Proc: "/proc", Sys: "/sys"})
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := s.Start(); err != nil {
		return "", err
	}
	for begin := time.Now(); time.Since(begin) < samplingTime; {
		runtime.KeepAlive(spin())
	}
	_, err = s.Stop()
	return s.Event(), err
}
