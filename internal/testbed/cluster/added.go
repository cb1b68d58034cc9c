package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/kubeclient"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed"
)

var _ testbed.PodAdder = (*Testbed)(nil)

const (
	// addedRole is the role of pods that a sample adds. A service or a policy selects none of them.
	addedRole = "added"
	// askEvery is how often the API server is asked about added pods that have not reported yet,
	// and goneEvery how often whether deleted ones are gone.
	askEvery  = time.Second
	goneEvery = 100 * time.Millisecond
	// steadyAfter is how long a cluster may take to see that its nodes were frozen: its controllers
	// look every 5 s.
	steadyAfter = 6 * time.Second
	// clockTurns is how often the clock of an agent is read: the shortest exchange counts.
	clockTurns = 5
	// clockDoubt is what the beginning may be uncertain by, as a share of the first pod's time,
	// before a sample says so.
	clockDoubt = 0.02
	// leastPodsWeighed is below what the agents' memory for pods is not asked for, as in the lab.
	leastPodsWeighed = 10
	// removeWithin bounds the removal of added pods.
	removeWithin = time.Minute
)

// newcomer is a pod that a sample adds.
type newcomer struct {
	name  string
	times result.PodTimes
}

// AddPods adds the cell's number of pods to the client's node at once. Each pod reports to the
// agent of the cell's server as soon as its first process runs and its packets arrive there. So
// their times have all that a pod needs: scheduler, kubelet, runtime and network. Pods in their
// node's own network (the baseline) need all but the network. Then the pods are removed again.
func (b *Testbed) AddPods(ctx context.Context, cell result.Cell) (result.PodSetUp, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c, err := b.find(cell.Cluster)
	if err != nil {
		return result.PodSetUp{}, err
	}
	if err := b.focus(ctx, c.name); err != nil {
		return result.PodSetUp{}, clusterError(c.name, err)
	}
	var set result.PodSetUp
	if err = c.steady(ctx, cell, b.focusedAt); err == nil {
		set, err = c.addPods(ctx, cell)
	}
	return set, clusterError(c.name, err)
}

// steady waits until a cluster that was frozen until a time takes pods on the node of a cell's client.
// A kubelet that was stopped may report that its container runtime is down, and the node is then
// tainted until its next report, 10 s later: seen after 45 s, and not after 20 and 90 s (2026-11-27).
// A pod took 10.5 s in place of 0.3 s.
func (c *cluster) steady(ctx context.Context, cell result.Cell, until time.Time) error {
	e, _ := c.endsOf(cell)
	name := c.nodes[e.node-1].Name
	for wait := steadyAfter - time.Since(until); ; wait = poll {
		select {
		case <-ctx.Done():
			return fmt.Errorf("node %s takes no pods yet: %w", name, context.Cause(ctx))
		case <-time.After(wait):
		}
		node, err := c.client.API.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil && !kubeclient.IsForbidden(err) {
			return c.client.Explain("look after node "+name, err)
		}
		if err != nil || unfit(*node) == "" {
			return nil
		}
	}
}

// supportAdded says why a cell's pods cannot be added here.
func supportAdded(cell result.Cell) error {
	switch {
	case byService(cell.Path):
		return fmt.Errorf("added pods report to a pod, and path %s leads to a service", cell.Path)
	case cell.Policies > 0:
		return errors.New("policies select one server's pod on a cluster, and none of the added pods: measure it in the lab")
	}
	return nil
}

func (c *cluster) addPods(ctx context.Context, cell result.Cell) (set result.PodSetUp, err error) {
	fromEnd, toEnd := c.endsOf(cell)
	to, err := c.living(ctx, toEnd)
	if err != nil {
		return set, err
	}
	at, err := to.address(familyOf(cell))
	if err != nil {
		return set, err
	}
	added := end{host: fromEnd.host, role: addedRole, node: fromEnd.node}
	news := make([]*newcomer, max(1, cell.Pods))
	expect := agent.ExpectParams{Token: agent.NewToken(), Address: at.String()}
	c.added++
	for i := range news {
		news[i] = &newcomer{name: c.object(fmt.Sprintf("%s-%d-%d", added.name(), c.added, i+1))}
		expect.Names = append(expect.Names, news[i].name)
	}
	defer func() {
		// What was begun is undone even if the caller was cancelled.
		down, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), removeWithin, fmt.Errorf("added pods are not gone after %v", removeWithin))
		defer cancel()
		err = errors.Join(err, c.removeAdded(down, added, news))
	}()
	var port agent.ExpectResult
	if err := to.agent.Call(ctx, agent.MethodExpect, expect, &port); err != nil {
		return set, err
	}
	resident, residentErr := residentOf(c.agents(added.node))
	began, unsure, err := clockOf(ctx, to.agent)
	var strangers int
	if err == nil {
		strangers, err = c.createAdded(ctx, added, news, agent.Newcomer{To: netip.AddrPortFrom(at, port.Port), Token: expect.Token}, to.agent, began())
	}
	if err != nil {
		cancelled := to.agent.Call(context.WithoutCancel(ctx), agent.MethodCancel, agent.CancelParams{}, nil)
		return set, errors.Join(err, c.whyNot(ctx, added), cancelled)
	}
	if strangers > 0 {
		set.Doubts = append(set.Doubts, fmt.Sprintf("%s%d connections to the port for added pods were not theirs", agent.StrangersDoubt, strangers))
	}
	if after, err := residentOf(c.agents(added.node)); err == nil && residentErr == nil && after >= resident && len(news) >= leastPodsWeighed {
		more := after - resident
		set.ProcessBytes = &more
	}
	first := *news[0].times.Answered
	for _, n := range news {
		set.Pods, first = append(set.Pods, n.times), min(first, *n.times.Answered)
	}
	if float64(unsure) > clockDoubt*float64(first) {
		set.Doubts = append(set.Doubts, fmt.Sprintf("pods: the beginning of all is known to ± %v, because the agent's answers take that long", unsure.Round(time.Millisecond)))
	}
	return set, nil
}

// clockOf relates this program's time to an agent's clock: now is what the agent's clock shows when
// it is called, in nanoseconds, within unsure.
func clockOf(ctx context.Context, a *agent.Client) (now func() int64, unsure time.Duration, err error) {
	var middle time.Time
	var there int64
	for i := range clockTurns {
		var clock agent.ClockResult
		asked := time.Now()
		if err := a.Call(ctx, agent.MethodClock, struct{}{}, &clock); err != nil {
			return nil, 0, err
		}
		if took := time.Since(asked); i == 0 || took/2 < unsure {
			middle, there, unsure = asked.Add(took/2), clock.Now, took/2
		}
	}
	return func() int64 { return there + time.Since(middle).Nanoseconds() }, unsure, nil
}

// createAdded makes the pods at once, and waits until all have reported. began is the beginning on
// the agent's clock.
func (c *cluster) createAdded(ctx context.Context, added end, news []*newcomer, reports agent.Newcomer, to *agent.Client, began int64) (strangers int, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g, gctx := errgroup.WithContext(ctx)
	for _, n := range news {
		g.Go(func() error { return c.createOne(gctx, added, n, reports) })
	}
	var got agent.ArrivedResult
	g.Go(func() error {
		err := to.Call(gctx, agent.MethodArrived, struct{}{}, &got)
		cancel() // there is nobody to look after any more
		return err
	})
	g.Go(func() error { return c.watchAdded(gctx, added) })
	if err := g.Wait(); err != nil {
		return 0, err
	}
	for _, n := range news {
		i := slices.IndexFunc(got.Arrivals, func(a agent.Arrival) bool { return a.Name == n.name })
		if i < 0 {
			return 0, fmt.Errorf("pod %s has not reported", n.name)
		}
		answered := time.Duration(got.Arrivals[i].At - began)
		started := answered - got.Arrivals[i].Ran
		n.times.Answered = &answered
		if started >= 0 {
			n.times.Started = &started
		}
	}
	return got.Strangers, nil
}

// whyNot says what an added pod waits for, where the sample's time is over; nil where that is not known.
func (c *cluster) whyNot(ctx context.Context, added end) error {
	if ctx.Err() == nil {
		return nil
	}
	look, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerWithin)
	defer cancel()
	pods, err := c.addedPods(look, added)
	if err != nil {
		return nil // the first error is why
	}
	runs := 0
	for i := range pods {
		if hindered, _ := hindrance(&pods[i], c.options.Image); hindered != nil {
			return hindered
		}
		if running(&pods[i]) {
			runs++
		}
	}
	return fmt.Errorf("%d of %d added pods run", runs, len(pods))
}

// createOne makes one pod. It asks for little: many are added to one node.
func (c *cluster) createOne(ctx context.Context, added end, n *newcomer, reports agent.Newcomer) error {
	pod := c.podOf(added, n.name)
	reports.Name = n.name
	one := &pod.Spec.Containers[0]
	one.Command = append(one.Command, "--report", reports.String())
	// It writes nothing, and kubelets wait for volumes in steps of a third of a second.
	one.VolumeMounts, pod.Spec.Volumes = nil, nil
	one.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1m"), corev1.ResourceMemory: resource.MustParse("8Mi")}
	taken, err := c.client.API.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
	if err != nil {
		return c.client.Explain("make pod "+n.name, err)
	}
	return unfitting(taken)
}

// watchAdded ends with the context, or with what keeps an added pod from running for good.
func (c *cluster) watchAdded(ctx context.Context, added end) error {
	for began := time.Now(); ; {
		select {
		case <-ctx.Done():
			return nil // the others say why
		case <-time.After(askEvery):
		}
		pods, err := c.addedPods(ctx, added)
		if err != nil {
			continue // the API server may be away for a moment, and the pods' reports do not need it
		}
		for i := range pods {
			hindered, final := hindrance(&pods[i], c.options.Image)
			if hindered != nil && (final || time.Since(began) > c.options.Patience) {
				return hindered
			}
		}
	}
}

// addedPods are those that samples have added and that are not gone yet.
func (c *cluster) addedPods(ctx context.Context, added end) ([]corev1.Pod, error) {
	list, err := c.client.API.CoreV1().Pods(c.namespace(added)).List(ctx, metav1.ListOptions{LabelSelector: fmt.Sprintf("%s=%s,%s=%s", runLabel, c.run, roleLabel, addedRole)})
	if err != nil {
		return nil, c.client.Explain("look after added pods", err)
	}
	return list.Items, nil
}

// removeAdded deletes the pods and waits until they are gone, so that the next sample finds the node
// as this one did.
func (c *cluster) removeAdded(ctx context.Context, added end, news []*newcomer) error {
	var errs []error
	for _, n := range news {
		// The name is the run's own, and only this sample has used it.
		err := c.client.API.CoreV1().Pods(c.namespace(added)).Delete(ctx, n.name, metav1.DeleteOptions{})
		if err != nil && !kubeclient.IsNotFound(err) {
			errs = append(errs, c.client.Explain("delete pod "+n.name, err))
		}
	}
	for {
		pods, err := c.addedPods(ctx, added)
		if err == nil && len(pods) == 0 {
			return errors.Join(errs...)
		}
		select {
		case <-ctx.Done():
			return errors.Join(append(errs, context.Cause(ctx), err)...)
		case <-time.After(goneEvery):
		}
	}
}
