package doctor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/netns"
)

const kernelArea = "kernel"

// labFeatures are the kernel features that every lab is built of.
func labFeatures() []string { return []string{"veth", "bridge"} }

// kernel tries each feature; have is the outcome, by name.
func (o Options) kernel() (checks []Check, have map[string]error) {
	checks, have = []Check{o.release()}, map[string]error{}
	for _, f := range o.allFeatures() {
		err := f.Probe()
		have[f.Name] = err
		c := Check{Area: kernelArea, Name: f.Name, Status: OK, Detail: f.Doc, Required: slices.Contains(labFeatures(), f.Name)}
		c.NeededFor = strings.Join(o.networksThatNeed(f.Name), ", ")
		if c.Required {
			c.NeededFor = "every lab"
		}
		var missing *netns.MissingError
		switch {
		case errors.As(err, &missing):
			c.Status, c.Detail, c.Cure = Missing, fmt.Sprintf("%s (%v)", f.Doc, missing.Err), f.Cure
		case lacks(err):
			c.Status, c.Detail, c.Cure = Missing, fmt.Sprintf("%s (%v)", f.Doc, err), f.Cure
		case err != nil:
			c.Status, c.Detail = Limited, "unknown: "+err.Error()
		}
		checks = append(checks, c)
	}
	return append(checks, o.btf(), o.cgroups()), have
}

// lacks distinguishes a missing feature from one that may not be tried
// without root.
func lacks(err error) bool { return err != nil && !errors.Is(err, unix.EPERM) }

// allFeatures are the known ones and those that networks alone name.
func (o Options) allFeatures() []netns.Feature {
	all := slices.Clone(o.Features)
	for _, n := range o.Networks {
		for _, f := range slices.Concat(n.Needs, n.Wants) {
			if !slices.ContainsFunc(all, func(have netns.Feature) bool { return have.Name == f.Name }) {
				all = append(all, f)
			}
		}
	}
	return all
}

func (o Options) networksThatNeed(feature string) []string {
	var names []string
	for _, n := range o.Networks {
		named := func(f netns.Feature) bool { return f.Name == feature }
		switch {
		case slices.ContainsFunc(n.Needs, named):
			names = append(names, n.Name)
		case slices.ContainsFunc(n.Wants, named):
			names = append(names, n.Name+" (runs without it, not as documented)")
		}
	}
	return names
}

func (o Options) release() Check {
	c := Check{Area: kernelArea, Name: "Linux"}
	text, err := os.ReadFile(filepath.Join(o.Proc, "sys/kernel/osrelease"))
	if err != nil {
		c.Status, c.Detail = Limited, "release unknown: "+err.Error()
		return c
	}
	c.Status, c.Detail = OK, strings.TrimSpace(string(text))
	return c
}

func (o Options) btf() Check {
	c := Check{Area: kernelArea, Name: "BTF", Status: OK, NeededFor: "eBPF networks and probes"}
	file := filepath.Join(o.Sys, "kernel/btf/vmlinux")
	info, err := os.Stat(file)
	if err != nil {
		c.Status, c.Detail, c.Cure = Missing, err.Error(), "a kernel with CONFIG_DEBUG_INFO_BTF=y"
		return c
	}
	c.Detail = fmt.Sprintf("%s, %d bytes", file, info.Size())
	return c
}

// cgroups reports which hierarchy is mounted, as systemd names them: unified (v2
// at the root), hybrid (v1 controllers, and v2), legacy (v1).
func (o Options) cgroups() Check {
	c := Check{Area: kernelArea, Name: "cgroups", Status: OK, NeededFor: "Kubernetes in the lab; CPU by container"}
	base := filepath.Join(o.Sys, "fs/cgroup")
	switch {
	case exists(filepath.Join(base, "cgroup.controllers")):
		c.Detail = "v2"
	case exists(filepath.Join(base, "unified/cgroup.controllers")):
		c.Detail = "hybrid: v1 controllers, and v2"
	case exists(filepath.Join(base, "cpuacct")):
		c.Detail = "v1"
	default:
		c.Status, c.Detail = Missing, "none mounted at "+base
		c.Cure = "mount -t cgroup2 cgroup2 " + base
	}
	return c
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
