package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed"
)

// switchWithin bounds one command that switches a cluster's network.
const switchWithin = 30 * time.Minute

var _ testbed.Grouper = (*Testbed)(nil)

// switching is what is known of a cluster whose network commands switch. The same
// cluster is there once for each of its networks.
type switching struct {
	// cells are those of the campaign before its plan was made.
	cells []result.Cell
	// current is the index of the cluster that has pods; -1: none.
	current int
	// tried are the switches that were made before the plan was.
	tried map[int]outcome
	// past are the places of those before.
	past map[string]result.PlaceFacts
}

type outcome struct {
	printed []testbed.Printed
	err     error
}

func (b *Testbed) switched() bool { return len(b.clusters) > 0 && b.clusters[0].named.Switch != nil }

// Groups are the clusters where commands switch between them.
func (b *Testbed) Groups() (n int, of func(result.Cell) int) {
	if !b.switched() {
		return 1, func(result.Cell) int { return 0 }
	}
	return len(b.clusters), func(cell result.Cell) int {
		for i, c := range b.clusters {
			if c.name == cell.Cluster {
				return i
			}
		}
		return -1
	}
}

// Switch gives the cluster another network, and makes the pods in it.
func (b *Testbed) Switch(ctx context.Context, group int) ([]testbed.Printed, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if done, have := b.switching.tried[group]; have {
		delete(b.switching.tried, group)
		return done.printed, done.err
	}
	printed, _, err := b.switchTo(ctx, group)
	return printed, err
}

// prepareFirst prepares the first of several networks that can be: the plan needs the
// nodes' names and MTU. The rest is as the campaign says.
func (b *Testbed) prepareFirst(ctx context.Context, cells []result.Cell) ([]campaign.Found, error) {
	b.switching = switching{cells: cells, current: -1, tried: map[int]outcome{}, past: map[string]result.PlaceFacts{}}
	var errs []error
	for i := range b.clusters {
		printed, first, err := b.switchTo(ctx, i)
		b.switching.tried[i] = outcome{printed, err}
		if err != nil {
			if ctx.Err() != nil {
				return nil, err
			}
			errs = append(errs, err)
			b.options.Say("%v", err)
			continue
		}
		found := make([]campaign.Found, len(b.clusters))
		for k, c := range b.clusters {
			found[k] = campaign.Found{Network: c.named.Network, MTU: first.MTU, Enforces: true, Pairs: first.Pairs}
		}
		return found, nil
	}
	return nil, errors.Join(errs...)
}

// switchTo deletes the pods of the present network, runs a cluster's commands, creates
// its pods and finds out which network it then has.
func (b *Testbed) switchTo(ctx context.Context, group int) (printed []testbed.Printed, found campaign.Found, err error) {
	c := b.clusters[group]
	defer func() { err = clusterError(c.name, err) }()
	if at := b.switching.current; at >= 0 {
		maps.Copy(b.switching.past, b.clusters[at].places(ctx))
		if err := b.clusters[at].close(ctx); err != nil {
			return nil, found, err
		}
		b.switching.current = -1
	}
	for i, argv := range c.named.Switch {
		b.options.Say("%s: %q", c.name, argv)
		p := testbed.Printed{Name: fmt.Sprintf("switch-%s-%d", c.name, i+1), Argv: argv}
		within, cancel := context.WithTimeoutCause(ctx, switchWithin, fmt.Errorf("no end after %v", switchWithin))
		p.Stdout, p.Stderr, err = b.options.Run(within, c.named, argv)
		cancel()
		printed = append(printed, p)
		if err != nil {
			return printed, found, fmt.Errorf("its network was not switched: %w", err)
		}
	}
	if found, err = c.prepare(ctx, cellsOf(c.name, b.switching.cells)); err != nil {
		return printed, found, errors.Join(err, c.close(context.WithoutCancel(ctx)))
	}
	b.switching.current = group
	return printed, found, nil
}
