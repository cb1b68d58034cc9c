package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/result"
)

const (
	// tryWithin bounds one try to reach a server.
	tryWithin = 3 * time.Second
	// refuseWithin is how long a cluster may take to enforce a new policy before it
	// counts as one that enforces none.
	refuseWithin = 10 * time.Second
	refuseTries  = 3
)

// settle waits until services reach their pods, and finds out whether policies are
// enforced: their effect counts, not the name of the network.
func (c *cluster) settle(ctx context.Context) error {
	guarded := false
	for _, e := range c.wanted {
		if e.policies == 0 || c.pods[e] == nil {
			continue
		}
		if !guarded {
			var err error
			if c.enforces, err = c.refuses(ctx, e); err != nil {
				return err
			}
			guarded = true
		}
		if err := c.allow(ctx, e); err != nil {
			return err
		}
	}
	// They are tried one after the other: a server behind a service has one port.
	for _, r := range c.routes {
		if c.without[r] == "" {
			if err := c.until(ctx, publishWithin, func(ctx context.Context) error { return c.reach(ctx, r) }); err != nil {
				c.options.Say("service %s does not reach its pod yet: %v", r.name(), err)
			}
		}
	}
	for _, e := range c.wanted {
		if r := (route{e, result.PathPodToPod, "ipv4"}); e.policies > 0 && c.pods[e] != nil {
			if err := c.until(ctx, publishWithin, func(ctx context.Context) error { return c.reach(ctx, r) }); err != nil {
				c.options.Say("pod %s is not reached through its policies yet: %v", e.name(), err)
			}
		}
	}
	return ctx.Err()
}

// refuses reports whether a pod that only policies without effect select cannot be
// reached: refuseTries times in a row, while the same pod was reached before any
// selected it, or another pod of its node is.
func (c *cluster) refuses(ctx context.Context, e end) (bool, error) {
	open := end{role: server, node: e.node}
	if c.pods[open] == nil {
		return false, fmt.Errorf("whether policies are enforced is not known: %s has no pod without policies on its node", e.name())
	}
	if err := c.until(ctx, publishWithin, func(ctx context.Context) error { return c.reach(ctx, route{open, result.PathPodToPod, "ipv4"}) }); err != nil {
		return false, fmt.Errorf("pod %s is not reached: %w", open.name(), err)
	}
	row := 0
	err := c.until(ctx, refuseWithin, func(ctx context.Context) error {
		if row++; c.reach(ctx, route{e, result.PathPodToPod, "ipv4"}) == nil {
			row = 0
		}
		if row < refuseTries {
			return errors.New("it is still reached")
		}
		return nil
	})
	return err == nil, nil
}

// until tries again until there is no error, within a bound.
func (c *cluster) until(ctx context.Context, within time.Duration, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		err := f(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(poll):
		}
	}
}

// reach sends a few transactions from the client to the end of a route.
func (c *cluster) reach(ctx context.Context, r route) error {
	from, to := c.pods[end{role: client, node: 1}], c.pods[r.to]
	if from == nil || to == nil {
		return errors.New("its ends are not running")
	}
	at, err := c.target(ctx, r, to)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, tryWithin, fmt.Errorf("no answer within %v", tryWithin))
	defer cancel()
	return agent.Try(ctx, from.agent, to.agent, at, portOf(r))
}
