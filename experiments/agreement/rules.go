package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/cnibench/cnibench/experiments/kubelet"
	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed/lab"
)

// A node with a kubelet has rules that a node of the lab does not have, and every packet
// passes them. With them in the lab's nodes too, the networks alone can differ.

// nodeKind is what lab.PlaceInfo calls a node.
const nodeKind = "node"

// shareRules loads the rules of a cluster's node into the lab's nodes: all of them where
// the baseline is measured, and the kubelet's alone in the nodes of a network, which has
// its own already.
func shareRules(ctx context.Context, labs lab.Options, cluster string) error {
	all, err := lab.List(labs)
	if err != nil {
		return err
	}
	saved := ""
	for _, p := range nodes(all, func(l lab.Info) bool { return l.Kubernetes != nil && l.Kubernetes.Name == cluster }) {
		out, err := labs.Runner.Run(ctx, exec.Cmd{Argv: []string{"iptables-save"}, NetNS: netns.Named(p.Namespace).Path})
		if err != nil {
			return err
		}
		saved = string(out.Stdout)
	}
	if saved == "" {
		return fmt.Errorf("-rules %s: no cluster of this name was brought up: it must be one of a pair that -only leaves", cluster)
	}
	var errs []error
	for _, p := range nodes(all, func(l lab.Info) bool { return l.Kubernetes == nil }) {
		prefix := "" // any chain
		if p.Network != result.HostNetwork {
			prefix = kubelet.Prefix
		}
		_, err := labs.Runner.Run(ctx, exec.Cmd{
			Argv: []string{"iptables-restore", "--noflush"}, NetNS: netns.Named(p.Namespace).Path, Stdin: strings.NewReader(kubelet.Chains(saved, prefix)),
		})
		errs = append(errs, err)
		say("%s (%s) has the rules of %s", p.Namespace, p.Network, cluster)
	}
	return errors.Join(errs...)
}

// nodes are the nodes of the labs that are wanted.
func nodes(all []lab.Info, wanted func(lab.Info) bool) (out []lab.PlaceInfo) {
	for _, l := range all {
		if !wanted(l) {
			continue
		}
		for _, p := range l.Places {
			if p.Kind == nodeKind {
				out = append(out, p)
			}
		}
	}
	return out
}
