package cluster

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/kubeclient"
	"github.com/cnibench/cnibench/internal/kubeclient/kubetest"
	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/result"
)

// team is a cluster of which the user has one namespace and no more: no other
// namespace, no node. Somebody else's pod and service are in it.
func team(t *testing.T, nodes ...string) *kubetest.Cluster {
	t.Helper()
	c := kubetest.New(nodes...)
	for _, err := range []error{
		c.API.Tracker().Add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}),
		c.API.Tracker().Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "team"}}),
		c.API.Tracker().Add(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "team", Labels: map[string]string{managedBy: "helm"}}}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	c.Lacks = func(_, resource string) bool { return resource == "namespaces" || resource == "nodes" }
	t.Cleanup(func() {
		for _, a := range c.API.Actions() {
			if a.GetResource().Resource == "namespaces" {
				t.Errorf("it did %s namespaces", a.GetVerb())
			}
			if n := a.GetNamespace(); n != "team" && n != "" && a.GetVerb() != "get" { // it tries to read what a network is configured with
				t.Errorf("it did %s %s in namespace %s", a.GetVerb(), a.GetResource().Resource, n)
			}
		}
	})
	return c
}

func openTeam(t *testing.T, c *kubetest.Cluster, named campaign.Cluster) (*Testbed, *said) {
	t.Helper()
	heard := &said{}
	named.Namespace = "team"
	b, err := Open(Options{Clusters: []campaign.Cluster{named}, Image: "image", Say: heard.say,
		Connect: func(string, string) (*kubeclient.Client, error) { return c.Client(), nil }})
	if err != nil {
		t.Fatal(err)
	}
	return b, heard
}

// ofTeam is what is in the namespace.
func ofTeam(t *testing.T, c *kubetest.Cluster) []string {
	t.Helper()
	all, _, err := objects(t.Context(), c.Client(), "team")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, o := range all {
		names = append(names, o.kind)
	}
	slices.Sort(names)
	return names
}

// A user without rights outside one namespace measures every path in it, on nodes that
// the scheduler chose, and leaves there what was there.
func TestWithinANamespace(t *testing.T) {
	labtest.Slow(t)
	c := team(t, "a", "b")
	b, _ := openTeam(t, c, campaign.Cluster{})
	cells := []result.Cell{cell(result.PathPodToPod, result.InterHost), cell(result.PathPodToPod, result.IntraHost)}
	for _, path := range []string{result.PathPodToClusterIP, result.PathPodToNodePort, result.PathPodToHeadless, result.PathHostToHost} {
		cells = append(cells, cell(path, result.InterHost))
	}
	if _, err := b.Prepare(t.Context(), cells); err != nil {
		t.Fatal(err)
	}
	if unsupported, err := b.Build(t.Context(), cells); err != nil || len(unsupported) > 0 {
		t.Errorf("%v, %v", unsupported, err)
	}
	for _, one := range cells {
		want := map[string]string{result.InterHost: "b", result.IntraHost: "a"}[one.Placement]
		if ends, err := b.Ends(t.Context(), one); err != nil || ends.Client.Node != "a" || ends.Server.Node != want || ends.ServerAddress.String() != kubetest.Loopback {
			t.Errorf("%s %s: %+v, %v", one.Path, one.Placement, ends, err)
		}
	}
	env, err := b.Environment(t.Context())
	facts := env.Clusters[campaign.TheCluster]
	if err != nil || facts.Namespace != "team" || facts.Nodes["a"].Kernel == "" || facts.Nodes["b"].Kernel == "" || !strings.Contains(strings.Join(facts.Undetermined, "\n"), "nodes: ") {
		t.Errorf("%+v, %v", facts, err)
	}
	// A second run at the same time has pods, services and a lease of its own.
	other, _ := openTeam(t, c, campaign.Cluster{Nodes: []string{"b", "a"}})
	if _, err := other.Prepare(t.Context(), cells[:2]); err != nil {
		t.Fatal(err)
	}
	if ends, err := other.Ends(t.Context(), cells[0]); err != nil || ends.Client.Node != "b" {
		t.Errorf("%+v, %v", ends, err)
	}
	if err := other.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := b.Ends(t.Context(), cells[0]); err != nil {
		t.Errorf("the first run after the second: %v", err)
	}
	if err := b.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if names := ofTeam(t, c); len(names) > 0 {
		t.Errorf("left: %v", names)
	}
	_, podErr := c.API.CoreV1().Pods("team").Get(t.Context(), "web", metav1.GetOptions{})
	_, serviceErr := c.API.CoreV1().Services("team").Get(t.Context(), "web", metav1.GetOptions{})
	if err := errors.Join(podErr, serviceErr); err != nil {
		t.Errorf("what was somebody else's is gone: %v", err)
	}
}

// Where the scheduler finds no second node, one is measured; zones and pairs of nodes
// that nobody may list are an error, and nothing is made.
func TestWithinOneNode(t *testing.T) {
	labtest.Slow(t)
	c := team(t, "a")
	b, _ := openTeam(t, c, campaign.Cluster{})
	cells := []result.Cell{cell(result.PathPodToPod, result.IntraHost), cell(result.PathPodToPod, result.InterHost)}
	if _, err := b.Prepare(t.Context(), cells); err != nil {
		t.Fatal(err)
	}
	unsupported, err := b.Build(t.Context(), cells)
	if err != nil || len(unsupported) != 1 || !strings.Contains(unsupported[cells[1]], "anti-affinity") {
		t.Errorf("%v, %v", unsupported, err)
	}
	if err := b.Close(t.Context()); err != nil {
		t.Error(err)
	}
	zones, _ := openTeam(t, c, campaign.Cluster{Zones: []string{"x", "y"}})
	if _, err := zones.Prepare(t.Context(), cells); err == nil || !strings.Contains(err.Error(), "name the nodes in the campaign's clusters") {
		t.Errorf("zones: %v", err)
	}
	if names := ofTeam(t, c); len(names) > 0 {
		t.Errorf("left: %v", names)
	}
}

// What a killed run left is found by its labels; runs that live, and what is somebody
// else's, stay.
func TestCleanWithinANamespace(t *testing.T) {
	labtest.Slow(t)
	c := team(t, "a")
	b, _ := openTeam(t, c, campaign.Cluster{})
	if _, err := b.Prepare(t.Context(), []result.Cell{cell(result.PathPodToPod, result.IntraHost)}); err != nil {
		t.Fatal(err)
	}
	before := ofTeam(t, c)
	gone, life, long := "elsewhere 1 1", int32(120), metav1.NewMicroTime(time.Now().Add(-time.Hour))
	for _, err := range []error{
		c.API.Tracker().Add(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "cnb-dead-run", Namespace: "team", Labels: labels("dead")},
			Spec: coordinationv1.LeaseSpec{HolderIdentity: &gone, RenewTime: &long, LeaseDurationSeconds: &life}}),
		c.API.Tracker().Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "cnb-dead-pod", Namespace: "team", Labels: labels("dead")}}),
		c.API.Tracker().Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "cnb-lost-pod", Namespace: "team", Labels: labels("lost")}}), // its lease is gone
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	cleared, err := cleanAtOnce(t, c, "team")
	if want := []string{"what run lost left in namespace team", "what run dead left in namespace team"}; err != nil || !slices.Equal(cleared, want) {
		t.Errorf("%q, %v", cleared, err)
	}
	if after := ofTeam(t, c); !slices.Equal(after, before) {
		t.Errorf("before %v, after %v", before, after)
	}
	if err := b.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// With less than the namespace's rights the error says which, and nothing is created.
func TestLackingRightsWithin(t *testing.T) {
	c := team(t, "a")
	c.Lacks = func(verb, resource string) bool { return resource == "pods" && verb == "list" }
	b, _ := openTeam(t, c, campaign.Cluster{})
	_, err := b.Prepare(t.Context(), []result.Cell{cell(result.PathPodToPod, result.IntraHost)})
	var denied *kubeclient.Denied
	if !errors.As(err, &denied) || len(denied.Lacks) != 1 || !strings.Contains(err.Error(), "list pods in namespace team") ||
		!strings.Contains(err.Error(), "an admin of namespace team can allow it: cnibench rbac --namespace team --user") {
		t.Errorf("%v", err)
	}
	if names := ofTeam(t, c); len(names) > 0 {
		t.Errorf("made %v", names)
	}
}

// A cluster that gives pods a limit, or another container, falsifies what is measured:
// the one is reported and recorded, the other refused.
func TestWhatTheClusterGivesPods(t *testing.T) {
	c := kubetest.New("a", "b")
	c.Change = func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m")}
	}
	b, heard := open(t, c)
	if _, err := b.Prepare(t.Context(), []result.Cell{cell(result.PathPodToPod, result.IntraHost)}); err != nil {
		t.Fatal(err)
	}
	env, err := b.Environment(t.Context())
	if err != nil || env.Places["pod-client-1 on a"].Limits["cpu"] != "500m" || !heard.has("LimitRange") {
		t.Errorf("%+v, %v, %q", env.Places, err, heard.lines)
	}
	if err := b.Close(t.Context()); err != nil {
		t.Error(err)
	}
	c.Change = func(p *corev1.Pod) {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "istio-proxy"})
	}
	b, _ = open(t, c)
	if _, err := b.Prepare(t.Context(), []result.Cell{cell(result.PathPodToPod, result.IntraHost)}); err == nil || !strings.Contains(err.Error(), "istio-proxy") {
		t.Errorf("%v", err)
	}
	if names := left(t, c); len(names) > 0 {
		t.Errorf("left: %v", names)
	}
}
