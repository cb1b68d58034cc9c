package main

import (
	"fmt"
	"io"
	"math"

	"github.com/cnibench/cnibench/internal/network/ladder"
	"github.com/cnibench/cnibench/internal/result"
)

// ladderTraffic is what the steps of ladders are counted of.
func ladderTraffic() traffic {
	return traffic{Workload: "udp_stream", Placement: result.InterHost}
}

// ladderPlan counts every network on the way up to some.
func ladderPlan(tops []string, samples, packets int) plan {
	p := plan{Samples: samples, Packets: packets}
	seen := map[string]bool{}
	add := func(name string) {
		if !seen[name] {
			seen[name] = true
			p.Settings = append(p.Settings, setting{Network: name, Traffic: []traffic{ladderTraffic()}})
		}
	}
	add(result.HostNetwork)
	for _, top := range tops {
		for _, r := range ladder.Of(top) {
			add(r.Network)
		}
	}
	return p
}

// step is what a network takes more than the one below it.
type step struct {
	ladder.Step
	more value
}

// ladder counts the steps up to a network, what they add up to, and the difference
// from the host.
func (c counted) ladder(top string) (steps []step, sum, direct value, err error) {
	count := func(name string) ([]float64, error) {
		return c.find(subject{Network: name}, ladderTraffic().Workload, ladderTraffic().Placement, 0)
	}
	var squares float64
	for _, r := range ladder.Of(top) {
		below, err := count(r.Below)
		if err != nil {
			return nil, sum, direct, err
		}
		above, err := count(r.Network)
		if err != nil {
			return nil, sum, direct, err
		}
		s := step{r, difference(below, above)}
		steps = append(steps, s)
		sum.mean += s.more.mean
		squares += s.more.half * s.more.half
	}
	sum.half = math.Sqrt(squares)
	host, err := count(result.HostNetwork)
	if err != nil {
		return nil, sum, direct, err
	}
	own, err := count(top)
	if err != nil {
		return nil, sum, direct, err
	}
	return steps, sum, difference(host, own), nil
}

// ladders writes docs/ladders.md, a table for each network.
func ladders(w io.Writer, got counted, tops []string) {
	fmt.Fprintf(w, "# Ladders in instructions\n\n`make bench-ladders` writes this page. It shows how many more instructions each step up from the host takes per packet of %s %s, at both ends together: "+
		"the count of a network minus the count of the network below it, which lacks one component (`ladders` in a campaign). "+
		"These are instructions under emulation, not times. [instructions.md](instructions.md) describes how they are counted. "+
		"That page comes from a separate run: compare counts within one page only. Kernel %s; intervals are of %.0f %%.\n",
		ladderTraffic().Workload, ladderTraffic().Placement, got.kernel, 100*confidence)
	for _, top := range tops {
		steps, sum, direct, err := got.ladder(top)
		if err != nil {
			fmt.Fprintf(w, "\n%s: %v\n", top, err)
			continue
		}
		fmt.Fprintf(w, "\n| %s | counted on | instructions more | share |\n|---|---|---:|---:|\n", top)
		for _, s := range steps {
			fmt.Fprintf(w, "| %s | %s | %s | %.1f %% |\n", s.Adds, s.Network, s.more, 100*s.more.mean/direct.mean)
		}
		fmt.Fprintf(w, "| all steps | | %s | %.1f %% |\n| directly | %s less host | %s | |\n", sum, 100*sum.mean/direct.mean, top, direct)
	}
}
