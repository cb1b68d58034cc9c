package cluster

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/kubeclient/kubetest"
	"github.com/cnibench/cnibench/internal/result"
)

// adding is a cell that adds pods.
func adding(path string, pods int) result.Cell {
	c := cell(path, result.InterHost)
	c.Workload, c.Pods = result.PodSetupName, pods
	return c
}

// starting has the first process of each added pod run in this one, after a while.
func starting(t *testing.T, c *kubetest.Cluster, after time.Duration) {
	t.Helper()
	c.Status = func(pod *corev1.Pod) {
		argv := pod.Spec.Containers[0].Command
		i := slices.Index(argv, "--report")
		if i < 0 {
			return
		}
		reports, err := agent.ParseNewcomer(argv[i+1])
		if err != nil || reports.Name != pod.Name || pod.Spec.NodeName != "a" || pod.Spec.HostNetwork != strings.HasPrefix(pod.Name, "host-") {
			t.Errorf("pod %s on %s reports as %s: %v", pod.Name, pod.Spec.NodeName, reports, err)
			return
		}
		time.AfterFunc(after, func() { agent.WaitFor(t.Context(), &reports) })
	}
}

// added are the pods of a role that are left.
func added(t *testing.T, c *kubetest.Cluster) []string {
	t.Helper()
	list, err := c.API.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{LabelSelector: roleLabel + "=" + addedRole})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range list.Items {
		names = append(names, p.Name)
	}
	return names
}

func prepared(t *testing.T, c *kubetest.Cluster, cells ...result.Cell) *Testbed {
	t.Helper()
	b, _ := open(t, c)
	if _, err := b.Prepare(t.Context(), cells); err != nil {
		t.Fatal(err)
	}
	if unsupported, err := b.Build(t.Context(), cells); err != nil || len(unsupported) > 0 {
		t.Fatal(unsupported, err)
	}
	t.Cleanup(func() {
		if err := b.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return b
}

// Each added pod has the time until its process ran and until its report came, and none is left.
func TestAddedPodsReport(t *testing.T) {
	const after = 300 * time.Millisecond
	c := kubetest.New("a", "b")
	starting(t, c, after)
	pods, bare := adding(result.PathPodToPod, 3), adding(result.PathHostToHost, 1)
	b := prepared(t, c, pods, bare)
	for _, one := range []result.Cell{pods, bare, pods} {
		set, err := b.AddPods(t.Context(), one)
		if err != nil || len(set.Pods) != one.Pods || len(set.Doubts) > 0 {
			t.Fatalf("%s: %+v, %v", one.Path, set, err)
		}
		for _, p := range set.Pods {
			if p.Started == nil || p.Answered == nil || *p.Started < after-50*time.Millisecond || *p.Answered < *p.Started || *p.Answered > 20*time.Second {
				t.Errorf("%s: started after %v, answered after %v", one.Path, p.Started, p.Answered)
			}
			if p.Added != nil || p.Removed != nil || p.Device != nil {
				t.Errorf("what only the lab sees: %+v", p)
			}
		}
		if names := added(t, c); len(names) > 0 {
			t.Errorf("left: %v", names)
		}
	}
}

// A pod that can never run fails its sample at once, with its reason; one that does not report in
// time fails it too. Neither leaves a pod, and the next sample is measured.
func TestAddedPodsThatFail(t *testing.T) {
	c := kubetest.New("a", "b")
	one := adding(result.PathPodToPod, 2)
	b := prepared(t, c, one)
	c.Status = func(pod *corev1.Pod) {
		if pod.Labels[roleLabel] == addedRole {
			pod.Status = corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{
				{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImageNeverPull"}}}}}
		}
	}
	if _, err := b.AddPods(t.Context(), one); err == nil || !strings.Contains(err.Error(), "ErrImageNeverPull") {
		t.Errorf("%v", err)
	}
	c.Status = nil // they run, and say nothing
	ctx, cancel := context.WithTimeoutCause(t.Context(), 300*time.Millisecond, errors.New("no end after 300 ms"))
	defer cancel()
	if _, err := b.AddPods(ctx, one); err == nil || !strings.Contains(err.Error(), "2 of 2 added pods run") {
		t.Errorf("%v", err)
	}
	c.Forbidden = func(kind, name string) bool { return kind == "pods" && strings.HasSuffix(name, "-3-2") }
	if _, err := b.AddPods(t.Context(), one); err == nil || !strings.Contains(err.Error(), "not allowed to") {
		t.Errorf("%v", err)
	}
	c.Forbidden = nil
	if names := added(t, c); len(names) > 0 {
		t.Errorf("left: %v", names)
	}
	starting(t, c, 0)
	if set, err := b.AddPods(t.Context(), one); err != nil || len(set.Pods) != 2 {
		t.Errorf("%+v, %v", set, err)
	}
}

// TestAddedPodsWaitForAThawedNode: pods are added to a cluster that was frozen once its node takes
// some again, and only after the cluster has changed.
func TestAddedPodsWaitForAThawedNode(t *testing.T) {
	c := kubetest.New("a", "b")
	starting(t, c, 0)
	one := adding(result.PathPodToPod, 1)
	b := prepared(t, c, one)
	b.SetAgents(func(string, string) []int { return nil })
	focused := 0
	b.SetFocus(func(context.Context, string) error { focused++; return nil })
	ready := func(status corev1.ConditionStatus) {
		node := kubetest.Node("a")
		node.Status.Conditions[0].Status, node.Status.Conditions[0].Reason = status, "KubeletTold"
		if _, err := c.API.CoreV1().Nodes().Update(t.Context(), node, metav1.UpdateOptions{}); err != nil {
			t.Error(err)
		}
	}
	b.clusters[0].name = "c"
	b.clusters[0].named.Name = "c"
	one.Cluster = "c"
	ready(corev1.ConditionFalse)
	time.AfterFunc(steadyAfter+time.Second, func() { ready(corev1.ConditionTrue) })
	began := time.Now()
	for i, least := range []time.Duration{steadyAfter + time.Second, 0} {
		set, err := b.AddPods(t.Context(), one)
		took := time.Since(began)
		if err != nil || len(set.Pods) != 1 || *set.Pods[0].Answered > steadyAfter || took < least || i == 1 && took > 2*steadyAfter+time.Second {
			t.Errorf("%d: %v, %+v, %v", i, took, set, err)
		}
	}
	if focused != 1 {
		t.Errorf("focused %d times", focused)
	}
}

func TestAddedPodsAreUnsupported(t *testing.T) {
	policies := adding(result.PathPodToPod, 1)
	policies.Policies = 10
	for one, why := range map[result.Cell]string{
		policies: "measure it in the lab", adding(result.PathPodToClusterIP, 1): "leads to a service", adding(result.PathPodToPod, 1): "",
	} {
		err := supportAdded(one)
		if (err == nil) != (why == "") || err != nil && !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v, want %q", one.Path, err, why)
		}
	}
}
