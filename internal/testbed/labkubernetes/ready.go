package labkubernetes

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
)

// waitReady waits until pods can be made and run: all nodes are Ready, with the network that
// was asked for, a namespace has its service account, and services are carried out.
func (c *Cluster) waitReady(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, n := range c.nodes {
		g.Go(func() error {
			err := c.timed(n.Name+" Ready", func() error {
				return c.wait(ctx, n.Name+" to be Ready", func() error { return c.nodeReady(ctx, n.Name) })
			})
			if err != nil || c.cni.Verify == nil {
				return err
			}
			return c.timed(n.Name+" verified", func() error { return c.cni.Verify(ctx, c, n) })
		})
	}
	g.Go(func() error {
		return c.timed("service account", func() error {
			return c.wait(ctx, "the service account of pods", func() error {
				return c.API.Get(ctx, "/api/v1/namespaces/default/serviceaccounts/default", nil)
			})
		})
	})
	if c.Spec.KubeProxy != "none" {
		for _, n := range c.nodes {
			g.Go(func() error {
				return c.timed("kube-proxy on "+n.Name, func() error {
					return c.wait(ctx, "kube-proxy on "+n.Name, func() error { return proxyReady(n) })
				})
			})
		}
	}
	return g.Wait()
}

func (c *Cluster) nodeReady(ctx context.Context, name string) error {
	var node struct {
		Status struct {
			Conditions []struct{ Type, Status, Message string }
		}
	}
	if err := c.API.Get(ctx, "/api/v1/nodes/"+name, &node); err != nil {
		return err
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type != "Ready" {
			continue
		}
		if condition.Status == "True" {
			return nil
		}
		return fmt.Errorf("%s is not Ready: %s", name, condition.Message)
	}
	return fmt.Errorf("the kubelet of %s has not spoken to the API yet", name)
}
