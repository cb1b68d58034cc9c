package cluster

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/kubeclient"
	"github.com/cnibench/cnibench/internal/kubeclient/kubetest"
	"github.com/cnibench/cnibench/internal/result"
)

// said is what a testbed tells people.
type said struct {
	mu    sync.Mutex
	lines []string
}

func (s *said) say(format string, _ ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, format)
}

func (s *said) has(words string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Contains(strings.Join(s.lines, "\n"), words)
}

func open(t *testing.T, c *kubetest.Cluster) (*Testbed, *said) {
	t.Helper()
	heard := &said{}
	b, err := Open(Options{Clusters: []campaign.Cluster{{}}, Image: "image", Say: heard.say,
		Connect: func(string, string) (*kubeclient.Client, error) { return c.Client(), nil }})
	if err != nil {
		t.Fatal(err)
	}
	return b, heard
}

func cell(path, placement string) result.Cell {
	network := "bridge"
	if path == result.PathHostToHost {
		network = result.HostNetwork
	}
	return result.Cell{Network: network, Path: path, Placement: placement, Link: "unshaped", Profile: "default_settings", MTU: 65536, Workload: "tcp_rr"}
}

// left is how many namespaces there are.
func left(t *testing.T, c *kubetest.Cluster) []string {
	t.Helper()
	list, err := c.API.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, ns := range list.Items {
		names = append(names, ns.Name)
	}
	return names
}

func TestEveryPathHasItsEnds(t *testing.T) {
	c := kubetest.New("a", "b")
	b, _ := open(t, c)
	want := map[string]struct {
		client, server string
		serve, target  uint16
	}{
		result.PathPodToPod:       {"pod-client-1 on a", "pod-server-2 on b", 0, 0},
		result.PathPodToClusterIP: {"pod-client-1 on a", "pod-server-2 on b", servicePort, servicePort},
		result.PathPodToNodePort:  {"pod-client-1 on a", "pod-server-2 on b", servicePort, servicePort},
		result.PathPodToHeadless:  {"pod-client-1 on a", "pod-server-2 on b", servicePort, servicePort},
		result.PathHostToHost:     {"host-client-1 on a", "host-server-2 on b", 0, 0},
		result.PathHostToPod:      {"host-client-1 on a", "pod-server-2 on b", 0, 0},
		result.PathPodToHost:      {"pod-client-1 on a", "host-server-2 on b", 0, 0},
	}
	var cells []result.Cell
	for path := range want {
		cells = append(cells, cell(path, result.InterHost), cell(path, result.IntraHost))
	}
	found, err := b.Prepare(t.Context(), cells)
	if err != nil {
		t.Fatal(err)
	}
	if found[0].MTU != 65536 { // that of lo, which has the address
		t.Errorf("found %+v", found)
	}
	if unsupported, err := b.Build(t.Context(), cells); err != nil || len(unsupported) > 0 {
		t.Errorf("%v, %v", unsupported, err)
	}
	for path, w := range want {
		ends, err := b.Ends(t.Context(), cell(path, result.InterHost))
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if ends.Client.Name != w.client || ends.Server.Name != w.server || ends.ServerPort != w.serve || ends.TargetPort != w.target ||
			ends.ServerAddress.String() != kubetest.Loopback || ends.Client.MTU != 65536 || !ends.SharedClock {
			t.Errorf("%s: %+v", path, ends)
		}
	}
	ends, err := b.Ends(t.Context(), cell(result.PathPodToPod, result.IntraHost))
	if err != nil || ends.Server.Name != "pod-server-1 on a" {
		t.Errorf("inside a node: %+v, %v", ends, err)
	}
	env, err := b.Environment(t.Context())
	if err != nil || len(env.Places) != 6 || len(env.Clusters[campaign.TheCluster].Nodes) != 2 {
		t.Errorf("%+v, %v", env, err)
	}
	if err := b.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if names := left(t, c); len(names) > 0 {
		t.Errorf("left: %v", names)
	}
}

// TestAgentsOfAnotherVersion: an image of another version is an error with its cure, and one
// of an unknown version is reported.
func TestAgentsOfAnotherVersion(t *testing.T) {
	for _, k := range []struct{ image, program, want, said string }{
		{"v1.2.3", "v1.2.3", "", ""},
		{"v1.2.3", "v1.2.4", "image image holds cnibench v1.2.3, and this program is v1.2.4 (give the nodes", ""},
		{"devel", "v1.2.4", "", "is not known"},
		{"v1.2.3", "", "", ""},
	} {
		c := kubetest.New("a", "b")
		c.Version = k.image
		b, heard := open(t, c)
		b.clusters[0].options.Version = k.program
		_, err := b.Prepare(t.Context(), []result.Cell{cell(result.PathPodToPod, result.InterHost)})
		if (err == nil) != (k.want == "") || err != nil && !strings.Contains(err.Error(), k.want) {
			t.Errorf("%+v: %v", k, err)
		}
		if heard.has("is not known") != (k.said != "") {
			t.Errorf("%+v: said %q", k, heard.lines)
		}
		if err := b.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if names := left(t, c); len(names) > 0 {
			t.Errorf("left: %v", names)
		}
	}
}

// The pods of the default pass Pod Security "restricted", word for word.
func TestPodsAreRestricted(t *testing.T) {
	c := newCluster(campaign.Cluster{}, kubetest.New().Client(), Options{Image: "image"})
	c.run, c.nodes = "r", []corev1.Node{*kubetest.Node("a")}
	spec := c.podOf(end{role: client, node: 1}, "p").Spec
	sc := spec.Containers[0].SecurityContext
	if spec.HostNetwork || *sc.AllowPrivilegeEscalation || !*sc.RunAsNonRoot || *sc.RunAsUser == 0 || len(sc.Capabilities.Add) > 0 ||
		len(sc.Capabilities.Drop) != 1 || sc.Capabilities.Drop[0] != "ALL" || sc.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("%+v", spec)
	}
	c.options.Unconfined = true
	if got := c.podOf(end{role: client, node: 1}, "p").Spec.Containers[0].SecurityContext.SeccompProfile.Type; got != corev1.SeccompProfileTypeUnconfined {
		t.Errorf("unconfined pods have the seccomp profile %s", got)
	}
	if r := spec.Containers[0].Resources; r.Requests.Cpu().IsZero() || r.Requests.Memory().IsZero() || len(r.Limits) > 0 {
		t.Errorf("resources %+v: requests are set, and no limit throttles what is measured", r)
	}
	if spec.AutomountServiceAccountToken == nil || *spec.AutomountServiceAccountToken || spec.ActiveDeadlineSeconds == nil {
		t.Errorf("%+v", spec)
	}
}

// Nothing is privileged unless it was allowed; then the namespace's label allows it.
func TestPrivilegedOnlyWhenAllowed(t *testing.T) {
	for _, allowed := range []bool{false, true} {
		api := kubetest.New("a", "b")
		b, _ := open(t, api)
		b.clusters[0].options.Privileged = allowed
		if _, err := b.Prepare(t.Context(), []result.Cell{cell(result.PathPodToPod, result.InterHost)}); err != nil {
			t.Fatal(err)
		}
		c := b.clusters[0]
		ns, err := api.API.CoreV1().Namespaces().Get(t.Context(), namespaceOf(c.run, false), metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		sc := c.podOf(end{role: client, node: 1}, "p").Spec.Containers[0].SecurityContext
		level := ns.Labels["pod-security.kubernetes.io/enforce"]
		if is := sc.Privileged != nil && *sc.Privileged; is != allowed || (level == "privileged") != allowed || (level == "restricted") == allowed {
			t.Errorf("allowed %v: privileged %v, level %s", allowed, is, level)
		}
		if err := b.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestWhatIsGoneIsMadeAnew(t *testing.T) {
	c := kubetest.New("a", "b")
	b, heard := open(t, c)
	pods := cell(result.PathPodToPod, result.InterHost)
	if _, err := b.Prepare(t.Context(), []result.Cell{pods}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := b.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if names := left(t, c); len(names) > 0 {
			t.Errorf("left: %v", names)
		}
	}()
	server := func() kubeclient.Target {
		return kubeclient.Target{Namespace: namespaceOf(b.clusters[0].run, false), Pod: "pod-server-2"}
	}
	for what, breakIt := range map[string]func() error{
		"stream cut": func() error { c.Cut(kubeclient.Target{Namespace: server().Namespace}); return nil },
		"pod deleted": func() error {
			return c.API.CoreV1().Pods(server().Namespace).Delete(t.Context(), b.clusters[0].pods[end{role: "server", node: 2}].name, metav1.DeleteOptions{})
		},
		"namespace deleted": func() error {
			return c.API.CoreV1().Namespaces().Delete(t.Context(), server().Namespace, metav1.DeleteOptions{})
		},
	} {
		before, err := b.Ends(t.Context(), pods)
		if err != nil {
			t.Fatal(err)
		}
		if err := breakIt(); err != nil {
			t.Fatal(err)
		}
		for i := 0; before.Server.Agent.Alive() && i < 500; i++ {
			time.Sleep(10 * time.Millisecond)
		}
		after, err := b.Ends(t.Context(), pods)
		if err != nil || !after.Server.Agent.Alive() || !after.Client.Agent.Alive() || after.Server.Agent == before.Server.Agent {
			t.Errorf("%s: %v, the same agent %v", what, err, after.Server.Agent == before.Server.Agent)
		}
	}
	if !heard.has("is gone: it is created again") || !heard.has("was deleted: everything is created again") {
		t.Errorf("there was no message: %q", heard.lines)
	}
}

func TestErrorsLeaveNothing(t *testing.T) {
	for what, k := range map[string]struct {
		change func(*kubetest.Cluster)
		want   string
	}{
		"image": {func(c *kubetest.Cluster) {
			c.Status = func(p *corev1.Pod) {
				p.Status = corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{
					Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImageNeverPull", Message: "not present"}}}}}
			}
		}, "cnibench image --to"},
		"namespace": {func(c *kubetest.Cluster) {
			c.Forbidden = func(kind, _ string) bool { return kind == "namespaces" }
		}, "cnibench rbac"},
		"pod ends": {func(c *kubetest.Cluster) {
			c.Status = func(p *corev1.Pod) {
				p.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "OutOfcpu", Message: "node has 0"}
			}
		}, "it ended: OutOfcpu: node has 0"},
	} {
		c := kubetest.New("a", "b")
		k.change(c)
		b, _ := open(t, c)
		_, err := b.Prepare(t.Context(), []result.Cell{cell(result.PathPodToPod, result.InterHost)})
		if err == nil || !strings.Contains(err.Error(), k.want) {
			t.Errorf("%s: %v, want %q", what, err, k.want)
		}
		if names := left(t, c); len(names) > 0 {
			t.Errorf("%s: left: %v", what, names)
		}
	}
}

// Without the namespace of hosts everything but the baseline is measured.
func TestNoBaselineWithoutHostPods(t *testing.T) {
	c := kubetest.New("a", "b")
	c.Forbidden = func(kind, name string) bool { return kind == "namespaces" && strings.HasPrefix(name, "cnb-host-") }
	b, _ := open(t, c)
	cells := []result.Cell{cell(result.PathPodToPod, result.InterHost), cell(result.PathHostToHost, result.InterHost)}
	if _, err := b.Prepare(t.Context(), cells); err != nil {
		t.Fatal(err)
	}
	unsupported, err := b.Build(t.Context(), cells)
	if err != nil || len(unsupported) != 1 || !strings.Contains(unsupported[cells[1]], "cnibench rbac") {
		t.Errorf("%v, %v", unsupported, err)
	}
	if err := b.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestCleanLeavesLivingRunsAndStrangers(t *testing.T) {
	c := kubetest.New("a")
	b, _ := open(t, c)
	if _, err := b.Prepare(t.Context(), []result.Cell{cell(result.PathPodToPod, result.IntraHost)}); err != nil {
		t.Fatal(err)
	}
	gone, life := "elsewhere 1 1", int32(120)
	long := metav1.NewMicroTime(time.Now().Add(-time.Hour))
	for name, labels := range map[string]map[string]string{"cnb-dead": labels("dead"), "cnb-host-dead": labels("dead"), "mine": labels("dead"), "other": nil} {
		_, err := c.API.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := c.API.CoordinationV1().Leases("cnb-dead").Create(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: leaseName},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &gone, RenewTime: &long, LeaseDurationSeconds: &life}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	cleaned, err := cleanAtOnce(t, c, "")
	if err != nil || len(cleaned) != 2 {
		t.Errorf("cleaned %q, %v", cleaned, err)
	}
	if names := strings.Join(left(t, c), " "); strings.Contains(names, "dead") || !strings.Contains(names, "mine") || !strings.Contains(names, "other") ||
		!strings.Contains(names, namespaceOf(b.clusters[0].run, false)) {
		t.Errorf("left: %s", names)
	}
	if err := b.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestHindrances(t *testing.T) {
	waiting := func(reason string) corev1.PodStatus {
		return corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "why"}}}}}
	}
	unscheduled := func(why string) corev1.PodStatus {
		return corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: why}}}
	}
	for _, k := range []struct {
		status corev1.PodStatus
		want   string
		final  bool
	}{
		{waiting("ContainerCreating"), "", false},
		{waiting("ErrImagePull"), "cannot be pulled: ErrImagePull: why", false},
		{waiting("InvalidImageName"), "InvalidImageName", true},
		{waiting("CreateContainerConfigError"), "CreateContainerConfigError: why", false},
		{unscheduled("0/2 nodes are available: 1 Insufficient cpu"), "make room", false},
		{unscheduled("0/2 nodes are available: 1 node had untolerated taint {a: b}"), "tainted", false},
		{corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted"}, "it ended: Evicted", true},
	} {
		e, final := hindrance(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Status: k.status}, "image")
		if k.want == "" && e == nil {
			continue
		}
		if e == nil || !strings.Contains(e.Error(), k.want) || final != k.final {
			t.Errorf("%+v: %v, final %v", k.status, e, final)
		}
	}
}

func TestNodesAreChosen(t *testing.T) {
	zone := func(n *corev1.Node, z string) corev1.Node {
		n.Labels = map[string]string{corev1.LabelTopologyZone: z}
		return *n
	}
	a, b, cc := zone(kubetest.Node("a"), "x"), zone(kubetest.Node("b"), "y"), zone(kubetest.Node("c"), "x")
	b.Spec.Taints = []corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}}
	all := []corev1.Node{a, b, cc}
	names := func(nodes []corev1.Node) string {
		var s []string
		for _, n := range nodes {
			s = append(s, n.Name)
		}
		return strings.Join(s, " ")
	}
	if got, err := namedNodes(all, []string{"c", "a"}); err != nil || names(got) != "c a" {
		t.Errorf("named: %v, %v", names(got), err)
	}
	if _, err := namedNodes(all, []string{"b", "d"}); err == nil || !strings.Contains(err.Error(), "is tainted: gpu:NoSchedule") || !strings.Contains(err.Error(), "no node d") {
		t.Errorf("named: %v", err)
	}
	good := []corev1.Node{a, cc}
	if got, err := zoneNodes(good, []string{"x", "x"}, nil); err != nil || names(got) != "a c" {
		t.Errorf("zones: %v, %v", names(got), err)
	}
	if _, err := zoneNodes(good, []string{"x", "y"}, []string{"b is tainted"}); err == nil || !strings.Contains(err.Error(), "b is tainted") {
		t.Errorf("zones: %v", err)
	}
	c := kubetest.New("n2", "n1", "n3")
	opened, _ := open(t, c)
	if got, err := opened.clusters[0].chooseNodes(t.Context()); err != nil || names(got) != "n1 n2" {
		t.Errorf("automatic: %v, %v", names(got), err)
	}
	tainted := kubetest.New("n1")
	node := kubetest.Node("n1")
	node.Spec.Taints = []corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}}
	if err := tainted.API.Tracker().Update(corev1.SchemeGroupVersion.WithResource("nodes"), node, ""); err != nil {
		t.Fatal(err)
	}
	none, _ := open(t, tainted)
	if _, err := none.clusters[0].chooseNodes(t.Context()); err == nil || !strings.Contains(err.Error(), "n1 is tainted: gpu:NoSchedule") || !strings.Contains(err.Error(), "kubectl taint node") {
		t.Errorf("tainted: %v", err)
	}
	empty, _ := open(t, kubetest.New())
	if _, err := empty.clusters[0].chooseNodes(t.Context()); err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("no node: %v", err)
	}
}

// A user with too few rights gets the list of what is missing, and nothing is
// made.
func TestLackingRightsMakeNothing(t *testing.T) {
	c := kubetest.New("a", "b")
	c.Lacks = func(verb, resource string) bool { return resource == "pods" && verb != "get" }
	b, _ := open(t, c)
	_, err := b.Prepare(t.Context(), []result.Cell{cell(result.PathPodToPod, result.InterHost)})
	var denied *kubeclient.Denied
	if !errors.As(err, &denied) || len(denied.Lacks) != 3 {
		t.Errorf("%v", err) // create and delete pods, create pods/exec
	}
	for _, a := range c.API.Actions() {
		if a.GetVerb() == "create" && !strings.HasPrefix(a.GetResource().Resource, "selfsubject") {
			t.Errorf("it made %s", a.GetResource().Resource)
		}
	}
}

// TestOtherNetworkIsRefused: a cluster that has another network than the campaign names is refused
// with what it has, and nothing is left in it.
func TestOtherNetworkIsRefused(t *testing.T) {
	for _, same := range []bool{true, false} {
		c := kubetest.New("a", "b")
		b, _ := open(t, c)
		found, err := b.Prepare(t.Context(), []result.Cell{cell(result.PathPodToPod, result.InterHost)})
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		named := found[0].Network
		if !same {
			named = "calico/ipip"
		}
		b.clusters[0].named.Network = named
		_, err = b.Prepare(t.Context(), []result.Cell{cell(result.PathPodToPod, result.InterHost)})
		if (err == nil) != same || err != nil && !strings.Contains(err.Error(), "it has the network "+found[0].Network+", and the campaign says calico/ipip: use a cluster") {
			t.Errorf("%s: %v", named, err)
		}
		if same {
			err = b.Close(t.Context())
		}
		if names := left(t, c); len(names) > 0 || same && err != nil {
			t.Errorf("left: %v, %v", names, err)
		}
	}
}
