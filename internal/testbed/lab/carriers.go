package lab

import (
	"strconv"

	"github.com/cnibench/cnibench/internal/testbed/lab/processes"
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
