package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// answerWithin bounds a request to the API server that explains another error.
	answerWithin = 5 * time.Second
	// greetWithin bounds the start of an agent.
	greetWithin = 30 * time.Second
	// readyWithin bounds the wait for a pod.
	readyWithin = 90 * time.Second
	// poll is how often a pod is looked at.
	poll = 200 * time.Millisecond
)

// PodError is why a pod does not run, with its cure.
type PodError struct {
	Pod, Node, Text, Cure string
}

func (e *PodError) Error() string {
	s := "pod " + e.Pod
	if e.Node != "" {
		s += " on " + e.Node
	}
	s += ": " + e.Text
	if e.Cure != "" {
		s += " (" + e.Cure + ")"
	}
	return s
}

// await waits until an end's pod runs. What waiting cannot solve is an error at once.
func (c *cluster) await(ctx context.Context, p *agentPod) (*corev1.Pod, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, readyWithin, fmt.Errorf("it does not run after %v", readyWithin))
	defer cancel()
	began := time.Now()
	var last *PodError
	var seen *corev1.Pod
	for {
		pod, err := c.client.API.CoreV1().Pods(c.namespace(p.end)).Get(ctx, p.name, metav1.GetOptions{})
		if err != nil && ctx.Err() == nil {
			return nil, c.client.Explain("wait for pod "+p.name, err)
		}
		if err == nil {
			if seen = pod; running(pod) {
				return pod, nil
			}
			var final bool
			if last, final = hindrance(pod, c.options.Image); last != nil && (final || time.Since(began) > c.options.Patience) {
				return nil, last
			}
		}
		select {
		case <-ctx.Done():
			return nil, c.late(ctx, p, seen, last)
		case <-time.After(poll):
		}
	}
}

func running(pod *corev1.Pod) bool {
	s := pod.Status
	return s.Phase == corev1.PodRunning && len(s.PodIPs) > 0 && len(s.ContainerStatuses) == 1 && s.ContainerStatuses[0].State.Running != nil &&
		pod.DeletionTimestamp == nil
}

// late is the error of a wait that is over: what was last seen, or what the
// kubelet's silence or the pod's events say.
func (c *cluster) late(ctx context.Context, p *agentPod, pod *corev1.Pod, last *PodError) error {
	if last != nil {
		return last
	}
	e := &PodError{Pod: p.name, Node: c.nodes[p.end.node-1].Name, Text: context.Cause(ctx).Error()}
	look, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerWithin)
	defer cancel()
	if why := c.silence(look, pod); why != "" {
		e.Text += ": " + why
		return e
	}
	events, err := c.client.API.CoreV1().Events(c.namespace(p.end)).List(look, metav1.ListOptions{FieldSelector: "involvedObject.name=" + p.name})
	if err != nil {
		return e // a user without the right to see events gets the rest
	}
	for _, event := range slices.Backward(events.Items) {
		if event.Type == corev1.EventTypeWarning {
			e.Text += ": " + event.Reason + ": " + strings.TrimSpace(event.Message)
			break
		}
	}
	return e
}

// hindrance says what keeps a pod from running; final: waiting does not
// solve it. nil: no hindrance is known.
func hindrance(pod *corev1.Pod, image string) (e *PodError, final bool) {
	e = &PodError{Pod: pod.Name, Node: pod.Spec.NodeName}
	if pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
		e.Text = "it ended: " + words(pod.Status.Reason, pod.Status.Message, exitOf(pod))
		return e, true
	}
	for _, cond := range pod.Status.Conditions {
		if cond.Type == corev1.PodScheduled && cond.Status == corev1.ConditionFalse {
			e.Text, e.Cure = "no node takes it: "+cond.Message, "make room on its node, or choose other nodes in the campaign's clusters"
			if strings.Contains(cond.Message, "taint") {
				e.Cure = "its node is tainted: choose other nodes in the campaign's clusters"
			}
			return e, false
		}
	}
	for _, s := range pod.Status.ContainerStatuses {
		w := s.State.Waiting
		if w == nil {
			continue
		}
		e.Text = words(w.Reason, w.Message)
		switch w.Reason {
		case "ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError":
			e.Text = "image " + image + " is not on the node and cannot be pulled: " + words(w.Reason, w.Message)
			e.Cure = "cnibench image --to cnibench-image.tar, and load it on every node (ctr -n k8s.io images import, kind load image-archive), or push it and name it with --image"
			return e, w.Reason == "ErrImageNeverPull" || w.Reason == "InvalidImageName"
		case "CreateContainerConfigError", "CreateContainerError", "RunContainerError", "CrashLoopBackOff":
			return e, false
		}
	}
	return nil, false
}

// exitOf says how a pod's container ended.
func exitOf(pod *corev1.Pod) string {
	for _, s := range pod.Status.ContainerStatuses {
		if t := s.State.Terminated; t != nil {
			return words(fmt.Sprintf("status %d", t.ExitCode), t.Reason, t.Message)
		}
	}
	return ""
}

// words joins what is not empty.
func words(parts ...string) string {
	parts = slices.DeleteFunc(parts, func(s string) bool { return strings.TrimSpace(s) == "" })
	return strings.Join(parts, ": ")
}
