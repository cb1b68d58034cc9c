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

// speedPatience is how long a machine may take to time its loop. It is short, because a
// stopped end has to fail its sample within seconds.
const speedPatience = time.Second

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
	r.idles.of(block)
	for _, reading := range r.readIdle(ctx, r.idles.readings, ends, cmp.Or(r.IdleWindow, DefaultIdleWindow), r.WithoutProbes) {
		for _, why := range reading.Absent {
			r.missing(why)
		}
	}
}

// of makes the readings those of a block.
func (i *idles) of(block int) {
	if i.block != block || i.readings == nil {
		*i = idles{block: block, readings: map[string]agent.IdleResult{}}
	}
}

// speeds times the loop of probe.Loop on the machines of sliced samples, in a block that has
// no idle window for them: it takes some milliseconds, and shows a machine that changes its
// speed between blocks. A machine that does not answer has no speed in this block.
func (r *run) speeds(ctx context.Context, block int, tries []*slicedTry) {
	if r.noProbes() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, speedPatience)
	defer cancel()
	r.loops.of(block)
	for _, t := range tries {
		if t.err == nil {
			r.readIdle(ctx, r.loops.readings, t.ends, time.Millisecond, probe.Names())
		}
	}
}

// noteSpeed records how long the loop took on the machines of a sample, unless an idle window
// has that.
func (r *run) noteSpeed(s *result.Sample, ends testbed.Ends) {
	for _, end := range []struct {
		name  string
		place testbed.Place
	}{{result.ClientNode, ends.Client}, {result.ServerNode, ends.Server}} {
		if end.place.Agent == nil || s.Probes[end.name+result.IdleSuffix] != nil {
			continue
		}
		seconds, known := r.loops.readings[machine(end.place)].Probes[probe.LoopSeconds]
		if !known {
			continue
		}
		if s.Probes == nil {
			s.Probes, s.Machines = map[string]map[string]float64{}, map[string]string{}
		}
		s.Probes[end.name+result.IdleSuffix] = map[string]float64{probe.LoopSeconds: seconds}
		s.Machines[end.name] = machine(end.place)
	}
}

// readIdle reads the machines of both ends that are not known yet, at the same time, and gives
// what it read.
func (r *run) readIdle(ctx context.Context, known map[string]agent.IdleResult, ends testbed.Ends, window time.Duration, without []string) []agent.IdleResult {
	type answer struct {
		machine string
		idle    agent.IdleResult
	}
	answers, asked := make(chan answer, 2), map[string]bool{}
	for _, p := range []testbed.Place{ends.Client, ends.Server} {
		if p.Agent == nil {
			continue
		}
		id := machine(p)
		if _, has := known[id]; has || asked[id] {
			continue
		}
		asked[id] = true
		go func() {
			ctx, cancel := context.WithTimeout(ctx, window+patience)
			defer cancel()
			a := answer{machine: id}
			if err := p.Agent.Call(ctx, agent.MethodIdle, agent.IdleParams{Window: window, WithoutProbes: without}, &a.idle); err != nil {
				a.idle = agent.IdleResult{Doubts: []string{err.Error()}}
			}
			answers <- a
		}()
	}
	var read []agent.IdleResult
	for range asked {
		a := <-answers
		known[a.machine] = a.idle
		read = append(read, a.idle)
	}
	return read
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
