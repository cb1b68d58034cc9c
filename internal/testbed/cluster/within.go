package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnibench/cnibench/internal/kubeclient"
)

// Users who cannot create namespaces run within an existing one
// (campaign.Cluster.Namespace). The names of all objects of such a run begin with its
// name, and they carry its label, by which it finds and deletes them; the namespace stays.

// object is the name of what a run makes: others may have the same in a namespace
// that is not the run's own.
func (c *cluster) object(name string) string {
	if c.named.Namespace == "" {
		return name
	}
	return namespaceOf(c.run, false) + "-" + name
}

// scout finds nodes for a user who cannot list them, by what the scheduler chooses: one
// for a first pod, and others for pods that must not share its node.
func (c *cluster) scout(ctx context.Context) (nodes []corev1.Node, err error) {
	if len(c.named.Nodes) > 0 {
		for _, name := range c.named.Nodes {
			nodes = append(nodes, bareNode(name))
		}
		return nodes, nil
	}
	if len(c.named.Zones) > 0 || c.options.Pairs != "" {
		return nil, errors.New("this user may not list nodes, so zones and pairs of nodes are not known: name the nodes in the campaign's clusters")
	}
	if err := c.begin(ctx); err != nil {
		return nil, err
	}
	defer func() {
		c.lease.stop()
		err = errors.Join(err, clearRuns(ctx, c.client, c.named.Namespace, []string{c.run}))
		c.nodes = nil
	}()
	for number := range max(2, c.needs) {
		p := &agentPod{end: end{role: client, node: number + 1}}
		if err := c.makePod(ctx, p); err != nil {
			return nil, err
		}
		name, why := c.scheduled(ctx, p)
		switch {
		case why != nil && number == 0:
			return nil, why
		case why != nil:
			c.unfit = "no other takes the pod: " + why.Error()
			return c.nodes, nil
		}
		c.nodes = append(c.nodes, bareNode(name))
	}
	return c.nodes, nil
}

func bareNode(name string) corev1.Node {
	return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// scheduled waits until a pod has a node, and gives its name.
func (c *cluster) scheduled(ctx context.Context, p *agentPod) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, readyWithin, fmt.Errorf("pod %s has no node after %v", p.name, readyWithin))
	defer cancel()
	for began := time.Now(); ; {
		pod, err := c.client.API.CoreV1().Pods(c.named.Namespace).Get(ctx, p.name, metav1.GetOptions{})
		if err != nil {
			return "", c.client.Explain("wait for pod "+p.name, err)
		}
		if pod.Spec.NodeName != "" {
			return pod.Spec.NodeName, nil
		}
		if hindered, _ := hindrance(pod, c.options.Image); hindered != nil && time.Since(began) > c.options.Patience {
			return "", hindered
		}
		select {
		case <-ctx.Done():
			return "", context.Cause(ctx)
		case <-time.After(poll):
		}
	}
}

// apart keeps a pod from the nodes that have a pod of the run.
func apart(run string) *corev1.Affinity {
	return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
		TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{runLabel: run}}}}}}
}

// know fills in the addresses of nodes that could not be listed, from their pods'
// status.
func (c *cluster) know() {
	for _, p := range c.pods {
		if node := &c.nodes[p.end.node-1]; len(node.Status.Addresses) == 0 {
			for _, a := range p.hostIPs {
				node.Status.Addresses = append(node.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: a})
			}
		}
	}
}

// made is an object that a run made, by its labels.
type made struct {
	kind, run string
	delete    func(context.Context) error
}

// objects are those that runs made in a namespace, and the leases among them by run.
func objects(ctx context.Context, client *kubeclient.Client, namespace string) (all []made, byRun map[string]*coordinationv1.Lease, err error) {
	only := metav1.ListOptions{LabelSelector: managedBy + "=" + ours + "," + runLabel}
	soon := int64(1)
	add := func(kind string, o metav1.ObjectMeta, remove func(context.Context, string, metav1.DeleteOptions) error) {
		name, uid := o.Name, string(o.UID)
		all = append(all, made{kind, o.Labels[runLabel], func(ctx context.Context) error {
			err := remove(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &soon, Preconditions: metav1.NewUIDPreconditions(uid)})
			if kubeclient.IsNotFound(err) || kubeclient.IsConflict(err) { // conflict: another has the name by now
				err = nil
			}
			return client.Explain("delete "+kind+" "+name, err)
		}})
	}
	pods, podsErr := client.API.CoreV1().Pods(namespace).List(ctx, only)
	services, servicesErr := client.API.CoreV1().Services(namespace).List(ctx, only)
	policies, policiesErr := client.API.NetworkingV1().NetworkPolicies(namespace).List(ctx, only)
	leases, leasesErr := client.API.CoordinationV1().Leases(namespace).List(ctx, only)
	if err := errors.Join(podsErr, servicesErr, policiesErr, leasesErr); err != nil {
		return nil, nil, client.Explain("look for what runs left in namespace "+namespace, cmp.Or(podsErr, servicesErr, policiesErr, leasesErr))
	}
	for _, o := range pods.Items {
		add("pod", o.ObjectMeta, client.API.CoreV1().Pods(namespace).Delete)
	}
	for _, o := range services.Items {
		add("service", o.ObjectMeta, client.API.CoreV1().Services(namespace).Delete)
	}
	for _, o := range policies.Items {
		add("network policy", o.ObjectMeta, client.API.NetworkingV1().NetworkPolicies(namespace).Delete)
	}
	byRun = map[string]*coordinationv1.Lease{}
	for _, o := range leases.Items {
		add("lease", o.ObjectMeta, client.API.CoordinationV1().Leases(namespace).Delete)
		byRun[o.Labels[runLabel]] = &o
	}
	return all, byRun, nil
}

// deadRuns are those that left something in a namespace and have ended; of those in open
// nobody knows yet. A run creates its lease first and deletes it last, so one without has
// ended.
func deadRuns(ctx context.Context, client *kubeclient.Client, namespace string, s *sightings) (runs, open []string, err error) {
	all, leases, err := objects(ctx, client, namespace)
	asked := map[string]bool{}
	for _, o := range all {
		if asked[o.run] {
			continue
		}
		asked[o.run] = true
		v := ended
		if l := leases[o.run]; l != nil {
			v = s.judge(o.run, "", l)
		}
		switch v {
		case ended:
			runs = append(runs, o.run)
		case unsure:
			open = append(open, o.run)
		}
	}
	slices.Sort(runs)
	slices.Sort(open)
	return runs, open, err
}

// clearRuns deletes what runs made in a namespace, their leases last, and waits
// until nothing of it is left.
func clearRuns(ctx context.Context, client *kubeclient.Client, namespace string, runs []string) error {
	asked := map[string]bool{}
	for {
		all, _, err := objects(ctx, client, namespace)
		if err != nil {
			return err
		}
		all = slices.DeleteFunc(all, func(o made) bool { return !slices.Contains(runs, o.run) })
		if len(all) == 0 {
			return nil
		}
		kind := "lease"
		if slices.ContainsFunc(all, func(o made) bool { return o.kind != kind }) {
			all = slices.DeleteFunc(all, func(o made) bool { return o.kind == kind })
			kind = "rest"
		}
		for _, o := range all {
			if asked[kind] {
				break // a pod takes a while
			}
			if err := o.delete(ctx); err != nil {
				return err
			}
		}
		asked[kind] = true
		select {
		case <-ctx.Done():
			return fmt.Errorf("what runs left in namespace %s: %w; later: cnibench clean --namespace %s", namespace, context.Cause(ctx), namespace)
		case <-time.After(poll):
		}
	}
}

// cleanWithin clears a namespace of what is left of runs that have ended; of those in
// open nobody knows yet.
func cleanWithin(ctx context.Context, client *kubeclient.Client, namespace string, s *sightings) (cleared, open []string, err error) {
	runs, open, err := deadRuns(ctx, client, namespace, s)
	if err != nil || len(runs) == 0 {
		return nil, open, err
	}
	for _, run := range runs {
		cleared = append(cleared, "what run "+run+" left in namespace "+namespace)
	}
	return cleared, open, clearRuns(ctx, client, namespace, runs)
}

// unfitting says of a pod as the cluster took it what it was given that falsifies
// what is measured.
func unfitting(pod *corev1.Pod) error {
	var names []string
	for _, c := range append(slices.Clone(pod.Spec.Containers), pod.Spec.InitContainers...) {
		if c.Name != container {
			names = append(names, c.Name)
		}
	}
	if len(names) > 0 {
		return &PodError{Pod: pod.Name, Text: "the cluster put other containers into it, which may be in the path of packets: " + strings.Join(names, ", "),
			Cure: "measure where nothing is injected, in another namespace"}
	}
	return nil
}
