// Package kubetest is a cluster without nodes, for tests: its API is kept in
// memory, and a program that is run in a pod is an agent in this process.
package kubetest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/kubeclient"
)

// Loopback is the address of all pods, nodes and services: agents in this process
// reach each other there.
const Loopback = "127.0.0.1"

// Cluster is what a test looks into.
type Cluster struct {
	API *fake.Clientset
	// Status changes the status of a pod that is created; nil: it runs.
	Status func(*corev1.Pod)
	// Change changes a pod that is made before the cluster takes it; nil: nothing does.
	Change func(*corev1.Pod)
	// Forbidden refuses to make an object, by its kind and name; nil: none.
	Forbidden func(kind, name string) bool
	// Lacks are rights that the user does not have; nil: none.
	Lacks func(verb, resource string) bool
	// Refuse is why no program can be started in a pod now, as of a kubelet that is
	// away; nil: one can.
	Refuse func() error
	// Version is that of the agents; "" is this program's own.
	Version string
	// Lose names updates that are carried out and whose answers are lost, by their
	// verb and kind; nil: none.
	Lose func(verb, kind string) bool

	// Unconditional are the deletions that no UID bounds to one object, "pods web": an
	// object that somebody created under the same name would go.
	Unconditional []string

	versions int // of leases
	made     int // objects
	nodes    []string
	mu       sync.Mutex
	streams  map[kubeclient.Target][]context.CancelFunc
}

// New is a cluster of some nodes; they have the address Loopback.
func New(nodes ...string) *Cluster {
	var objects []runtime.Object
	for _, name := range nodes {
		objects = append(objects, Node(name))
	}
	c := &Cluster{API: fake.NewClientset(objects...), nodes: nodes, streams: map[kubeclient.Target][]context.CancelFunc{}}
	c.API.PrependReactor("create", "*", c.create)
	c.API.PrependReactor("delete", "*", c.delete)
	c.API.PrependReactor("update", "leases", c.update)
	c.API.PrependReactor("list", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
		if c.Lacks != nil && c.Lacks("list", "nodes") {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "", errors.New("not allowed to"))
		}
		return false, nil, nil
	})
	c.API.PrependReactor("create", "selfsubjectaccessreviews", c.review)
	return c
}

// review answers that the user may do everything but what Lacks names.
func (c *Cluster) review(action clienttesting.Action) (bool, runtime.Object, error) {
	review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview)
	asked := review.Spec.ResourceAttributes
	review.Status.Allowed = c.Lacks == nil || !c.Lacks(asked.Verb, asked.Resource)
	return true, review, nil
}

// Node is one that takes pods.
func Node(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		Addresses:  []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: Loopback}},
	}}
}

// Client is a connection to it.
func (c *Cluster) Client() *kubeclient.Client { return kubeclient.NewClient(c.API, c.exec) }

// exec runs an agent, whatever was asked for.
func (c *Cluster) exec(ctx context.Context, in kubeclient.Target, _ []string, s kubeclient.Streams) error {
	if _, err := c.API.CoreV1().Pods(in.Namespace).Get(ctx, in.Pod, metav1.GetOptions{}); err != nil {
		return err
	}
	if c.Refuse != nil {
		if err := c.Refuse(); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c.mu.Lock()
	c.streams[in] = append(c.streams[in], cancel)
	c.mu.Unlock()
	ended := make(chan int, 1)
	go func() { ended <- agent.ServeAs(ctx, s.Stdin, s.Stdout, c.Version) }()
	select {
	case status := <-ended:
		if status != 0 {
			return fmt.Errorf("status %d", status)
		}
		return nil
	case <-ctx.Done():
		return errors.New("connection reset")
	}
}

// Cut cuts the streams of the programs in a pod.
func (c *Cluster) Cut(in kubeclient.Target) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for target, cancels := range c.streams {
		if target.Namespace == in.Namespace && (in.Pod == "" || target.Pod == in.Pod) {
			for _, cancel := range cancels {
				cancel()
			}
			delete(c.streams, target)
		}
	}
}

// create is what controllers and kubelets do about a new object.
func (c *Cluster) create(action clienttesting.Action) (bool, runtime.Object, error) {
	object := action.(clienttesting.CreateAction).GetObject()
	meta, ok := object.(metav1.Object)
	if !ok {
		return false, nil, nil
	}
	if kind := action.GetResource().Resource; c.Forbidden != nil && c.Forbidden(kind, meta.GetName()) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: kind}, meta.GetName(), errors.New("not allowed to"))
	}
	meta.SetCreationTimestamp(metav1.Now())
	c.mu.Lock()
	c.made++
	meta.SetUID(types.UID(fmt.Sprintf("uid-%d", c.made)))
	c.mu.Unlock()
	switch o := object.(type) {
	case *corev1.Pod:
		if c.Change != nil {
			c.Change(o)
		}
		if err := c.schedule(o); err != nil || o.Spec.NodeName == "" {
			return false, nil, err
		}
		o.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIPs: []corev1.PodIP{{IP: Loopback}}, HostIP: Loopback,
			ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}}
		if c.Status != nil {
			c.Status(o)
		}
	case *corev1.Service:
		return false, nil, c.serve(o)
	}
	return false, nil, nil
}

// schedule gives a pod its node: the one that it names, or the first by name that has
// no pod of its run.
func (c *Cluster) schedule(pod *corev1.Pod) error {
	if named := pod.Spec.Affinity.NodeAffinity; named != nil {
		pod.Spec.NodeName = named.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields[0].Values[0]
		return nil
	}
	away := pod.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].LabelSelector
	resource := corev1.SchemeGroupVersion.WithResource("pods")
	list, err := c.API.Tracker().List(resource, corev1.SchemeGroupVersion.WithKind("Pod"), pod.Namespace)
	if err != nil {
		return err
	}
	taken := map[string]bool{}
	for _, other := range list.(*corev1.PodList).Items {
		taken[other.Spec.NodeName] = taken[other.Spec.NodeName] || other.Labels["cnibench/run"] == away.MatchLabels["cnibench/run"]
	}
	for _, name := range c.nodes {
		if !taken[name] {
			pod.Spec.NodeName = name
			return nil
		}
	}
	pod.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
		Message: "0 nodes are available: pod anti-affinity rules"}}}
	return nil
}

// serve gives a service its address; its port of the nodes is its own, as there is
// nothing that would lead from one to the other.
func (c *Cluster) serve(svc *corev1.Service) error {
	if svc.Spec.Type == corev1.ServiceTypeNodePort {
		for i := range svc.Spec.Ports {
			svc.Spec.Ports[i].NodePort = svc.Spec.Ports[i].Port
		}
	}
	if svc.Spec.ClusterIP != corev1.ClusterIPNone {
		svc.Spec.ClusterIP = Loopback
		return nil
	}
	return c.API.Tracker().Add(&discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Name: svc.Name + "-1", Namespace: svc.Namespace, Labels: map[string]string{discoveryv1.LabelServiceName: svc.Name}},
		Endpoints:  []discoveryv1.Endpoint{{Addresses: []string{Loopback}}},
	})
}

// update refuses that of an old version, as an API server does, and may lose the answer.
func (c *Cluster) update(action clienttesting.Action) (bool, runtime.Object, error) {
	resource := action.GetResource()
	next := action.(clienttesting.UpdateAction).GetObject().DeepCopyObject()
	meta, err := apimeta.Accessor(next)
	if err != nil {
		return true, nil, err
	}
	old, err := c.API.Tracker().Get(resource, action.GetNamespace(), meta.GetName())
	if err != nil {
		return true, nil, err
	}
	before, err := apimeta.Accessor(old)
	if err != nil {
		return true, nil, err
	}
	// An update without a version is of whatever there is.
	if v := meta.GetResourceVersion(); v != "" && v != before.GetResourceVersion() {
		return true, nil, apierrors.NewConflict(resource.GroupResource(), meta.GetName(), errors.New("the object has been modified"))
	}
	c.mu.Lock()
	c.versions++
	meta.SetResourceVersion(strconv.Itoa(c.versions))
	c.mu.Unlock()
	if err := c.API.Tracker().Update(resource, next, action.GetNamespace()); err != nil {
		return true, nil, err
	}
	if c.Lose != nil && c.Lose("update", resource.Resource) {
		return true, nil, apierrors.NewTimeoutError("no answer", 0)
	}
	return true, next, nil
}

// delete ends what runs in a pod, and what is in a namespace.
func (c *Cluster) delete(action clienttesting.Action) (bool, runtime.Object, error) {
	name := action.(clienttesting.DeleteAction).GetName()
	if err := c.bounded(action, name); err != nil {
		return true, nil, err
	}
	switch action.GetResource().Resource {
	case "pods":
		c.Cut(kubeclient.Target{Namespace: action.GetNamespace(), Pod: name})
	case "namespaces":
		c.Cut(kubeclient.Target{Namespace: name})
		for _, resource := range []schema.GroupVersionResource{
			corev1.SchemeGroupVersion.WithResource("pods"), corev1.SchemeGroupVersion.WithResource("services"),
			{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}, {Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"},
			{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"},
		} {
			if err := c.empty(resource, name); err != nil {
				return true, nil, err
			}
		}
	}
	return false, nil, nil
}

// bounded refuses a deletion whose UID is not the object's, as an API server does.
func (c *Cluster) bounded(action clienttesting.Action, name string) error {
	resource := action.GetResource()
	only := action.(clienttesting.DeleteActionImpl).DeleteOptions.Preconditions
	if only == nil || only.UID == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.Unconditional = append(c.Unconditional, resource.Resource+" "+name)
		return nil
	}
	object, err := c.API.Tracker().Get(resource, action.GetNamespace(), name)
	if err != nil {
		return err
	}
	meta, err := apimeta.Accessor(object)
	if err == nil && meta.GetUID() != *only.UID {
		err = apierrors.NewConflict(resource.GroupResource(), name, errors.New("the UID is another"))
	}
	return err
}

func (c *Cluster) empty(resource schema.GroupVersionResource, namespace string) error {
	kinds := map[string]string{"pods": "Pod", "services": "Service", "leases": "Lease", "networkpolicies": "NetworkPolicy", "endpointslices": "EndpointSlice"}
	list, err := c.API.Tracker().List(resource, resource.GroupVersion().WithKind(kinds[resource.Resource]), namespace)
	if err != nil {
		return err
	}
	return eachName(list, func(name string) error { return c.API.Tracker().Delete(resource, namespace, name) })
}

func eachName(list runtime.Object, f func(name string) error) error {
	return apimeta.EachListItem(list, func(o runtime.Object) error {
		m, err := apimeta.Accessor(o)
		if err != nil {
			return err
		}
		return f(m.GetName())
	})
}
