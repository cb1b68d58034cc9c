package paper

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/unit"
)

// Difference is one thing of the set-up, as published and as ours.
type Difference struct {
	What      string `json:"what"`
	Published string `json:"published"`
	Ours      string `json:"ours,omitempty"`
}

// Differences are what a study was measured on, with ours beside it.
func Differences(p Paper, r *Results) []Difference {
	var out []Difference
	for _, s := range p.Setup {
		parts := []string{r.ours(s.Of), s.InTheLab}
		parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
		out = append(out, Difference{s.What, s.Published, strings.Join(parts, "; ")})
	}
	return out
}

// ours is what the results say of a thing; "" where they do not.
func (r *Results) ours(of string) string {
	c := r.Campaign
	switch of {
	case "links":
		return strings.Join(c.Links, ", ")
	case "profiles":
		return strings.Join(c.Profiles, ", ")
	case "mtu":
		return strings.Trim(fmt.Sprint(c.MTU), "[]")
	case "networks":
		var names []string
		for _, n := range c.Networks {
			names = append(names, n.Name)
		}
		return strings.Join(names, ", ")
	case "sampling":
		return fmt.Sprintf("samples of %g s", c.Sampling.Seconds)
	case "blocks":
		return fmt.Sprintf("%d blocks in random order, with intervals", r.blocks())
	}
	return r.machine(of)
}

// machine is what the environment says of a thing.
func (r *Results) machine(of string) string {
	e := r.Environment
	if e == nil {
		return ""
	}
	switch of {
	case "kernel":
		return e.Host.Kernel
	case "operating_system":
		return e.Host.OS
	case "processor":
		return e.Host.CPUModel
	case "processors":
		return fmt.Sprintf("%d processors", e.Host.CPUs)
	case "memory":
		return unit.Value(float64(e.Host.MemoryBytes), "B")
	case "tools":
		var names []string
		for name, version := range e.Tools {
			if strings.HasPrefix(name, "cni/") {
				continue // it made the networks, and measured nothing
			}
			names = append(names, strings.TrimSpace(name+" "+version))
		}
		slices.Sort(names)
		return strings.Join(names, "; ")
	}
	return ""
}
