package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnibench/cnibench/internal/kubeclient"
)

// chooseNodes gives the nodes of client and server: those that the campaign
// names, one of each zone that it names, or the first two by name that take pods, more where
// ranks need them.
// One is enough for what is measured inside a node. Where many pairs are measured
// they are all that are named, all of the zones, or all that take pods. Nodes that are not ready yet
// are waited for a while.
func (c *cluster) chooseNodes(ctx context.Context) ([]corev1.Node, error) {
	for began := time.Now(); ; {
		nodes, becoming, err := c.tryNodes(ctx)
		if !becoming || err == nil && len(nodes) >= c.needs && c.options.Pairs == "" || time.Since(began) > c.options.Patience {
			return nodes, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(poll):
		}
	}
}

// tryNodes chooses among the nodes as they are; becoming means that one is not
// ready yet.
func (c *cluster) tryNodes(ctx context.Context) (nodes []corev1.Node, becoming bool, err error) {
	list, err := c.client.API.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if c.named.Namespace != "" && kubeclient.IsForbidden(err) {
		nodes, err = c.scout(ctx)
		return nodes, false, err
	}
	if err != nil {
		return nil, false, c.client.Explain("list nodes", err)
	}
	becoming = slices.ContainsFunc(list.Items, func(n corev1.Node) bool {
		return notReady(n) != "" || slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeNotReady })
	})
	slices.SortFunc(list.Items, func(a, b corev1.Node) int { return cmp.Compare(a.Name, b.Name) })
	if len(c.named.Nodes) > 0 {
		nodes, err = namedNodes(list.Items, c.named.Nodes)
		return nodes, becoming, err
	}
	var good []corev1.Node
	var bad []string
	for _, n := range list.Items {
		if why := unfit(n); why != "" {
			bad = append(bad, n.Name+" "+why)
		} else {
			good = append(good, n)
		}
	}
	c.unfit = strings.Join(bad, "; ")
	if c.options.Pairs != "" {
		if len(c.named.Zones) > 0 {
			good = slices.DeleteFunc(good, func(n corev1.Node) bool { return !slices.Contains(c.named.Zones, zoneOf(n)) })
		}
		return good, becoming, nil
	}
	if len(c.named.Zones) > 0 {
		nodes, err = zoneNodes(good, c.named.Zones, bad)
		return nodes, becoming, err
	}
	if len(good) == 0 {
		return nil, becoming, fmt.Errorf("no node takes pods: %s (kubectl uncordon NODE; kubectl taint node NODE KEY-; of one that is not ready: kubectl describe node NODE)", cmp.Or(strings.Join(bad, "; "), "there is none"))
	}
	return good[:min(max(2, c.needs), len(good))], becoming, nil
}

func namedNodes(all []corev1.Node, names []string) ([]corev1.Node, error) {
	var out []corev1.Node
	var errs []error
	for _, name := range names {
		i := slices.IndexFunc(all, func(n corev1.Node) bool { return n.Name == name })
		if i < 0 {
			errs = append(errs, fmt.Errorf("there is no node %s", name))
			continue
		}
		if why := unfit(all[i]); why != "" {
			errs = append(errs, fmt.Errorf("node %s %s: name another in clusters", name, why))
		}
		out = append(out, all[i])
	}
	return out, errors.Join(errs...)
}

func zoneNodes(good []corev1.Node, zones, bad []string) ([]corev1.Node, error) {
	var out []corev1.Node
	for _, zone := range zones {
		i := slices.IndexFunc(good, func(n corev1.Node) bool {
			return zoneOf(n) == zone && !slices.ContainsFunc(out, func(o corev1.Node) bool { return o.Name == n.Name })
		})
		if i < 0 {
			return nil, fmt.Errorf("zone %s has no node left that takes pods (label %s); those that take none: %s", zone, corev1.LabelTopologyZone,
				cmp.Or(strings.Join(bad, "; "), "none"))
		}
		out = append(out, good[i])
	}
	return out, nil
}

// unfit says why a node takes no pods of ours; "" where it does.
func unfit(n corev1.Node) string {
	if system := n.Status.NodeInfo.OperatingSystem; system != "" && system != "linux" {
		return "runs " + system
	}
	if why := notReady(n); why != "" {
		return "is not ready: " + why
	}
	for _, t := range n.Spec.Taints {
		if t.Effect != corev1.TaintEffectPreferNoSchedule {
			return "is tainted: " + t.ToString()
		}
	}
	if n.Spec.Unschedulable {
		return "is cordoned"
	}
	return ""
}

// notReady says why a node is not ready; "" where it is.
func notReady(n corev1.Node) string {
	for _, cond := range n.Status.Conditions {
		if cond.Type == corev1.NodeReady && cond.Status != corev1.ConditionTrue {
			return words(cond.Reason, cond.Message)
		} else if cond.Type == corev1.NodeReady {
			return ""
		}
	}
	return "it has not said so"
}
