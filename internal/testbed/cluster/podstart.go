package cluster

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnibench/cnibench/internal/result"
)

// podStart is how a pod came to run, by its status.
func podStart(pod *corev1.Pod) *result.PodStart {
	after := func(at metav1.Time) *float64 {
		if at.IsZero() || pod.CreationTimestamp.IsZero() {
			return nil
		}
		seconds := at.Sub(pod.CreationTimestamp.Time).Seconds()
		return &seconds
	}
	var out result.PodStart
	for _, cond := range pod.Status.Conditions {
		if cond.Status != corev1.ConditionTrue {
			continue
		}
		switch cond.Type {
		case corev1.PodScheduled:
			out.ScheduledSeconds = after(cond.LastTransitionTime)
		case corev1.PodReadyToStartContainers:
			out.NetworkSeconds = after(cond.LastTransitionTime)
		}
	}
	if pod.Status.StartTime != nil {
		out.TakenSeconds = after(*pod.Status.StartTime)
	}
	for _, s := range pod.Status.ContainerStatuses {
		if s.State.Running != nil {
			out.StartedSeconds = after(s.State.Running.StartedAt)
		}
	}
	if out == (result.PodStart{}) {
		return nil
	}
	return &out
}
