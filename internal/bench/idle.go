package bench

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/probe"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed"
	"github.com/cnibench/cnibench/internal/workload"
)

// DefaultIdleWindow is Options.IdleWindow: what a machine does on its own is no
// cost of a network. It is short, since the readings of all blocks are taken
// together.
const DefaultIdleWindow = 300 * time.Millisecond

// idles are the readings of one block, by machine.
type idles struct {
	block    int
	readings map[string]agent.IdleResult
}

// machine names what probes of a place are of: its kernel, or, where that is
// not known, its node.
func machine(p testbed.Place) string {
	if id := p.Agent.Machine(); id != "" {
		return id
	}
	return "node " + p.Node
}

// idle reads the machines of both ends unless this block has them already.
func (r *run) idle(ctx context.Context, block int, ends testbed.Ends) {
	if r.idles.block != block || r.idles.readings == nil {
		r.idles = idles{block: block, readings: map[string]agent.IdleResult{}}
	}
	type answer struct {
		machine string
		idle    agent.IdleResult
	}
	window := cmp.Or(r.IdleWindow, DefaultIdleWindow)
	answers, asked := make(chan answer, 2), map[string]bool{}
	for _, p := range []testbed.Place{ends.Client, ends.Server} {
		id := machine(p)
		if _, known := r.idles.readings[id]; known || asked[id] {
			continue
		}
		asked[id] = true
		go func() {
			ctx, cancel := context.WithTimeout(ctx, window+patience)
			defer cancel()
			a := answer{machine: id}
			if err := p.Agent.Call(ctx, agent.MethodIdle, agent.IdleParams{Window: window, WithoutProbes: r.WithoutProbes}, &a.idle); err != nil {
				a.idle = agent.IdleResult{Doubts: []string{err.Error()}}
			}
			answers <- a
		}()
	}
	for range asked {
		a := <-answers
		r.idles.readings[a.machine] = a.idle
		for _, why := range a.idle.Absent {
			r.missing(why)
		}
	}
}

// probes records what was read at both ends and while nothing was measured,
// each as it was read, and on which machines.
func (r *run) probes(s *result.Sample, ends testbed.Ends, client, server workload.Output) {
	for _, end := range []struct {
		name   string
		place  testbed.Place
		probes map[string]float64
	}{{result.ClientNode, ends.Client, client.Probes}, {result.ServerNode, ends.Server, server.Probes}} {
		if len(end.probes) == 0 {
			continue
		}
		if s.Probes == nil {
			s.Probes, s.Machines = map[string]map[string]float64{}, map[string]string{}
		}
		s.Probes[end.name], s.Machines[end.name] = end.probes, machine(end.place)
		idle := r.idles.readings[machine(end.place)]
		if len(idle.Probes) > 0 {
			s.Probes[end.name+result.IdleSuffix] = maps.Clone(idle.Probes)
		}
		for _, d := range idle.Doubts {
			if text := fmt.Sprintf("while idle: %s", d); !slices.Contains(s.Warnings, text) {
				s.Warnings = append(s.Warnings, text)
			}
		}
	}
}

// withoutTwice leaves those probes out at the client that would count the same
// machine a second time, and take a second set of its few counters for that.
func (r *run) withoutTwice(ends testbed.Ends) []string {
	if machine(ends.Client) == machine(ends.Server) {
		return append(probe.Names(probe.IsExclusive), r.WithoutProbes...)
	}
	return r.WithoutProbes
}
