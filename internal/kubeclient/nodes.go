package kubeclient

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NodeAt names the node that has an address, whatever else it has.
func (c *Client) NodeAt(ctx context.Context, address netip.Addr) (string, error) {
	list, err := c.API.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", c.Explain("list nodes", err)
	}
	var all []string
	for _, n := range list.Items {
		for _, a := range n.Status.Addresses {
			if found, err := netip.ParseAddr(a.Address); err == nil && found == address {
				return n.Name, nil
			} else if err == nil {
				all = append(all, fmt.Sprintf("%s has %s", n.Name, found))
			}
		}
	}
	slices.Sort(all)
	return "", fmt.Errorf("no node of the cluster has the address %s: %s", address, strings.Join(all, ", "))
}
