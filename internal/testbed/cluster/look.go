package cluster

import (
	"context"
	"fmt"
	"maps"

	"github.com/cnibench/cnibench/internal/answer"
	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/kubeclient"
	"github.com/cnibench/cnibench/internal/result"
)

// detected is what a cluster turned out to have.
type detected struct {
	facts   result.ClusterFacts
	network kubeclient.Network
}

// checkAccess says what the user may not do that a run needs, before anything is
// made.
func (c *cluster) checkAccess(ctx context.Context) error {
	return c.client.CheckRights(ctx, c.named.Namespace)
}

// look sees what the cluster has.
func (c *cluster) look(ctx context.Context) (campaign.Found, error) {
	c.found.network = c.client.Detect(ctx, c.seen())
	if want := c.named.Network; want != "" && c.found.network.Name != want {
		return campaign.Found{}, fmt.Errorf("it has the network %s, and the campaign says %s: use a cluster that has it, or correct network (and switch) in clusters", c.found.network.Name, want)
	}
	found := campaign.Found{Network: c.found.network.Name, MTU: c.linkMTU(), Enforces: c.enforces, Pairs: c.pairs}
	version, err := c.client.API.Discovery().ServerVersion()
	if err != nil {
		return found, c.client.Explain("ask for the version", err)
	}
	c.found.facts = result.ClusterFacts{
		Context: c.client.Context, Kubernetes: answer.Line(version.GitVersion), Nodes: map[string]result.NodeFacts{},
		Network: c.found.network.Name, NetworkVersion: answer.Line(c.found.network.Version), Mode: c.found.network.Mode.Words(), Undetermined: c.found.network.Undetermined,
	}
	c.found.facts.Namespace = c.named.Namespace
	for _, n := range c.nodes {
		info := n.Status.NodeInfo
		c.found.facts.Nodes[n.Name] = result.NodeFacts{
			OS: answer.Line(info.OSImage), Kernel: answer.Line(info.KernelVersion), Runtime: answer.Line(info.ContainerRuntimeVersion),
			Kubelet: answer.Line(info.KubeletVersion), Architecture: answer.Line(info.Architecture), CPUs: int(n.Status.Capacity.Cpu().Value()), MemoryBytes: n.Status.Capacity.Memory().Value(),
			Zone: zoneOf(n),
		}
		if info.KernelVersion == "" { // this user may not read nodes
			c.found.facts.Nodes[n.Name] = result.NodeFacts{Kernel: c.kernelOf(n.Name)}
		}
	}
	return found, nil
}

// kernelOf is that of a node, as an agent on it reports it; "" if none runs there.
func (c *cluster) kernelOf(node string) string {
	for _, p := range c.pods {
		if p.node == node && p.facts.Kernel != "" {
			return p.facts.Kernel
		}
	}
	return ""
}

// seen is what the agents report of the devices around them, inside pods and on
// nodes.
func (c *cluster) seen() kubeclient.Seen {
	var seen kubeclient.Seen
	for _, e := range c.wanted {
		p := c.pods[e]
		if p == nil {
			continue
		}
		devices := kubeclient.Devices{MTUs: p.facts.MTUs, Drivers: p.facts.Drivers, Routes: p.facts.Routes}
		if e.host {
			seen.Node = devices
		} else {
			seen.Pod = devices
		}
	}
	return seen
}

// linkMTU is the MTU of the nodes' device, or, where no pod is in its node's
// network, that of the pods; bytes.
func (c *cluster) linkMTU() int {
	for _, host := range []bool{true, false} {
		for _, e := range c.wanted {
			if p := c.pods[e]; p != nil && e.host == host {
				if mtu := max(p.mtu("ipv4"), p.mtu("ipv6")); mtu > 0 {
					return mtu
				}
			}
		}
	}
	return 0
}

// Environment describes the clusters. What cannot be asked now has its last known
// values.
func (b *Testbed) Environment(ctx context.Context) (result.Environment, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.all(ctx); err != nil {
		return result.Environment{}, err
	}
	env := result.Environment{Schema: result.Schema, Testbed: campaign.Kubernetes, Places: map[string]result.PlaceFacts{},
		Networks: map[string]result.NetworkFacts{}, Clusters: map[string]result.ClusterFacts{}}
	maps.Copy(env.Places, b.switching.past)
	for _, c := range b.clusters {
		if b.switched() {
			env.OneAfterAnother = append(env.OneAfterAnother, c.name)
		}
		if c.found.facts.Kubernetes == "" {
			continue // nothing was created in it yet
		}
		env.Clusters[nameOr(c.name, campaign.TheCluster)] = c.found.facts
		if env.Host.Kernel == "" && len(c.nodes) > 0 {
			n := c.found.facts.Nodes[c.nodes[0].Name]
			env.Host = result.Host{Kernel: n.Kernel, OS: n.OS, CPUs: n.CPUs, MemoryBytes: n.MemoryBytes}
		}
		for name := range c.networks {
			env.Networks[name] = result.NetworkFacts{Kind: result.KindReal}
			if name == c.found.network.Name {
				env.Networks[name] = result.NetworkFacts{Kind: result.KindReal, Encapsulation: c.found.network.Mode.Encapsulation}
			}
		}
		maps.Copy(env.Places, c.places(ctx))
	}
	return env, nil
}

// places are the facts of all running pods, read again.
func (c *cluster) places(ctx context.Context) map[string]result.PlaceFacts {
	out := map[string]result.PlaceFacts{}
	for _, p := range c.pods {
		p.ask(ctx)
		out[c.placeName(p)] = result.PlaceFacts{Node: p.node, Kernel: p.facts.Kernel, MTUs: p.facts.MTUs, Sysctls: p.facts.Sysctls, Offloads: p.facts.Offloads,
			Drivers: p.facts.Drivers, Routes: p.facts.Routes, Limits: p.limits, PodStart: p.start}
	}
	return out
}

// ask reads the facts of a place again, where its agent lives.
func (p *agentPod) ask(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	if p.agent == nil {
		return
	}
	if now, err := p.agent.Facts(ctx); err == nil {
		p.facts = now
	}
}

func nameOr(name, otherwise string) string {
	if name == "" {
		return otherwise
	}
	return name
}
