// Package probe measures what happens beside the traffic. One file each; the
// roots of /proc and /sys are fields, so that a folder can stand in for them.
package probe

import (
	"errors"
	"fmt"
)

// WindowSeconds is the name under which the agent puts the length of the window
// that the probes' values are of. A tool's is not as long as what it measured:
// only the tool itself knows when it began.
const WindowSeconds = "window_seconds"

// FirstEdgeSeconds is the name under which the agent puts the CPU time that reading
// the first edge of all probes took. It falls inside the window: what the traffic may
// have lost.
const FirstEdgeSeconds = "first_edge_cpu_seconds"

// Probe reads a counter at both edges of the measured window. A value that
// could not be read is absent from the map, with a reason among the errors.
type Probe interface {
	Name() string
	// Start reads the first edge.
	Start() error
	// Stop reads the second and gives the difference by metric name.
	Stop() (map[string]float64, error)
}

// Roots is where the kernel's trees are, and what a probe cannot find there on
// its own.
type Roots struct {
	Proc string // "/proc"
	Sys  string // "/sys"
	// Carriers are processes that carry this place's packets in user space, such
	// as a tunnel's or a switch's. Their CPU time is the sample's.
	Carriers []int
	// Symbols are the kernel's functions, shared by all probes of a program; nil
	// reads them again.
	Symbols *Symbols
}

// ErrAbsent reports that this machine, or this user on it, has none of what a
// probe reads. It does not change from sample to sample.
var ErrAbsent = errors.New("absent")

// absent is an ErrAbsent with its reason.
type absent struct{ why error }

func absentf(format string, args ...any) error { return absent{fmt.Errorf(format, args...)} }

func (a absent) Error() string   { return a.why.Error() }
func (a absent) Unwrap() error   { return a.why }
func (a absent) Is(e error) bool { return e == ErrAbsent }

// Reasons takes apart what a probe's Start or Stop gave: what this machine does
// not have at all, and what went wrong this time.
func Reasons(err error) (missing, wrong []error) {
	var all interface{ Unwrap() []error }
	switch {
	case err == nil:
	case errors.As(err, &all): // of errors.Join: no probe makes others
		for _, e := range all.Unwrap() {
			m, w := Reasons(e)
			missing, wrong = append(missing, m...), append(wrong, w...)
		}
	case errors.Is(err, ErrAbsent):
		missing = append(missing, err)
	default:
		wrong = append(wrong, err)
	}
	return missing, wrong
}
