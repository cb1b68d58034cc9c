package doctor

import (
	"errors"
	"fmt"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/probe"
)

// Whatever keeps stacks from being sampled, doctor says so, with the command that
// fixes it where there is one.
func TestStacksAreMissingForAReason(t *testing.T) {
	for _, c := range []struct {
		err  error
		cure string
	}{
		{unix.EACCES, "sysctl -w kernel.perf_event_paranoid=-1"},
		{unix.EPERM, "sysctl -w kernel.perf_event_paranoid=-1"},
		{fmt.Errorf("/proc/kallsyms: %w", probe.ErrHidden), "sysctl -w kernel.kptr_restrict=0"},
		{unix.ENOSYS, ""},
		{errors.New("no sample came"), ""},
	} {
		o := Options{Stacks: func() (string, error) { return "", fmt.Errorf("kernel stacks: %w", c.err) }}
		if got := o.stacks(); got.Status != Missing || got.Cure != c.cure || got.Detail != "kernel stacks: "+c.err.Error() {
			t.Errorf("%v: %+v, want the cure %q", c.err, got, c.cure)
		}
	}
	if got := (Options{Stacks: func() (string, error) { return "the CPU's cycles", nil }}).stacks(); got.Status != OK || got.Cure != "" {
		t.Errorf("sampled: %+v", got)
	}
}
