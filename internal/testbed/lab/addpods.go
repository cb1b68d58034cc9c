package lab

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cnibench/cnibench/internal/cni"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed"
)

var _ testbed.PodAdder = (*Lab)(nil)

// answerPort is one that no program of a lab serves and that the policy of the
// networks with policy allows.
const answerPort = 9009

// answerTimeout bounds the wait for a pod's first answer.
const answerTimeout = 20 * time.Second

// newcomer is a pod that is added while the lab is in use.
type newcomer struct {
	pod
	times result.PodTimes
	// heard ends the listening to its namespace; nil where that did not begin.
	heard func() (netns.Arrival, error)
}

// AddPods adds the cell's number of pods to node 1 at once, announces them to the
// network's agent, waits until each has answered the pod at the other end of the
// cell, and removes them again.
func (l *Lab) AddPods(ctx context.Context, cell result.Cell) (set result.PodSetUp, err error) {
	c, ok := l.clusters[keyOf(cell)]
	if !ok || l.held == nil {
		return set, fmt.Errorf("the lab was not built for network %s", cell.Network)
	}
	_, to, err := sites(cell, c.network.HostNetwork)
	if err != nil {
		return set, err
	}
	if free := maxPodsPerNode - len(c.pods[0]); cell.Pods > free {
		return set, fmt.Errorf("%d pods more on a node: %d can be", cell.Pods, free)
	}
	news := make([]*newcomer, max(1, cell.Pods))
	for i := range news {
		news[i] = &newcomer{pod: pod{ns: l.state.Pod(c.index, 1, len(c.pods[0])+1+i)}}
	}
	rt := cniRuntime(l.options.Runner, l.state, filepath.Join(l.options.store().Dir, l.state.ID))
	defer func() {
		// What was begun is undone even if the caller was cancelled.
		down, cancel := context.WithTimeout(context.WithoutCancel(ctx), downTimeout)
		defer cancel()
		err = errors.Join(err, c.removePods(down, rt, news))
		for _, n := range news {
			set.Pods = append(set.Pods, n.times)
		}
	}()
	if err := c.moveCarriers(1, nil); err != nil { // dockerd and its like: a sample may have had them
		return set, err
	}
	if err := c.newPods(ctx, news); err != nil {
		return set, err
	}
	add := func() error { return c.addPods(ctx, rt, news, c.ns(to)) }
	if len(news) < leastPodsWeighed {
		return set, add()
	}
	set.KernelBytes, set.ProcessBytes, err = c.moreMemory(ctx, add)
	if errors.Is(err, errRestless) {
		set.Doubts, err = []string{err.Error()}, nil
	}
	return set, err
}

// ran keeps how long plugins took.
func (n *newcomer) ran(times []cni.Timing) {
	for _, t := range times {
		n.times.Plugins = append(n.times.Plugins, result.PluginTime{Plugin: t.Plugin, Verb: t.Verb, Took: t.Took})
	}
}

// newPods makes the namespaces, which is no part of what is timed: a runtime has
// them before it calls a plugin.
func (c *cluster) newPods(ctx context.Context, news []*newcomer) error {
	g := new(errgroup.Group)
	g.SetLimit(parallel())
	for _, n := range news {
		g.Go(makeNamespace(ctx, n.ns, podSettings()))
	}
	return g.Wait()
}

// addPods runs all ADDs at once, and waits for the answers.
func (c *cluster) addPods(ctx context.Context, rt *cni.Runtime, news []*newcomer, from netns.NS) error {
	begin := make(chan struct{})
	var began time.Time
	since := func(t time.Time) *time.Duration {
		if t.IsZero() {
			return nil
		}
		d := t.Sub(began)
		return &d
	}
	allocated, err := watchAddresses(c.nodes[0].DataDir)
	if err != nil {
		return err
	}
	g, gctx := errgroup.WithContext(ctx)
	var ready sync.WaitGroup
	for _, n := range news {
		ready.Add(1)
		g.Go(func() error {
			var err error
			n.heard, err = netns.Listen(n.ns, device)
			ready.Done()
			if err != nil {
				return err
			}
			<-begin
			if err := c.addPod(gctx, rt, n, since); err != nil || c.network.PodsAdded != nil {
				return err // or it answers only once the agent is through
			}
			return n.answer(gctx, from, since)
		})
	}
	ready.Wait()
	began = time.Now()
	close(begin)
	err = g.Wait()
	if err == nil {
		err = c.waitForPods(ctx, news, from, since)
	}
	reserved, watchErr := allocated.stop()
	err = errors.Join(err, watchErr)
	// Only now: to end it takes longer than what is timed.
	for _, n := range news {
		if n.heard == nil {
			continue
		}
		seen, heardErr := n.heard()
		err = errors.Join(err, heardErr)
		n.times.Device, n.times.Address, n.times.Route = since(seen.Device), since(seen.Address), since(seen.Route)
		n.times.Allocated = since(reserved[n.address.String()])
	}
	return err
}

// addPod runs one ADD.
func (c *cluster) addPod(ctx context.Context, rt *cni.Runtime, n *newcomer, since func(time.Time) *time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, attachTimeout)
	defer cancel()
	got, err := rt.Add(ctx, attachment(c.conflists[0], n.ns, c.nodes[0].NS))
	n.times.Added = since(time.Now())
	n.ran(got.Times)
	if err != nil {
		return fmt.Errorf("network %s: %w", c.spec.Network, err)
	}
	v4 := slices.IndexFunc(got.Addresses, netip.Addr.Is4)
	if v4 < 0 {
		return fmt.Errorf("network %s gave %s no IPv4 address", c.spec.Network, n.ns.Name)
	}
	n.address = got.Addresses[v4]
	return nil
}

// waitForPods lets the network's agent know of the pods, and waits for the
// answers of those that have not given one yet.
func (c *cluster) waitForPods(ctx context.Context, news []*newcomer, from netns.NS, since func(time.Time) *time.Duration) error {
	if c.network.PodsAdded != nil {
		if err := c.announcePods(ctx, news...); err != nil {
			return err
		}
		for _, n := range news {
			n.times.Policy = since(time.Now())
		}
	}
	g, gctx := errgroup.WithContext(ctx)
	for _, n := range news {
		if n.times.Answered == nil {
			g.Go(func() error { return n.answer(gctx, from, since) })
		}
	}
	return g.Wait()
}

// answer waits for the pod's first answer to a place.
func (n *newcomer) answer(ctx context.Context, from netns.NS, since func(time.Time) *time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	at, err := netns.Answer(ctx, from, netip.AddrPortFrom(n.address, answerPort))
	n.times.Answered = since(at)
	return err
}

// removePods runs all DELs at once and removes the namespaces.
func (c *cluster) removePods(ctx context.Context, rt *cni.Runtime, news []*newcomer) error {
	began := time.Now()
	g := new(errgroup.Group)
	for _, n := range news {
		g.Go(func() error {
			ctx, cancel := context.WithTimeout(ctx, attachTimeout)
			defer cancel()
			ran, err := rt.Del(ctx, attachment(c.conflists[0], n.ns, c.nodes[0].NS))
			took := time.Since(began)
			if err == nil {
				n.times.Removed = &took
				n.ran(ran)
			}
			return errors.Join(err, n.ns.Delete())
		})
	}
	err := g.Wait()
	return errors.Join(err, c.announcePods(ctx))
}

// knownPods are those that the network's agent knows.
func (c *cluster) knownPods(news []*newcomer) []network.Pod {
	var pods []network.Pod
	for i, n := range c.nodes {
		for _, p := range c.pods[i] {
			pods = append(pods, network.Pod{ID: p.ns.Name, Node: n.Index, Address: p.address})
		}
	}
	for _, n := range news {
		pods = append(pods, network.Pod{ID: n.ns.Name, Node: c.nodes[0].Index, Address: n.address})
	}
	return pods
}
