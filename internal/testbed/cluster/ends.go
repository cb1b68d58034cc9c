package cluster

import (
	"cmp"
	"context"
	"fmt"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed"
)

// portOf is what the server of a route must serve on; 0: any.
func portOf(r route) uint16 {
	if byService(r.path) {
		return servicePort
	}
	return 0
}

// ends are those of a cell, living.
func (c *cluster) ends(ctx context.Context, cell result.Cell) (testbed.Ends, error) {
	fromEnd, toEnd := c.endsOf(cell)
	from, err := c.living(ctx, fromEnd)
	if err != nil {
		return testbed.Ends{}, err
	}
	to, err := c.living(ctx, toEnd)
	if err != nil {
		return testbed.Ends{}, err
	}
	if !from.agent.Alive() { // everything was created again for the other end
		if from, err = c.living(ctx, fromEnd); err != nil {
			return testbed.Ends{}, err
		}
	}
	r := route{toEnd, cell.Path, familyOf(cell)}
	at, err := c.target(ctx, r, to)
	if err != nil {
		return testbed.Ends{}, err
	}
	machine := from.agent.Machine()
	return testbed.Ends{
		Client: c.place(from, r.family), Server: c.place(to, r.family), ServerAddress: at.Addr(),
		ServerPort: portOf(r), TargetPort: at.Port(),
		SharedClock: machine != "" && machine == to.agent.Machine(),
	}, nil
}

func (c *cluster) place(p *agentPod, family string) testbed.Place {
	return testbed.Place{Name: c.placeName(p), Node: p.node, MTU: p.mtu(family), Agent: p.agent,
		ToolsFrom: "the image has this program alone: cnibench image --tools makes one with tools, --image names it"}
}

func (c *cluster) placeName(p *agentPod) string {
	return words(c.name, fmt.Sprintf("%s on %s", p.end.name(), p.node))
}

// support says why a cell cannot be measured here.
func (c *cluster) support(cell result.Cell) error {
	from, to := c.endsOf(cell)
	r := route{to, cell.Path, familyOf(cell)}
	switch {
	case cell.Link != result.UnshapedLink:
		return fmt.Errorf("link %s requires testbed lab; a cluster's link cannot be chosen", cell.Link)
	case cell.Profile != result.DefaultProfile:
		return fmt.Errorf("profile %s requires testbed lab or hosts; nodes of a cluster are not tuned", cell.Profile)
	case cell.HasManyEnds():
		return c.supportRanks(cell)
	case cell.Workload == result.PodSetupName && supportAdded(cell) != nil:
		return supportAdded(cell)
	case cell.Workload == result.ServiceUpdateName:
		return fmt.Errorf("services are changed by the cluster's own proxies: measure %s in the lab", cell.Workload)
	case max(from.node, to.node) > len(c.nodes) && cell.IsPair():
		return fmt.Errorf("%s and %s are not both among the nodes that are measured; others: %s", cell.ClientNode, cell.ServerNode, cmp.Or(c.unfit, "none"))
	case max(from.node, to.node) > len(c.nodes):
		return fmt.Errorf("the cluster has one node that takes pods (%s), and %s needs two; others: %s", c.nodes[0].Name, cell.Placement, cmp.Or(c.unfit, "none"))
	case (from.host || to.host) && c.noHost != "":
		return fmt.Errorf("no pods in their node's network: %s", c.noHost)
	case to.host && to.policies > 0:
		return fmt.Errorf("a policy selects pods, and the server is in its node's network")
	case to.policies > 0 && !c.enforces:
		return fmt.Errorf("the cluster's network enforces no policy: a pod that none of its policies lets in was reached")
	case c.without[r] != "":
		return fmt.Errorf("%s", c.without[r])
	}
	for _, e := range []end{from, to} {
		p := c.pods[e]
		if p == nil {
			return fmt.Errorf("%s is not running", e.name())
		}
		if _, err := p.address(r.family); err != nil {
			return err
		}
	}
	return nil
}
