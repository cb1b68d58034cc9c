package main

import (
	"context"
	"errors"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed"
	"github.com/cnibench/cnibench/internal/testbed/cluster"
	"github.com/cnibench/cnibench/internal/testbed/lab"
	"github.com/cnibench/cnibench/internal/testbed/labkubernetes"
)

// both is the lab's networks of namespaces and its clusters as one testbed. Clusters
// that are not measured are frozen.
type both struct {
	lab  *lab.Lab
	kube *cluster.Testbed
	labs lab.Options
	// clusters are those that are up.
	clusters []labkubernetes.Spec
	// rules is the cluster whose nodes' rules the lab's nodes get, "": none.
	rules string
	// runs is the cluster that goes on, "" none; all: every one does.
	runs string
	all  bool
}

// Build builds the lab's cells; the clusters' pods are running already.
func (b *both) Build(ctx context.Context, cells []result.Cell) (map[result.Cell]string, error) {
	b.all = true
	var own []result.Cell
	for _, c := range cells {
		if c.Cluster == "" {
			own = append(own, c)
		}
	}
	unsupported, err := b.lab.Build(ctx, own)
	if err != nil {
		return nil, errors.Join(err, b.kube.Close(context.WithoutCancel(ctx)))
	}
	if b.rules != "" {
		if err := shareRules(ctx, b.labs, b.rules); err != nil {
			return nil, errors.Join(err, b.Close(context.WithoutCancel(ctx)))
		}
	}
	others, err := b.kube.Build(ctx, inClusters(cells))
	for c, why := range others {
		unsupported[c] = why
	}
	return unsupported, err
}

// Ends lets the cell's cluster alone go on.
func (b *both) Ends(ctx context.Context, cell result.Cell) (testbed.Ends, error) {
	if b.all || b.runs != cell.Cluster {
		if err := b.focus(ctx, cell.Cluster, false); err != nil {
			return testbed.Ends{}, err
		}
	}
	if cell.Cluster == "" {
		return b.lab.Ends(ctx, cell)
	}
	return b.kube.Ends(ctx, cell)
}

// focus freezes all clusters but one, or none.
func (b *both) focus(ctx context.Context, name string, all bool) error {
	for _, c := range b.clusters {
		if err := lab.SetFrozen(ctx, b.labs, c.Name, !all && c.Name != name); err != nil {
			return err
		}
	}
	b.runs, b.all = name, all
	return nil
}

// Environment is the lab's: it is the same machine.
func (b *both) Environment(ctx context.Context) (result.Environment, error) {
	return b.lab.Environment(ctx)
}

// Close takes both down.
func (b *both) Close(ctx context.Context) error {
	return errors.Join(b.focus(ctx, "", true), b.kube.Close(ctx), b.lab.Close(ctx))
}

// memory keeps the records of a run, which are printed at its end.
type memory struct{ samples []result.Sample }

func (m *memory) Append(s result.Sample) error {
	m.samples = append(m.samples, s)
	return s.Validate()
}
func (*memory) SaveRaw(string, string, []string, string, string) error { return nil }
func (*memory) SaveStacks(string, string, string) error                { return nil }
func (*memory) WriteJSON(string, any) error                            { return nil }

// observer prints how the run goes on.
type observer struct{}

func (observer) Begin(_, most int) { say("%d samples", most) }

func (observer) Sampled(s result.Sample, _ int) {
	if s.Status != result.StatusOK {
		say("%s: %s %s %s: %s", s.Status, s.Cell.Cluster, s.Cell.Network, s.Cell.Traffic(), s.Reason)
	}
}

func (observer) Say(format string, args ...any) { say(format, args...) }
