package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnibench/cnibench/internal/kubeclient"
)

// letGoWithin is how long kubelets may take to end deleted pods, before the pods'
// objects are deleted without them.
const letGoWithin = 20 * time.Second

// living gives the pod of an end with a living agent. An API server or a kubelet that is
// being started again comes back within the testbed's patience. An end has that patience
// once each time it loses its agent: afterwards samples fail at once until it is back.
func (c *cluster) living(ctx context.Context, e end) (*agentPod, error) {
	for {
		p, err := c.revive(ctx, e)
		if err == nil {
			p.away = time.Time{}
			return p, nil
		}
		if p = c.pods[e]; p == nil || !mayPass(err) {
			return nil, err
		}
		if p.away.IsZero() {
			p.away = time.Now()
		}
		if time.Since(p.away) > c.options.Patience {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(err, context.Cause(ctx))
		case <-time.After(poll):
		}
	}
}

// agentError is why an agent does not start in a pod that runs.
type agentError struct{ err error }

func (e *agentError) Error() string { return e.err.Error() }
func (e *agentError) Unwrap() error { return e.err }

// mayPass reports errors that a restart of the API server or of a kubelet ends.
func mayPass(err error) bool {
	var start *agentError
	return errors.As(err, &start) || kubeclient.IsAway(err)
}

// silence reports whether the kubelet of a pod's node stopped heartbeating before the pod
// was created; "" if it did not, or nothing is known. It uses the kubelet's lease and not
// the node's condition, which a cluster's controllers may change late.
func (c *cluster) silence(ctx context.Context, pod *corev1.Pod) string {
	if pod == nil || pod.Spec.NodeName == "" || pod.Status.StartTime != nil {
		return ""
	}
	lease, err := c.client.API.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, pod.Spec.NodeName, metav1.GetOptions{})
	if err != nil || lease.Spec.RenewTime == nil {
		return ""
	}
	ago := pod.CreationTimestamp.Sub(lease.Spec.RenewTime.Time)
	if ago < 0 {
		return ""
	}
	return fmt.Sprintf("the kubelet of %s was last heard of %v before: see there, systemctl status kubelet", pod.Spec.NodeName, ago.Round(time.Second))
}

// force deletes the objects of pods whose kubelets do not let go of them.
func (c *cluster) force(ctx context.Context) error {
	now := int64(0)
	var errs []error
	for _, p := range c.pods {
		pods := c.client.API.CoreV1().Pods(c.namespace(p.end))
		pod, err := pods.Get(ctx, p.name, metav1.GetOptions{})
		if err == nil && pod.Labels[runLabel] != c.run {
			continue // another has the name by now
		}
		if err == nil {
			err = pods.Delete(ctx, p.name, metav1.DeleteOptions{GracePeriodSeconds: &now, Preconditions: metav1.NewUIDPreconditions(string(pod.UID))})
		}
		if kubeclient.IsNotFound(err) {
			continue
		}
		if err == nil {
			c.options.Say("pod %s was deleted without the kubelet of %s, which did not end it within %v", p.name, c.nodes[p.end.node-1].Name, letGoWithin)
		}
		errs = append(errs, c.client.Explain("delete pod "+p.name, err))
	}
	return errors.Join(errs...)
}
