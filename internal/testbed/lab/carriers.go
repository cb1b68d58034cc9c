package lab

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/cnibench/cnibench/internal/network/dataplane"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed/lab/processes"
	"github.com/cnibench/cnibench/internal/traffic"
)

// The two ends of a sample, which have agents of their own.
const roleClient, roleServer = "client", "server"

// findCarriers notes the processes that the network has left running in each
// node's namespace, before there are agents: a tunnel's, a switch's; and the proxies in its
// pods. What they use is part of what a sample costs.
func (c *cluster) findCarriers() error {
	at := map[string]int{}
	for i, n := range c.nodes {
		inode, err := n.NS.Inode()
		if err != nil {
			return err
		}
		at["net:["+strconv.FormatUint(inode, 10)+"]"] = i
		if c.network.Proxied == nil {
			continue
		}
		for _, p := range c.pods[i] { // which may have proxies of their own
			if inode, err = p.ns.Inode(); err != nil {
				return err
			}
			at["net:["+strconv.FormatUint(inode, 10)+"]"] = i
		}
	}
	c.carriers = make([][]int, len(c.nodes))
	return processes.Each(func(pid int, namespace string) {
		if i, here := at[namespace]; here {
			c.carriers[i] = append(c.carriers[i], pid)
		}
	})
}

// carriersOf are those whose use an agent reports: each node's once. Where
// both ends are on one node, which is the first then, the client does.
func (c *cluster) carriersOf(s site, role string) []int {
	if role == roleServer && s.node == 1 {
		return nil
	}
	return c.carriers[s.node-1]
}

// placeCarriers has the programs that carry a cell's packets run where its ends do: those of a
// node on the CPUs of the ends that are on it. Left to the scheduler, they would do a part of
// the work on another CPU, which the ends alone do not have. Where a service is changed, programs
// that carry no packets (ovn-controller) do what is measured, and all are left to the scheduler.
func (c *cluster) placeCarriers(cell result.Cell, from, to site) error {
	if cell.Workload == result.ServiceUpdateName {
		return errors.Join(c.moveCarriers(from.node, nil), c.moveCarriers(to.node, nil))
	}
	cpus := map[int][]int{} // by node
	for _, end := range []struct {
		node   int
		server bool
	}{{from.node, false}, {to.node, true}} {
		chosen, err := traffic.ChooseCPUs(cell.CPUs, end.server)
		if err != nil {
			return err
		}
		cpus[end.node] = append(cpus[end.node], chosen...)
	}
	for node, chosen := range cpus {
		if err := c.moveCarriers(node, chosen); err != nil {
			return err
		}
	}
	return nil
}

// moveCarriers moves the programs of a node that carry packets to some CPUs; none leave them to
// the scheduler.
func (c *cluster) moveCarriers(node int, cpus []int) error {
	err := dataplane.PlaceProcesses(c.carriers[node-1], cpus)
	if err == nil && c.proxy.Place != nil {
		err = c.proxy.Place(c.nodes[node-1], cpus)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", c.nodes[node-1].Name, err)
	}
	return nil
}
