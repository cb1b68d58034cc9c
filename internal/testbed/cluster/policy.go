package cluster

import (
	"context"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// makePolicies creates those that select an end's pods and allow only pods that do not
// exist, each another one.
func (c *cluster) makePolicies(ctx context.Context, e end) error {
	for i := range e.policies {
		from := networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{endLabel: fmt.Sprintf("nobody-%d", i+1)}}}
		if err := c.makePolicy(ctx, e, c.object(fmt.Sprintf("%s-nobody-%d", e.name(), i+1)), from); err != nil {
			return err
		}
	}
	return nil
}

// allow makes the policy that lets clients in: our pods, and the node of the
// client for those that are in its network.
func (c *cluster) allow(ctx context.Context, e end) error {
	peers := []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{roleLabel: client, runLabel: c.run}}}}
	for _, address := range c.nodes[0].Status.Addresses {
		if a, err := netip.ParseAddr(address.Address); err == nil && address.Type == corev1.NodeInternalIP {
			peers = append(peers, networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: netip.PrefixFrom(a, a.BitLen()).String()}})
		}
	}
	return c.makePolicy(ctx, e, c.object(e.name()+"-clients"), peers...)
}

func (c *cluster) makePolicy(ctx context.Context, e end, name string, from ...networkingv1.NetworkPolicyPeer) error {
	p := &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: c.namespace(e), Labels: labels(c.run)},
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{endLabel: e.name(), runLabel: c.run}},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress:     []networkingv1.NetworkPolicyIngressRule{{From: from}},
		},
	}
	_, err := c.client.API.NetworkingV1().NetworkPolicies(p.Namespace).Create(ctx, p, metav1.CreateOptions{})
	return c.client.Explain("make network policy "+name, err)
}
