package cluster

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnibench/cnibench/internal/result"
)

// TestPodStart: each figure is a difference of timestamps, and what the status does
// not tell is absent.
func TestPodStart(t *testing.T) {
	at := func(second int) metav1.Time { return metav1.NewTime(time.Unix(int64(1000+second), 0)) }
	seconds := func(v float64) *float64 { return &v }
	condition := func(of corev1.PodConditionType, status corev1.ConditionStatus, second int) corev1.PodCondition {
		return corev1.PodCondition{Type: of, Status: status, LastTransitionTime: at(second)}
	}
	taken := at(1)
	running := []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at(4)}}}}
	for name, c := range map[string]struct {
		status corev1.PodStatus
		want   *result.PodStart
	}{
		"all": {
			corev1.PodStatus{StartTime: &taken, ContainerStatuses: running, Conditions: []corev1.PodCondition{
				condition(corev1.PodScheduled, corev1.ConditionTrue, 0), condition(corev1.PodReadyToStartContainers, corev1.ConditionTrue, 3)}},
			&result.PodStart{ScheduledSeconds: seconds(0), TakenSeconds: seconds(1), NetworkSeconds: seconds(3), StartedSeconds: seconds(4)},
		},
		"an old kubelet, and no node yet": {
			corev1.PodStatus{StartTime: &taken, Conditions: []corev1.PodCondition{condition(corev1.PodScheduled, corev1.ConditionFalse, 2)}},
			&result.PodStart{TakenSeconds: seconds(1)},
		},
		"nothing": {corev1.PodStatus{}, nil},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: at(0)}, Status: c.status}
		if diff := cmp.Diff(c.want, podStart(pod)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}
