package cluster

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnibench/cnibench/internal/kubeclient"
	"github.com/cnibench/cnibench/internal/kubeclient/kubetest"
	"github.com/cnibench/cnibench/internal/result"
)

// A kubelet that comes back within the testbed's patience fails no sample. One that
// does not is waited for once; then samples fail at once, until it is back.
func TestKubeletIsWaitedForOnce(t *testing.T) {
	var refuse, tries atomic.Int64
	c := kubetest.New("a", "b")
	c.Refuse = func() error {
		if tries.Add(1); refuse.Load() > 0 {
			refuse.Add(-1)
			return errors.New("dial tcp 198.18.0.2:10250: connect: connection refused")
		}
		return nil
	}
	b, _ := open(t, c)
	pods := cell(result.PathPodToPod, result.InterHost)
	if _, err := b.Prepare(t.Context(), []result.Cell{pods}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := b.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	b.clusters[0].options.Patience = 2 * poll
	lose := func() {
		ends, err := b.Ends(t.Context(), pods)
		if err != nil {
			t.Fatal(err)
		}
		c.Cut(kubeclient.Target{Namespace: namespaceOf(b.clusters[0].run, false), Pod: "pod-server-2"})
		for i := 0; ends.Server.Agent.Alive() && i < 500; i++ {
			time.Sleep(10 * time.Millisecond)
		}
		tries.Store(0)
	}
	lose()
	refuse.Store(1)
	if _, err := b.Ends(t.Context(), pods); err != nil || tries.Load() != 2 {
		t.Errorf("a kubelet that came back: %v after %d tries, want 2", err, tries.Load())
	}
	lose()
	refuse.Store(1000)
	if _, err := b.Ends(t.Context(), pods); err == nil || !strings.Contains(err.Error(), "connection refused") || tries.Load() < 2 {
		t.Errorf("a kubelet that stays away: %v after %d tries", err, tries.Load())
	}
	tries.Store(0)
	if _, err := b.Ends(t.Context(), pods); err == nil || tries.Load() != 1 {
		t.Errorf("the next sample: %v after %d tries, want 1", err, tries.Load())
	}
	refuse.Store(0)
	if _, err := b.Ends(t.Context(), pods); err != nil {
		t.Errorf("when it is back: %v", err)
	}
}

// A pod that nothing became of is explained by its kubelet's lease, not by the node's
// condition, which may say Ready for as long as the cluster's controllers like.
func TestSilentKubelet(t *testing.T) {
	c := kubetest.New("a")
	b, _ := open(t, c)
	made := time.Now()
	for name, k := range map[string]struct {
		renewed time.Duration // after the pod was made
		want    string
	}{
		"silent": {-73 * time.Second, "the kubelet of silent was last heard of 1m13s before"},
		"heard":  {time.Second, ""},
	} {
		at := metav1.NewMicroTime(made.Add(k.renewed))
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: coordinationv1.LeaseSpec{RenewTime: &at}}
		if _, err := c.API.CoordinationV1().Leases(corev1.NamespaceNodeLease).Create(t.Context(), lease, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(made)}, Spec: corev1.PodSpec{NodeName: name}}
		if got := b.clusters[0].silence(t.Context(), pod); !strings.HasPrefix(got, k.want) || k.want == "" && got != "" {
			t.Errorf("%s: %q, want %q", name, got, k.want)
		}
		pod.Status.StartTime = &metav1.Time{Time: made}
		if got := b.clusters[0].silence(t.Context(), pod); got != "" {
			t.Errorf("%s has begun with the pod: %q", name, got)
		}
	}
	if got := b.clusters[0].silence(t.Context(), &corev1.Pod{Spec: corev1.PodSpec{NodeName: "unknown"}}); got != "" {
		t.Errorf("of a node without a lease: %q", got)
	}
}
