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
	// refuseWithin is how long a cluster may take to hold traffic against a new
	// policy before it counts as one that enforces none.
	refuseWithin = 10 * time.Second
	refuseTries  = 3
)

// settle waits until services lead to their pods, and sees whether policies are
// enforced: it is their effect that counts, not what the network is called.
func (c *cluster) settle(ctx context.Context) error {
	guarded := false
	for _, s := range c.wanted {
		if s.policies == 0 || c.stands[s] == nil {
			continue
		}
		if !guarded {
			var err error
			if c.enforces, err = c.refuses(ctx, s); err != nil {
				return err
			}
			guarded = true
		}
		if err := c.allow(ctx, s); err != nil {
			return err
		}
	}
	// They are tried one after the other: a server behind a service has one port.
	for _, r := range c.routes {
		if c.without[r] == "" {
			if err := c.until(ctx, publishWithin, func(ctx context.Context) error { return c.reach(ctx, r) }); err != nil {
				c.options.Say("service %s does not lead to its pod yet: %v", r.name(), err)
			}
		}
	}
	for _, s := range c.wanted {
		if r := (route{s, result.PathPodToPod, "ipv4"}); s.policies > 0 && c.stands[s] != nil {
			if err := c.until(ctx, publishWithin, func(ctx context.Context) error { return c.reach(ctx, r) }); err != nil {
				c.options.Say("pod %s is not reached through its policies yet: %v", s.name(), err)
			}
		}
	}
	return ctx.Err()
}

// refuses tells whether a pod that only policies without effect select cannot be
// reached: refuseTries times in a row, while the same pod was reached before any
// selected it, or a pod beside it is.
func (c *cluster) refuses(ctx context.Context, s spot) (bool, error) {
	open := spot{role: server, node: s.node}
	if c.stands[open] == nil {
		return false, fmt.Errorf("whether policies are enforced is not known: no pod without any stands beside %s", s.name())
	}
	if err := c.until(ctx, publishWithin, func(ctx context.Context) error { return c.reach(ctx, route{open, result.PathPodToPod, "ipv4"}) }); err != nil {
		return false, fmt.Errorf("pod %s is not reached: %w", open.name(), err)
	}
	row := 0
	err := c.until(ctx, refuseWithin, func(ctx context.Context) error {
		if row++; c.reach(ctx, route{s, result.PathPodToPod, "ipv4"}) == nil {
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
	from, to := c.stands[spot{role: client, node: 1}], c.stands[r.to]
	if from == nil || to == nil {
		return errors.New("its ends do not stand")
	}
	at, err := c.target(ctx, r, to)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, tryWithin, fmt.Errorf("no answer within %v", tryWithin))
	defer cancel()
	return agent.Try(ctx, from.agent, to.agent, at, portOf(r))
}
