package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/scratch"
)

// likeness is a real network and what is compared with it.
type likeness struct{ real, other subject }

// inLab are the real networks that run in the lab itself, with their models or with the
// networks that use the same devices.
func inLab() []likeness {
	net := func(name string) subject { return subject{Network: name} }
	return []likeness{
		{net("docker/bridge-real"), net("docker/bridge")},
		{net("docker/overlay-real"), net("docker/overlay")},
		{net("docker/macvlan"), net("macvlan")},
		{net("podman/macvlan"), net("macvlan")},
		{net("podman/bridge"), net("bridge")},
	}
}

// onOneMachine are networks without a path between nodes.
func onOneMachine() []string { return []string{"docker/bridge-real", "docker/bridge", "podman/bridge"} }

// byAgents are the networks whose own agents run in a lab's Kubernetes.
func byAgents() []agents {
	return []agents{
		{CNI: "bridge", Models: []string{"bridge"}},
		{CNI: "flannel/vxlan", Models: []string{"flannel/vxlan"}},
		{CNI: "flannel/host-gw", Models: []string{"flannel/host-gw"}},
		{CNI: "flannel/ipip", Models: []string{"flannel/ipip"}},
		{CNI: "flannel/wireguard", Models: []string{"flannel/wireguard"}},
		{CNI: "cilium/native", Models: []string{"cilium/native-policy", "cilium/native"}},
		{CNI: "cilium/vxlan", Models: []string{"cilium/vxlan-policy", "cilium/vxlan"}},
		{CNI: "cilium/geneve", Models: []string{"cilium/geneve"}},
		{CNI: "cilium/native+netkit", Models: []string{"cilium/native+netkit"}, Backports: true},
	}
}

// likenesses are all that are counted.
func likenesses(p plan) []likeness {
	var all []likeness
	counted := func(name string) bool {
		return slices.ContainsFunc(p.Settings, func(s setting) bool { return s.Network == name })
	}
	for _, l := range inLab() {
		if counted(l.real.Network) && counted(l.other.Network) {
			all = append(all, l)
		}
	}
	for _, a := range p.Agents {
		for _, model := range a.Models {
			for _, nodes := range []string{withKubelet, ""} {
				all = append(all, likeness{subject{Network: a.CNI, Nodes: onKubernetes}, subject{Network: model, Nodes: nodes}})
			}
		}
	}
	return all
}

// realPlan counts every real network whose name has one of the words, and what it is
// compared with. program is a static cnibench. With backports it counts those that need the
// kernel of Debian's backports, and no others.
func realPlan(words []string, program string, backports bool, samples, packets int) plan {
	asked := func(name string) bool {
		return len(words) == 0 || slices.ContainsFunc(words, func(w string) bool { return strings.Contains(name, w) })
	}
	p := plan{Samples: samples, Packets: packets, Backports: backports}
	seen := map[string]bool{}
	for _, l := range inLab() {
		for _, name := range []string{l.real.Network, l.other.Network} {
			if backports || !asked(l.real.Network) || seen[name] {
				continue
			}
			seen[name] = true
			s := setting{Network: name}
			for _, t := range columns() {
				if t.Placement == result.IntraHost || !slices.Contains(onOneMachine(), name) {
					s.Traffic = append(s.Traffic, t)
				}
			}
			p.Settings = append(p.Settings, s)
		}
	}
	for _, a := range byAgents() {
		if asked(a.CNI) && a.Backports == backports {
			a.Program = program
			p.Agents = append(p.Agents, a)
		}
	}
	return p
}

// runReal counts real networks and writes the table of docs/real.md.
func runReal(ctx context.Context, to string, words []string, backports bool, samples, packets int) (err error) {
	r := exec.NewRunner()
	defer r.Close()
	dir, remove, err := scratch.Fresh("cnb-instructions-*")
	if err != nil {
		return err
	}
	defer func() { _ = remove() }() // what stays, the next run removes
	program := filepath.Join(dir, "cnibench")
	if err := buildProgram(ctx, r, program); err != nil {
		return err
	}
	return runPart(ctx, to, realPlan(words, program, backports, samples, packets), realReport)
}

// buildProgram builds a static cnibench.
func buildProgram(ctx context.Context, r *exec.Runner, to string) error {
	_, err := r.Run(ctx, exec.Cmd{Argv: []string{"env", "CGO_ENABLED=0", "go", "build", "-o", to, "github.com/cnibench/cnibench"}})
	return err
}

// realReport writes what each real network takes, and its ratio to what it is compared with.
func realReport(w io.Writer, got counted, p plan) {
	fmt.Fprintf(w, "Kernel %s; %d samples of %d packets or transactions each; intervals are of %.0f %%.\n\n| real network | compared with |", got.kernel, p.Samples, p.Packets, 100*confidence)
	for _, t := range columns() {
		fmt.Fprintf(w, " %s %s |", t.Workload, t.Placement)
	}
	fmt.Fprint(w, "\n| --- | --- |"+strings.Repeat(" ---: |", len(columns()))+"\n")
	for _, l := range likenesses(p) {
		var cells []string
		for _, t := range columns() {
			cells = append(cells, got.ratio(l, t))
		}
		fmt.Fprintf(w, "| %s | %s | %s |\n", l.real, l.other, strings.Join(cells, " | "))
	}
	for _, c := range got.counts {
		if c.Failed != "" {
			fmt.Fprintf(w, "\nNot counted: %s\n", c)
		}
	}
}

// ratio is what a real network takes by what the other takes, as text.
func (c counted) ratio(l likeness, t traffic) string {
	logs := func(s subject) ([]float64, error) {
		xs, err := c.find(s, t.Workload, t.Placement, 0)
		for i := range xs {
			xs[i] = math.Log(xs[i])
		}
		return xs, err
	}
	other, err1 := logs(l.other)
	real, err2 := logs(l.real)
	if err1 != nil || err2 != nil {
		return "–"
	}
	d := difference(other, real)
	return fmt.Sprintf("%.3f [%.3f, %.3f]", math.Exp(d.mean), math.Exp(d.mean-d.half), math.Exp(d.mean+d.half))
}
