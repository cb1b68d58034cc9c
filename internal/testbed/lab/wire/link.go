// Package wire is what connects the nodes of a lab: links of some speed and delay, and the
// switch between them.
package wire

import (
	"fmt"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/result"
)

// Link is a wire between nodes.
type Link struct {
	Name    string
	Summary string
	// RateBitsPerSecond is what each direction of one wire carries, counting
	// Ethernet frames without preamble, gap and check sum; 0 is as fast as the
	// machine.
	RateBitsPerSecond uint64
	// Wires are aggregated to one link, where there is more than one. A flow
	// keeps to one of them.
	Wires int
	// Delay is that of each direction.
	Delay time.Duration
	// NoInterHost says why there is no path between nodes; "" where there is.
	NoInterHost string
}

// fibre is the delay of the longest link of 10GBASE-LR: 10 km (IEEE 802.3-2022,
// table 52-11) at 4.9 µs/km (group index of standard single-mode fibre 1.468).
const fibre = 49 * time.Microsecond

// Links is every link that a lab can shape.
func Links() []Link {
	return []Link{
		{Name: result.UnshapedLink, Summary: "as fast as this machine forwards"},
		{Name: "1-gigabit", Summary: "1 Gbit/s each way, by tbf on the fabric's ports", RateBitsPerSecond: 1e9},
		{Name: "10-gigabit", Summary: "10 Gbit/s each way, by tbf on the fabric's ports", RateBitsPerSecond: 10e9},
		{
			Name: "10-gigabit-lag", Summary: "two wires of 10 Gbit/s each way, aggregated by bonding (balance-xor by addresses and ports), shaped by tbf",
			RateBitsPerSecond: 10e9, Wires: 2,
		},
		{
			Name: "fiber-to-fiber", Summary: "10 km of fibre: 10 Gbit/s each way by tbf, 49 µs each way by netem",
			RateBitsPerSecond: 10e9, Delay: fibre,
		},
		{
			Name: "local", Summary: "no wire: both ends on one node, as fast as this machine forwards",
			NoInterHost: "both ends are on one node: ask for placement intra-host",
		},
	}
}

// Needs are the kernel features that the link is made of.
func (l Link) Needs() []netns.Feature {
	needs := []netns.Feature{netns.Veth(), netns.Bridge()}
	if l.RateBitsPerSecond > 0 {
		needs = append(needs, netns.TBF())
	}
	if l.Wires > 1 {
		needs = append(needs, netns.Bonding())
	}
	if l.Delay > 0 {
		needs = append(needs, netns.Netem())
	}
	return needs
}

// TotalBitsPerSecond is what each direction carries over all wires; 0 is as
// fast as the machine.
func (l Link) TotalBitsPerSecond() uint64 { return l.RateBitsPerSecond * uint64(max(l.Wires, 1)) }

// Find looks a link up by name; the error lists the known names.
func Find(name string) (Link, error) {
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
