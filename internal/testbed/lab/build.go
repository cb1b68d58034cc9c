package lab

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/cnibench/cnibench/internal/network/catalog"
	"github.com/cnibench/cnibench/internal/result"
)

// failures are the clusters whose set-up failed.
type failures map[key]error

// errors are the failures, in the order of their texts.
func (f failures) errors() []error {
	return slices.SortedFunc(maps.Values(f), func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
}

// make builds all clusters, a few at a time. One that fails leaves the others
// alone. An error is about all of them.
func (l *Lab) make(ctx context.Context) (failures, error) {
	if err := catalog.LinkOwn(ownPlugins(l.held.Path)); err != nil {
		return nil, err
	}
	rt := cniRuntime(l.options.Runner, l.state, l.held.Path)
	var g errgroup.Group
	g.SetLimit(parallel())
	var mu sync.Mutex
	failed := failures{}
	for _, c := range l.ordered {
		g.Go(func() error {
			err := c.makeDirs()
			if err == nil {
				err = c.build(ctx, l.state, rt, parallel())
			}
			if err == nil {
				c.applyProfile(l.options.Machine != nil)
			}
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed[keyOfSpec(c.spec)] = err
			}
			return nil
		})
	}
	_ = g.Wait() // none of them gives an error
	if cause := context.Cause(ctx); cause != nil && len(failed) > 0 {
		return nil, fmt.Errorf("building the lab: %w", cause)
	}
	return failed, nil
}

// othersBuilt reports whether any network but the baseline is built although some
// failed, or none failed.
func (l *Lab) othersBuilt(failed failures) bool {
	for _, c := range l.ordered {
		if failed[keyOfSpec(c.spec)] == nil && c.spec.Network != result.HostNetwork {
			return true
		}
	}
	return len(failed) == 0
}

// giveUp takes all down after an error.
func (l *Lab) giveUp(ctx context.Context, err error) error {
	// A plugin that failed on ADD may fail on DEL: one error is enough.
	_, closeErr := l.close(ctx)
	return errors.Join(err, closeErr)
}

// drop takes down the clusters that failed and forgets them.
func (l *Lab) drop(ctx context.Context, failed failures) error {
	var errs []error
	l.ordered = slices.DeleteFunc(l.ordered, func(c *cluster) bool {
		k := keyOfSpec(c.spec)
		if failed[k] == nil {
			return false
		}
		errs = append(errs, c.leaveCgroups())
		_, err := clearNamespaces(ctx, l.options.Runner, l.held, l.state, l.state.ClusterPrefix(c.index))
		errs = append(errs, err)
		delete(l.clusters, k)
		return true
	})
	return errors.Join(errs...)
}
