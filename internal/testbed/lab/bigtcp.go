package lab

import (
	"errors"
	"fmt"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/traffic"
)

// watchSegments gives a func that doubts a sample on a network with BIG TCP whose segments
// had no more than 64 KiB at a pod's device: a device on the way that takes no larger ones
// has the kernel cut them, without an error. Only streams of long messages in one
// direction are looked at: others have small segments anyway.
func (c *cluster) watchSegments(cell result.Cell, client, server site) (doubt func() string) {
	from, to := client, server
	if cell.Direction == traffic.Reverse {
		from, to = server, client
	}
	long := cell.Workload == traffic.TCPStream && cell.MessageBytes >= netns.LegacySegment && cell.Direction != traffic.Bidirectional
	if !c.network.BigTCP || !long || from.pod == 0 && to.pod == 0 {
		return func() string { return "" }
	}
	read := func() (netns.Passed, error) {
		if from.pod > 0 {
			return netns.Sent(c.ns(from), device)
		}
		return netns.Received(c.ns(to), device)
	}
	before, err := read()
	return func() string {
		after, errAfter := read()
		if err := errors.Join(err, errAfter); err != nil {
			return fmt.Sprintf("BIG TCP: %v", err)
		}
		if mean := netns.Mean(before, after); mean <= netns.LegacySegment {
			return fmt.Sprintf("BIG TCP: segments had %d bytes on average, which they can have without it", mean)
		}
		return ""
	}
}
