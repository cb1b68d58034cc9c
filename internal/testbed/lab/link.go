package lab

import (
	"fmt"
	"strings"
	"time"
)

// Link is a wire between nodes.
type Link struct {
	Name    string
	Summary string
	// RateBitsPerSecond is what each direction carries, counting Ethernet
	// frames without preamble, gap and check sum; 0 is as fast as the machine.
	RateBitsPerSecond uint64
}

// Links is every link that a lab can shape.
func Links() []Link {
	return []Link{
		{Name: "unshaped", Summary: "as fast as this machine forwards"},
		{Name: "1-gigabit", Summary: "1 Gbit/s each way, by tbf on the fabric's ports", RateBitsPerSecond: 1e9},
		{Name: "10-gigabit", Summary: "10 Gbit/s each way, by tbf on the fabric's ports", RateBitsPerSecond: 10e9},
	}
}

// findLink looks a link up by name; the error lists the known names.
func findLink(name string) (Link, error) {
	var known []string
	for _, l := range Links() {
		if l.Name == name {
			return l, nil
		}
		known = append(known, l.Name)
	}
	return Link{}, fmt.Errorf("the lab has no link %q (it has %s)", name, strings.Join(known, ", "))
}

const (
	// tbfBurst is how much of the rate may pass at once. It is more than one
	// 64 KiB segment of offloaded TCP from 1 Gbit/s on, so tbf splits none.
	tbfBurst = time.Millisecond
	// tbfQueue is how much of the rate may wait, a switch port's buffer.
	tbfQueue = 10 * time.Millisecond
)
