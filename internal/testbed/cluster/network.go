package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cnibench/cnibench/internal/probe"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed"
	"github.com/cnibench/cnibench/internal/unit"
)

var _ testbed.NodeReader = (*Testbed)(nil)

// WatchNodes reads the memory of the network's own agents on the nodes of both ends, once the
// traffic is over. They are seen where this machine runs them: in a lab's Kubernetes.
func (b *Testbed) WatchNodes(_ context.Context, cell result.Cell, without []string) func(context.Context) testbed.NodeReadings {
	c, err := b.find(cell.Cluster)
	return func(context.Context) (r testbed.NodeReadings) {
		if !slices.Contains(without, probe.NetfilterName) {
			r.Absent = append(r.Absent, "probe "+probe.NetfilterName+": this testbed does not read its nodes' rules: measure in the lab")
		}
		if err != nil || slices.Contains(without, probe.MemoryName) {
			return r
		}
		from, to := c.endsOf(cell)
		if c.agents(from.node) == nil || c.agents(to.node) == nil {
			r.Absent = append(r.Absent, "probe "+probe.MemoryName+": the agents of this cluster's network do not run on this machine: kubectl top pod -A has their memory, if the cluster has a metrics-server")
			return r
		}
		if cell.IsBaseline() {
			return r // they run, and do nothing for it
		}
		var doubts [2]string
		r.Client, doubts[0] = c.agentsMemory(from.node)
		r.Server, doubts[1] = c.agentsMemory(to.node)
		for _, doubt := range slices.Compact(doubts[:]) {
			if doubt != "" {
				r.Doubts = append(r.Doubts, doubt)
			}
		}
		return r
	}
}

// agents are the processes of the network's own agents on a node; nil where they are not seen. A
// network without agents has none, which is not nil.
func (c *cluster) agents(node int) []int {
	if c.options.Agents == nil || node > len(c.nodes) {
		return nil
	}
	return c.options.Agents(c.name, c.nodes[node-1].Name)
}

// agentsMemory is what the agents on a node hold.
func (c *cluster) agentsMemory(node int) (values map[string]float64, doubt string) {
	began := time.Now()
	pids := c.agents(node)
	values = map[string]float64{unit.NetworkProcesses: float64(len(pids))}
	switch held, err := residentOf(pids); {
	case errors.Is(err, probe.ErrAbsent):
	case err != nil:
		doubt = fmt.Sprintf("probe %s: %s: %v", probe.MemoryName, c.nodes[node-1].Name, err)
	default:
		values[unit.NetworkResidentBytes] = held
	}
	values[unit.MemoryReadSeconds] = time.Since(began).Seconds()
	return values, doubt
}

// residentOf is the resident memory of processes of this machine, bytes.
func residentOf(pids []int) (float64, error) {
	return probe.Memory{Proc: "/proc", Sys: "/sys"}.Resident(pids)
}
