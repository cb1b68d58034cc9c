package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cnibench/cnibench/internal/netns"
)

// joinCgroups makes a cgroup for each node's programs, named as the node's
// namespace, and lets the network do there what it does. Nothing where neither
// the network nor the service proxy does anything at cgroups, and where no traffic needs
// a congestion control that only a cgroup can give it.
func (c *cluster) joinCgroups() error {
	forNetwork := c.network.Cgroup != nil || c.proxy.AtSockets != nil
	restricted, err := anyRestricted(c.spec.Algorithms)
	if err != nil {
		return err
	}
	if !forNetwork && !restricted {
		return nil
	}
	root, err := netns.CgroupRoot()
	if missing := (*netns.MissingError)(nil); errors.As(err, &missing) && !forNetwork {
		return nil // samples say that they do not have the congestion control
	}
	if err != nil {
		return err
	}
	for _, n := range c.nodes {
		path := filepath.Join(root, n.NS.Name)
		if err := os.Mkdir(path, 0o755); err != nil {
			return fmt.Errorf("cgroup: %w", err)
		}
		dir, err := os.Open(path)
		if err != nil {
			return fmt.Errorf("cgroup: %w", err)
		}
		c.cgroups = append(c.cgroups, dir)
		if c.network.Unprivileged && restricted {
			if err := netns.AllowCongestionControls(dir); err != nil {
				return fmt.Errorf("network %s: %w", c.spec.Network, err)
			}
		}
		if c.network.Cgroup == nil {
			continue
		}
		held, err := c.network.Cgroup(dir)
		if err != nil {
			return fmt.Errorf("network %s: cgroup %s: %w", c.spec.Network, path, err)
		}
		c.held = append(c.held, held)
	}
	return nil
}

// cgroup is what the programs at a node's places are started in; nil is this
// program's own.
func (c *cluster) cgroup(node int) *os.File {
	if len(c.cgroups) == 0 {
		return nil
	}
	return c.cgroups[node-1]
}

// leaveCgroups lets go of what joinCgroups took.
func (c *cluster) leaveCgroups() error {
	var errs []error
	for _, h := range c.held {
		errs = append(errs, h.Close())
	}
	for _, a := range c.algorithms {
		errs = append(errs, a.held.Close())
	}
	c.algorithms = nil
	for _, dir := range c.cgroups {
		errs = append(errs, dir.Close())
	}
	c.held, c.cgroups = nil, nil
	return errors.Join(errs...)
}
