// Package doctor reports what can be measured on this machine, what is missing,
// and the command that fixes it. It only looks: nothing is changed.
package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/cni"
	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/catalog"
	"github.com/cnibench/cnibench/internal/probe"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/workload"
)

// Status is how a check came out.
type Status string

// What a check can find.
const (
	OK      Status = "ok"
	Missing Status = "missing"
	// Limited exists, but what it measures or carries is worth less.
	Limited Status = "limited"
)

// Check is one thing that this machine has or lacks.
type Check struct {
	Area   string `json:"area"`
	Name   string `json:"name"`
	Status Status `json:"status"`
	// Detail is what was read: a value, a version, an error.
	Detail string `json:"detail"`
	// NeededFor says what goes without it.
	NeededFor string `json:"needed_for,omitempty"`
	// Cure is the command or setting that fixes it, as it can be pasted.
	Cure string `json:"cure,omitempty"`
	// Required: without it no lab can run here.
	Required bool `json:"required,omitempty"`
}

// Options is the machine to look at. What is left empty is this machine's own;
// a test puts folders and lists in its place.
type Options struct {
	Proc, Sys, Run string   // "/proc", "/sys", "/run"
	Out            string   // where results will be written, "results"; need not be there yet
	PluginDirs     []string // where CNI plugins are looked for, in this order
	Features       []netns.Feature
	Networks       []network.Network
	Workloads      []workload.Spec
	Profiles       []profile.Profile
	// TryProfile reports which settings of a profile take effect in a lab's namespace.
	TryProfile func(profile.Profile) ([]result.Setting, error)
	// Count counts a hardware event over a short loop.
	Count func(Event) (uint64, error)
	// Stacks samples the kernel's stacks for a moment, and says by what event.
	Stacks func() (event string, err error)
	// FirstEdge reads a probe, and gives how long its first edge took.
	FirstEdge func(probe string) (time.Duration, error)
	// Loops times the same piece of arithmetic many times within a second, seconds.
	Loops func() []float64
	// FreeBytes is what can still be written to the disk under a folder.
	FreeBytes func(dir string) (float64, error)
}

func (o Options) filled() Options {
	o.Proc, o.Sys, o.Run = cmp.Or(o.Proc, "/proc"), cmp.Or(o.Sys, "/sys"), cmp.Or(o.Run, "/run")
	o.Out = cmp.Or(o.Out, "results")
	if o.PluginDirs == nil {
		o.PluginDirs = cni.SearchPath("")
	}
	if o.Features == nil {
		o.Features = netns.Features()
	}
	if o.Networks == nil {
		o.Networks = catalog.List()
	}
	if o.Workloads == nil {
		for _, w := range workload.List() {
			o.Workloads = append(o.Workloads, w.Spec())
		}
	}
	if o.Profiles == nil {
		o.Profiles, _ = profile.List() // its files are in the program; its own test reads them
	}
	if o.TryProfile == nil {
		o.TryProfile = tryProfile
	}
	if o.Count == nil {
		o.Count = count
	}
	if o.Stacks == nil {
		o.Stacks = sampleStacks
	}
	if o.FirstEdge == nil {
		o.FirstEdge = func(name string) (time.Duration, error) {
			return firstEdge(probe.Roots{Proc: o.Proc, Sys: o.Sys}, name)
		}
	}
	if o.Loops == nil {
		o.Loops = timeLoops
	}
	if o.FreeBytes == nil {
		o.FreeBytes = freeBytes
	}
	return o
}

// Run makes every check, area by area.
func Run(ctx context.Context, o Options) []Check {
	o = o.filled()
	runner := exec.NewRunner()
	defer runner.Close()
	checks := o.privileges()
	kernel, have := o.kernel()
	checks = append(checks, kernel...)
	checks = append(checks, o.plugins(ctx, runner, have)...)
	checks = append(checks, o.tools(ctx, runner)...)
	checks = append(checks, o.profiles()...)
	checks = append(checks, o.counters()...)
	checks = append(checks, o.stacks())
	checks = append(checks, o.edges()...)
	checks = append(checks, o.machine()...)
	return append(checks, o.networks(checks))
}

// networks counts the pod networks that the lab can build on this machine: those
// that no missing check is needed for.
func (o Options) networks(checks []Check) Check {
	lacking := map[string]bool{}
	for _, c := range checks {
		if c.Status != Missing {
			continue
		}
		for name := range strings.SplitSeq(c.NeededFor, ", ") {
			lacking[name] = true
		}
	}
	all, can := 0, 0
	for _, n := range o.Networks {
		if result.IsLadderOnly(n.Name) || n.Name == result.HostNetwork {
			continue
		}
		all++
		if !lacking[n.Name] {
			can++
		}
	}
	c := Check{Area: labArea, Name: "networks", Status: OK, Detail: fmt.Sprintf("%d of %d can be built on this machine", can, all), NeededFor: "campaigns that name them"}
	if can < all {
		c.Status, c.Cure = Limited, "cnibench list networks"
	}
	return c
}

const labArea = "lab"

// CanRunLab is nil if the quickstart can run; otherwise it names each required
// thing that is missing, with its cure.
func CanRunLab(checks []Check) error {
	var errs []error
	for _, c := range checks {
		if !c.Required || c.Status != Missing {
			continue
		}
		text := fmt.Sprintf("%s is missing: %s", c.Name, c.Detail)
		if c.Cure != "" {
			text += " (" + c.Cure + ")"
		}
		errs = append(errs, errors.New(text))
	}
	return errors.Join(errs...)
}
