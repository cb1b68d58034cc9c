package lab

import (
	"context"
	"errors"
	"fmt"

	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/result"
)

// byDriver reports whether a cell's packets to its service are for a program at the device of
// the server's node.
func byDriver(proxy network.ServiceProxy, cell result.Cell) bool {
	return proxy.Passed != nil && cell.Path == result.PathPodToNodePort && cell.Placement == result.InterHost
}

// watchDriver verifies that the driver of the server's node runs the program, and that it led
// packets to a backend and changed their answers: nothing else would show that the kernel
// runs it in its generic mode, or that a client's socket did its work.
func (c *cluster) watchDriver(to site) func(context.Context) error {
	node := c.nodes[to.node-1]
	requests, answers, err := c.proxy.Passed(node)
	return func(context.Context) error {
		now, back, errAfter := c.proxy.Passed(node)
		if err := errors.Join(err, errAfter); err != nil {
			return fmt.Errorf("not by %s: %s: %w", c.proxy.Name, node.Name, err)
		}
		if now <= requests || back <= answers {
			return fmt.Errorf("not by %s: the programs at %s of %s led %d packets of the sample to a backend and changed %d answers",
				c.proxy.Name, node.Device, node.Name, now-requests, back-answers)
		}
		return nil
	}
}
