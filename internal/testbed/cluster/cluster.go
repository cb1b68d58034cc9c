package cluster

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/kubeclient"
	"github.com/cnibench/cnibench/internal/result"
)

// cluster is one Kubernetes with what a run has in it.
type cluster struct {
	name    string // in the campaign
	named   campaign.Cluster
	client  *kubeclient.Client
	options Options

	// run names the present namespaces; runs are all that were created.
	run  string
	runs []string
	// nodes are those that ends are on; one where the cluster has no more.
	nodes []corev1.Node
	// needs is how many nodes the cells need.
	needs int
	// pairs are those that are measured, by the nodes' names; nil: only one.
	pairs [][2]string
	// unfit says of the nodes that take no pods why.
	unfit string
	// noHost says why there are no pods in their node's own network; "": there are.
	noHost string
	// wanted and routes are the ends and routes of the campaign.
	wanted []end
	routes []route
	pods   map[end]*agentPod
	ports  map[route]uint16 // of nodes, by route
	// without says of a route why there is none.
	without map[route]string
	// enforces means that the cluster was seen to enforce policies.
	enforces bool
	// limited and doubted mean that pods' limits, and an agent whose version is not known,
	// were reported.
	limited bool
	doubted sync.Once
	found   detected
	lease   *lease
	// sightings are of the leases of runs that clearDead was not sure of; unsure: there
	// were such runs.
	sightings sightings
	unsure    bool
	networks  map[string]bool // of the plan
	added     int             // samples that added pods
}

func newCluster(named campaign.Cluster, client *kubeclient.Client, o Options) *cluster {
	return &cluster{name: named.Name, named: named, client: client, options: o, networks: map[string]bool{}}
}

// raiseAtOnce bounds the pods that are waited for at the same time.
const raiseAtOnce = 32

// prepare makes what the cells need, and looks what the cluster has.
func (c *cluster) prepare(ctx context.Context, cells []result.Cell) (campaign.Found, error) {
	if err := c.checkAccess(ctx); err != nil {
		return campaign.Found{}, err
	}
	if err := c.clearDead(ctx); err != nil {
		return campaign.Found{}, err
	}
	c.needs = needNodes(cells)
	nodes, err := c.chooseNodes(ctx)
	if err != nil {
		return campaign.Found{}, err
	}
	c.nodes = nodes
	if err := c.choosePairs(len(cells)); err != nil {
		return campaign.Found{}, err
	}
	c.want(cells)
	if err := c.make(ctx); err != nil {
		return campaign.Found{}, err
	}
	return c.look(ctx)
}

// want notes the ends and routes of the cells that the nodes are enough for.
func (c *cluster) want(cells []result.Cell) {
	for _, cell := range cells {
		if cell.HasManyEnds() {
			c.wantRanks(cell)
			continue
		}
		if c.options.Pairs != "" {
			c.wantEach(cell)
			continue
		}
		from, to := c.endsOf(cell)
		if max(from.node, to.node) > len(c.nodes) || to.host && to.policies > 0 {
			continue
		}
		for _, e := range []end{from, to, {role: server, node: to.node, host: to.host}} {
			c.wantEnd(e)
		}
		r := route{to, cell.Path, familyOf(cell)}
		if byService(cell.Path) && !slices.Contains(c.routes, r) {
			c.routes = append(c.routes, r)
		}
	}
}

// wantEach notes one end for each node, in each of the networks that the ends of a
// cell are in.
func (c *cluster) wantEach(cell result.Cell) {
	for i := range c.nodes {
		for _, host := range []bool{strings.HasPrefix(cell.Path, "host-to-"), strings.HasSuffix(cell.Path, "-to-host")} {
			c.wantEnd(end{role: both, node: i + 1, host: host})
		}
	}
}

// wantEnd notes an end once.
func (c *cluster) wantEnd(e end) {
	if !slices.Contains(c.wanted, e) {
		c.wanted = append(c.wanted, e)
	}
}

// make makes everything wanted in namespaces of a new name.
func (c *cluster) make(ctx context.Context) error {
	if err := c.begin(ctx); err != nil {
		return err
	}
	for _, e := range c.wanted {
		if !e.host || c.noHost == "" {
			c.pods[e] = &agentPod{end: e}
		}
	}
	return c.fill(ctx)
}

// begin gives the run a new name and what is its own by it.
func (c *cluster) begin(ctx context.Context) error {
	id := make([]byte, 4)
	rand.Read(id) // never fails (crypto/rand)
	c.run, c.pods, c.ports = hex.EncodeToString(id), map[end]*agentPod{}, map[route]uint16{}
	c.without = map[route]string{}
	c.runs = append(c.runs, c.run)
	if c.named.Namespace == "" {
		return c.makeNamespaces(ctx)
	}
	var err error
	c.lease, err = c.startLease(ctx)
	return err
}

// fill makes policies, pods and services, and waits for them.
func (c *cluster) fill(ctx context.Context) error {
	for _, e := range c.wanted {
		err := c.makePolicies(ctx, e)
		if err == nil && c.pods[e] != nil {
			err = c.makePod(ctx, c.pods[e])
		}
		if err != nil {
			return err
		}
	}
	for _, r := range c.routes {
		if err := c.makeService(ctx, r); err != nil {
			return err
		}
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(raiseAtOnce)
	for _, p := range c.pods {
		g.Go(func() error { return c.raise(gctx, p) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	c.know()
	return c.settle(ctx)
}

// namespace is where an end's pod is.
func (c *cluster) namespace(e end) string {
	if c.named.Namespace != "" {
		return c.named.Namespace
	}
	return namespaceOf(c.run, e.host)
}

func namespaceOf(run string, host bool) string {
	if host {
		return "cnb-host-" + run
	}
	return "cnb-" + run
}

// The labels of what a run makes.
const (
	managedBy = "app.kubernetes.io/managed-by"
	ours      = "cnibench"
	runLabel  = "cnibench/run"
	endLabel  = "cnibench/end"
	roleLabel = "cnibench/role"
	// holderNote on a namespace is the process that created it, as its lease has it.
	holderNote = "cnibench/holder"
)

func labels(run string) map[string]string { return map[string]string{managedBy: ours, runLabel: run} }

// makeNamespaces makes the namespace of pods, and that of pods in their node's
// network, which no Pod Security but privileged allows. Where the user may not
// have the second, the baseline is not measured.
func (c *cluster) makeNamespaces(ctx context.Context) error {
	const enforce = "pod-security.kubernetes.io/enforce"
	holder, err := self()
	if err != nil {
		return err
	}
	make := func(host bool, level string) error {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: namespaceOf(c.run, host), Labels: labels(c.run), Annotations: map[string]string{holderNote: holder},
		}}
		ns.Labels[enforce] = level
		_, err := c.client.API.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{})
		return c.client.Explain("make namespace "+ns.Name, err)
	}
	level := "restricted"
	if c.options.Privileged || c.options.Unconfined {
		level = "privileged"
	}
	if err := make(false, level); err != nil {
		return err
	}
	if c.lease, err = c.startLease(ctx); err != nil {
		return err
	}
	if !slices.ContainsFunc(c.wanted, func(e end) bool { return e.host }) {
		return nil
	}
	if err := make(true, "privileged"); err != nil {
		if !kubeclient.IsForbidden(err) {
			return err
		}
		c.noHost = err.Error()
		c.options.Say("no pods in their node's network, so no baseline: %v", err)
	}
	return nil
}

// close ends the agents and deletes the namespaces of all runs.
func (c *cluster) close(ctx context.Context) error {
	var errs []error
	for _, p := range c.pods {
		if p.agent != nil {
			if err := p.agent.Close(); err != nil {
				errs = append(errs, fmt.Errorf("agent at %s: %w", p.end.name(), err))
			}
		}
	}
	if c.lease != nil {
		c.lease.stop()
	}
	c.clearLater(ctx)
	soon, cancel := context.WithTimeoutCause(ctx, letGoWithin, fmt.Errorf("not gone within %v", letGoWithin))
	defer cancel()
	err := c.remove(soon)
	if err != nil && ctx.Err() == nil {
		err = errors.Join(c.force(ctx), c.remove(ctx))
	}
	c.pods = nil
	errs = append(errs, err)
	if errors.Join(errs...) == nil {
		c.runs = nil
	}
	return errors.Join(errs...)
}

// remove deletes what all runs made, and waits for its end.
func (c *cluster) remove(ctx context.Context) error {
	if c.named.Namespace != "" {
		return clearRuns(ctx, c.client, c.named.Namespace, c.runs)
	}
	var names []string
	for _, run := range c.runs {
		names = append(names, namespaceOf(run, false), namespaceOf(run, true))
	}
	return remove(ctx, c.client, names)
}
