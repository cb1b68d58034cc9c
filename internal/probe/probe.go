// Package probe measures what happens beside the traffic. One file each; the
// roots of /proc and /sys are fields, so that a folder can stand in for them.
package probe

// WindowSeconds is the name under which the agent puts the length of the window
// that the probes' values are of. A tool's is not as long as what it measured:
// only the tool itself knows when it began.
const WindowSeconds = "window_seconds"

// Probe reads a counter at both edges of the measured window. A value that
// could not be read is absent from the map, with a reason among the errors.
type Probe interface {
	Name() string
	// Start reads the first edge.
	Start() error
	// Stop reads the second and gives the difference by metric name.
	Stop() (map[string]float64, error)
}

// Roots is where the kernel's trees are.
type Roots struct {
	Proc string // "/proc"
	Sys  string // "/sys"
}
