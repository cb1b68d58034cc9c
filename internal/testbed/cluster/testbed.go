// Package cluster is the testbed of Kubernetes clusters. It measures any cluster in a
// kubeconfig between pods of this program, which it controls by exec over the API server.
// Everything that it creates is in namespaces of its own, which it deletes at the end; the
// next run deletes those of a run that was killed.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/kubeclient"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed"
)

// Patience is what most clusters need of it (Options.Patience).
const Patience = 20 * time.Second

const (
	// endsWithin bounds how long one sample waits for its ends to be created again.
	endsWithin = 2 * time.Minute
	// closeWithin bounds the wait for the end of what was made.
	closeWithin = 90 * time.Second
)

// Options say what a testbed of clusters is made with.
type Options struct {
	// Clusters are those of the campaign, their kubeconfigs relative to nothing.
	Clusters []campaign.Cluster
	// Pairs is that of the campaign: which pairs of nodes are measured.
	Pairs string
	// Image is that of the pods: this program, which each node has or can pull.
	Image string
	// Version is that of this program, which the agents in the image must have too; "":
	// they are not compared.
	Version string
	// Privileged lets pods have all rights on their nodes, which probes of the kernel
	// need (counters, stacks).
	Privileged bool
	// Unconfined leaves the pods' seccomp filter out, which each of their system calls
	// passes. Pod Security "baseline" and "restricted" refuse such pods.
	Unconfined bool
	// Connect makes the connections: kubeclient.Connect.
	Connect func(kubeconfig, context string) (*kubeclient.Client, error)
	// Focus is called before a cluster is measured that was not the last one; the
	// others are idle until the next call, which has no name when all are needed.
	// nil: nothing is to be done.
	Focus func(ctx context.Context, cluster string) error
	// Agents gives the processes of the network's own agents on a node of a cluster; nil where they
	// do not run on this machine. It may be nil itself.
	Agents func(cluster, node string) []int
	// Run runs a command that switches the network of a cluster, and gives what it
	// printed; it is needed where a cluster has any.
	Run func(ctx context.Context, of campaign.Cluster, argv []string) (stdout, stderr string, err error)
	// Patience is how long what hinders nodes and pods may last that often passes:
	// a node that is not ready yet, an image that is pulled once more.
	Patience time.Duration
	// Say reports what was found and corrected.
	Say func(format string, args ...any)
}

// Testbed measures on the clusters of a campaign.
type Testbed struct {
	options  Options
	clusters []*cluster

	mu        sync.Mutex
	focused   string
	focusedAt time.Time // since when it is; zero: nothing is ever frozen
	switching switching
}

var _ testbed.Testbed = (*Testbed)(nil)

// Open makes the connections. Nothing is asked of a cluster yet.
func Open(o Options) (*Testbed, error) {
	b := &Testbed{options: o}
	for _, named := range o.Clusters {
		client, err := o.Connect(named.Kubeconfig, named.Context)
		if err != nil {
			return nil, clusterError(named.Name, err)
		}
		b.clusters = append(b.clusters, newCluster(named, client, o))
	}
	return b, nil
}

// SetAgents sets Options.Agents, for callers that know it only once the testbed is open.
func (b *Testbed) SetAgents(agents func(cluster, node string) []int) {
	b.options.Agents = agents
	for _, c := range b.clusters {
		c.options.Agents = agents
	}
}

// clusterError says which of several clusters an error is of.
func clusterError(name string, err error) error {
	if err == nil || name == "" {
		return err
	}
	return fmt.Errorf("cluster %s: %w", name, err)
}

// SetFocus sets Options.Focus, for callers that know it only once the testbed is open.
func (b *Testbed) SetFocus(focus func(ctx context.Context, cluster string) error) {
	b.options.Focus = focus
}

// Prepare makes the pods that the cells of a campaign need, before its plan is
// made: what a cluster has is seen from them. On an error all is taken down.
func (b *Testbed) Prepare(ctx context.Context, cells []result.Cell) ([]campaign.Found, error) {
	if err := b.all(ctx); err != nil { // one that a killed run left resting does not answer
		return nil, err
	}
	if b.switched() {
		found, err := b.prepareFirst(ctx, cells)
		if err != nil {
			err = errors.Join(err, b.Close(context.WithoutCancel(ctx)))
		}
		return found, err
	}
	found := make([]campaign.Found, len(b.clusters))
	g, gctx := errgroup.WithContext(ctx)
	for i, c := range b.clusters {
		g.Go(func() error {
			var err error
			found[i], err = c.prepare(gctx, cellsOf(c.name, cells))
			return clusterError(c.name, err)
		})
	}
	if err := g.Wait(); err != nil {
		return nil, errors.Join(err, b.Close(context.WithoutCancel(ctx)))
	}
	return found, nil
}

// Servers are the API servers' addresses, by the clusters' names.
func (b *Testbed) Servers() map[string]string {
	out := map[string]string{}
	for _, c := range b.clusters {
		out[c.name] = c.client.Server
	}
	return out
}

func cellsOf(cluster string, cells []result.Cell) []result.Cell {
	var out []result.Cell
	for _, c := range cells {
		if c.Cluster == cluster {
			out = append(out, c)
		}
	}
	return out
}

// Build reports which cells cannot be measured: Prepare has created what the others
// need.
func (b *Testbed) Build(_ context.Context, cells []result.Cell) (map[result.Cell]string, error) {
	unsupported := map[result.Cell]string{}
	for _, cell := range cells {
		c, err := b.find(cell.Cluster)
		if err == nil && b.switched() && b.clusters[max(0, b.switching.current)] != c {
			continue // Build is called again once its network is installed
		}
		if err == nil {
			err = c.support(cell)
		}
		if err != nil {
			unsupported[cell] = err.Error()
			continue
		}
		c.networks[cell.Network] = true
	}
	return unsupported, nil
}

func (b *Testbed) find(name string) (*cluster, error) {
	for _, c := range b.clusters {
		if c.name == name {
			return c, nil
		}
	}
	return nil, fmt.Errorf("no cluster %q: the campaign names none so", name)
}

// Ends gives both ends of a cell with living agents. A pod that is gone is created
// again, and so is everything if the namespace is gone.
func (b *Testbed) Ends(ctx context.Context, cell result.Cell) (testbed.Ends, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c, err := b.find(cell.Cluster)
	if err != nil {
		return testbed.Ends{}, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, endsWithin, fmt.Errorf("its ends were not ready within %v", endsWithin))
	defer cancel()
	if err := b.focus(ctx, c.name); err != nil {
		return testbed.Ends{}, clusterError(c.name, err)
	}
	ends, err := c.ends(ctx, cell)
	return ends, clusterError(c.name, err)
}

// focus reports the cluster that is measured next, so that idle ones can be frozen.
func (b *Testbed) focus(ctx context.Context, name string) error {
	if b.options.Focus == nil || b.focused == name && name != "" {
		return nil
	}
	b.focused = ""
	if err := b.options.Focus(ctx, name); err != nil {
		return err
	}
	b.focused, b.focusedAt = name, time.Now()
	return nil
}

// all asks for all clusters, none of them frozen.
func (b *Testbed) all(ctx context.Context) error {
	if b.options.Focus == nil {
		return nil
	}
	b.focused = ""
	return b.options.Focus(ctx, "")
}

// Close ends the agents and deletes everything that was made, and waits until it
// is gone.
func (b *Testbed) Close(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	ctx, cancel := context.WithTimeoutCause(ctx, closeWithin, fmt.Errorf("not gone within %v", closeWithin))
	defer cancel()
	errs := make([]error, 1+len(b.clusters))
	errs[0] = b.all(ctx)
	var wait sync.WaitGroup
	for i, c := range b.clusters {
		wait.Go(func() { errs[1+i] = clusterError(c.name, c.close(ctx)) })
	}
	wait.Wait()
	return errors.Join(errs...)
}
