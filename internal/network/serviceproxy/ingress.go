package serviceproxy

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/dataplane"
	"github.com/cnibench/cnibench/internal/result"
)

// Ingress is an ingress controller's proxy: HTTP from outside the cluster ends on a node and
// goes on to the pod as another connection.
func Ingress() network.ServiceProxy {
	return network.ServiceProxy{
		Name:    "ingress",
		Summary: "an ingress by HAProxy: each node takes HTTP at the service's NodePort and asks the pod on a connection of its own",
		Model: "HAProxy Kubernetes Ingress Controller (haproxytech/kubernetes-ingress) on the nodes' network (hostNetwork): its haproxy.cfg " +
			"(timeouts) and its backends (mode http, balance roundrobin, forwardfor), by HAProxy itself",
		LeavesOut: "the controller, TLS, rules for hosts and paths, health checks, access logs, a ConfigMap of TCP services, IPv6",
		Datapath:  dataplane.HAProxyVersion,
		Needs:     []netns.Feature{dataplane.HAProxyTool()},
		Refuses:   ingressRefuses,
		Sync: func(ctx context.Context, self network.Node, services []network.Service) error {
			return ingressProxy(self).Start(ctx, self.NS, ingressConfig(self, services))
		},
		Update: func(ctx context.Context, self network.Node, services []network.Service, _ int) error {
			return ingressProxy(self).Start(ctx, self.NS, ingressConfig(self, services))
		},
		Place: func(self network.Node, cpus []int) error {
			return dataplane.PlaceHAProxies(ingressProxy(self).Dir, cpus)
		},
		Requests: func(ctx context.Context, self network.Node) (uint64, error) {
			return ingressProxy(self).Requests(ctx)
		},
	}
}

func ingressProxy(self network.Node) dataplane.HAProxy {
	return dataplane.HAProxy{Dir: filepath.Join(self.DataDir, "ingress"), Name: "ingress"}
}

// ingressRefuses says why the traffic of a cell cannot pass an ingress.
func ingressRefuses(n network.Network, c result.Cell) string {
	switch {
	case c.Workload != "http":
		return "it takes HTTP alone: measure the workload http"
	case c.Path != result.PathPodToNodePort:
		return "it is asked at the address of a node: measure a path to a node-port"
	case c.Services > 1:
		return "its HAProxy has no rules that choose between services: measure services: [1]"
	case c.Encryption != "":
		return "it is outside the pods' network, and what a client sends to it is not encrypted by that"
	case n.NoHostPaths != "":
		return "it is on a node, and " + n.NoHostPaths
	}
	return ""
}

// ingressGlobal is what every ingress has, with its socket: the controller's timeouts.
const ingressGlobal = `global
    uid 65534
    gid 65534
    %s
defaults
    mode http
    timeout http-request 5s
    timeout connect 5s
    timeout client 50s
    timeout queue 5s
    timeout server 50s
    timeout tunnel 1h
    timeout http-keep-alive 1m
`

// ingressConfig is the configuration of a node's HAProxy: a frontend and a backend for each
// NodePort by TCP.
func ingressConfig(self network.Node, services []network.Service) string {
	var b strings.Builder
	fmt.Fprintf(&b, ingressGlobal, ingressProxy(self).Socket())
	for _, s := range services {
		if s.NodePort == 0 || s.Protocol != "tcp" {
			continue
		}
		fmt.Fprintf(&b, "frontend port-%[1]d\n    bind %[2]s:%[1]d\n    default_backend pods-%[1]d\n", s.NodePort, self.Address.Addr())
		fmt.Fprintf(&b, "backend pods-%d\n    balance roundrobin\n    option forwardfor\n    no option abortonclose\n", s.NodePort)
		for i, e := range s.Endpoints {
			fmt.Fprintf(&b, "    server SRV_%d %s\n", i+1, e)
		}
	}
	return b.String()
}
