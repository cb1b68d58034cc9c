package cluster

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnibench/cnibench/internal/result"
)

// servicePort is what servers behind services serve on, and those services too.
const servicePort = 7471

// publishWithin bounds the wait for a service to have its pod.
const publishWithin = 30 * time.Second

// makeService creates the service of a route, with the server's pod as its only one.
func (c *cluster) makeService(ctx context.Context, r route) error {
	family, single := corev1.IPv4Protocol, corev1.IPFamilyPolicySingleStack
	if r.family == "ipv6" {
		family = corev1.IPv6Protocol
	}
	svc := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: c.object(r.name()), Namespace: c.namespace(r.to), Labels: labels(c.run)},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{endLabel: r.to.name(), runLabel: c.run}, IPFamilyPolicy: &single, IPFamilies: []corev1.IPFamily{family},
			Ports: []corev1.ServicePort{{Name: "tcp", Protocol: corev1.ProtocolTCP, Port: servicePort}, {Name: "udp", Protocol: corev1.ProtocolUDP, Port: servicePort}},
		},
	}
	switch r.path {
	case result.PathPodToHeadless:
		svc.Spec.ClusterIP = corev1.ClusterIPNone
	case result.PathPodToNodePort:
		svc.Spec.Type = corev1.ServiceTypeNodePort
	}
	made, err := c.client.API.CoreV1().Services(svc.Namespace).Create(ctx, svc, metav1.CreateOptions{})
	if err != nil {
		if r.family == "ipv6" { // a cluster without IPv6 refuses the family
			c.without[r] = c.client.Explain("make service "+svc.Name, err).Error()
			return nil
		}
		return c.client.Explain("make service "+svc.Name, err)
	}
	if r.path != result.PathPodToNodePort {
		return nil
	}
	// Both protocols of one port get one port of the nodes.
	if a, b := made.Spec.Ports[0].NodePort, made.Spec.Ports[1].NodePort; a != b || a == 0 {
		c.without[r] = fmt.Sprintf("service %s has no port of the nodes for TCP and UDP alike: %d and %d", svc.Name, a, b)
		return nil
	}
	c.ports[r] = uint16(made.Spec.Ports[0].NodePort)
	return nil
}

// target is where the client of a route sends to.
func (c *cluster) target(ctx context.Context, r route, to *agentPod) (netip.AddrPort, error) {
	if why := c.without[r]; why != "" {
		return netip.AddrPort{}, fmt.Errorf("%s", why)
	}
	switch r.path {
	case result.PathPodToClusterIP:
		svc, err := c.client.API.CoreV1().Services(c.namespace(r.to)).Get(ctx, c.object(r.name()), metav1.GetOptions{})
		if err != nil {
			return netip.AddrPort{}, c.client.Explain("read service "+r.name(), err)
		}
		a, err := netip.ParseAddr(svc.Spec.ClusterIP)
		if err != nil {
			return netip.AddrPort{}, fmt.Errorf("service %s: address: %w", r.name(), err)
		}
		return netip.AddrPortFrom(a, servicePort), nil
	case result.PathPodToNodePort:
		a, err := c.nodeAddress(r)
		return netip.AddrPortFrom(a, c.ports[r]), err
	case result.PathPodToHeadless:
		a, err := c.published(ctx, r)
		return netip.AddrPortFrom(a, servicePort), err
	}
	a, err := to.address(r.family)
	return netip.AddrPortFrom(a, 0), err
}

// nodeAddress is that of the server's node.
func (c *cluster) nodeAddress(r route) (netip.Addr, error) {
	node := c.nodes[r.to.node-1]
	for _, address := range node.Status.Addresses {
		if a, err := netip.ParseAddr(address.Address); err == nil && address.Type == corev1.NodeInternalIP && a.Is4() == (r.family == "ipv4") {
			return a, nil
		}
	}
	return netip.Addr{}, fmt.Errorf("node %s has no %s address", node.Name, r.family)
}

// published is the address of a headless service, as the cluster's DNS takes it:
// that of its one ready endpoint.
func (c *cluster) published(ctx context.Context, r route) (netip.Addr, error) {
	slices, err := c.client.API.DiscoveryV1().EndpointSlices(c.namespace(r.to)).List(ctx,
		metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + c.object(r.name())})
	if err != nil {
		return netip.Addr{}, c.client.Explain("read the endpoints of service "+r.name(), err)
	}
	var found []netip.Addr
	for _, s := range slices.Items {
		for _, e := range s.Endpoints {
			if e.Conditions.Ready != nil && !*e.Conditions.Ready {
				continue
			}
			for _, text := range e.Addresses {
				if a, err := netip.ParseAddr(text); err == nil {
					found = append(found, a)
				}
			}
		}
	}
	if len(found) != 1 {
		return netip.Addr{}, fmt.Errorf("service %s publishes %d addresses, not one", r.name(), len(found))
	}
	return found[0], nil
}
