package bench

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed"
	"github.com/cnibench/cnibench/internal/workload"
)

// build builds the testbed for cells, and gives those that it cannot have or that are refused,
// each with the reason.
func (r *run) build(ctx context.Context, cells []result.Cell) (map[result.Cell]string, error) {
	refused := map[result.Cell]string{}
	if r.Refused != nil {
		for _, c := range cells {
			if why := r.Refused(c); why != "" {
				refused[c] = why
			}
		}
	}
	unsupported, err := r.Testbed.Build(ctx, slices.DeleteFunc(slices.Clone(cells), func(c result.Cell) bool { return refused[c] != "" }))
	maps.Copy(refused, unsupported)
	return refused, err
}

// retireUnsupported records once each cell that the testbed cannot build or
// whose tools are missing, and takes it out of the blocks.
func (r *run) retireUnsupported(ctx context.Context, unsupported map[result.Cell]string) error {
	for _, slot := range r.Plan.Block(1, nil) {
		if !r.of.has(slot.Cell) {
			continue
		}
		reason, is := unsupported[slot.Cell]
		if !is && !r.cannot[slot.Cell] {
			var err error
			if reason, err = r.missingTools(ctx, slot.Cell); err != nil {
				return err
			}
		}
		if reason == "" && !r.cannot[slot.Cell] {
			continue
		}
		r.retired[slot.Cell], r.unsupported[slot.Cell] = true, true
		if r.cannot[slot.Cell] || r.slots[slot.ID].finished {
			continue // a run before has recorded that, or measured it
		}
		s := result.Sample{
			Schema: result.Schema, ID: slot.ID, Block: slot.Block, Attempt: 1 + r.slots[slot.ID].attempts, Cell: slot.Cell,
			Status: result.StatusUnsupported, Reason: reason, Started: time.Now().UTC(),
		}
		if err := r.Store.Append(s); err != nil {
			return err
		}
		r.keep(&s)
		r.Observer.Say("unsupported: %s %s: %s", slot.Cell.Network, slot.Cell.Traffic(), reason)
	}
	return nil
}

// missingTools says which tools of the cell's workload are missing at its ends,
// and how they are got, or why the workload cannot run it; "" when nothing is in the way.
func (r *run) missingTools(ctx context.Context, cell result.Cell) (string, error) {
	w, err := workload.Find(cell.Workload)
	if err != nil {
		return "", err
	}
	spec := w.Spec()
	switch {
	case spec.IPv4Only && cell.Family == "ipv6":
		return cell.Workload + " uses IPv4 only", nil
	case len(spec.Needs) == 0:
		return "", nil
	}
	places, err := r.placesOf(ctx, cell, spec)
	if err != nil {
		return "", err
	}
	for _, place := range places {
		have, err := r.toolsAt(ctx, place, spec)
		if err != nil {
			return "", fmt.Errorf("tools at %s: %w", place.Name, err)
		}
		var missing []workload.Tool
		for _, t := range spec.Needs {
			if _, ok := have[t.Name]; !ok && t.NeededBy(cell.Test) {
				missing = append(missing, t)
			}
		}
		if len(missing) > 0 {
			return withoutTools(place, missing), nil
		}
	}
	return "", nil
}

// withoutTools is the reason that a place lacks tools, and how to install them.
func withoutTools(place testbed.Place, missing []workload.Tool) string {
	var names, packages, cures []string
	for _, t := range missing {
		names = append(names, t.Name)
		if t.Cure != "" {
			cures = append(cures, t.Cure)
		} else {
			packages = append(packages, t.Package)
		}
	}
	at := " is not installed at "
	switch {
	case place.ToolsFrom != "":
		at, cures = " is not at ", append(cures, place.ToolsFrom)
	case len(packages) > 0:
		cures = append(cures, fmt.Sprintf("apt-get install %s (or make tools)", strings.Join(slices.Compact(packages), " ")))
	}
	return strings.Join(names, ", ") + at + place.Name + ": " + strings.Join(cures, "; ")
}

// placesOf are the ends of a cell, or the places of its ranks.
func (r *run) placesOf(ctx context.Context, cell result.Cell, spec workload.Spec) ([]testbed.Place, error) {
	if !spec.ManyEnds {
		ends, err := r.Testbed.Ends(ctx, cell)
		return []testbed.Place{ends.Client, ends.Server}, err
	}
	ranks, err := r.ranksOf(ctx, cell)
	var places []testbed.Place
	for _, rank := range ranks {
		places = append(places, rank.Place)
	}
	return places, err
}

// toolsGone is asked after a sample has failed. A tool that was there when the
// run began and is not any more ends the run: that is no property of a network,
// and every sample to come would fail for it.
func (r *run) toolsGone(ctx context.Context, cell result.Cell) error {
	clear(r.tools)
	reason, err := r.missingTools(ctx, cell)
	if err != nil || reason == "" {
		return nil // whatever it was, the sample's own reason is the better one
	}
	return fmt.Errorf("in mid-run: %s", reason)
}

// toolsWithin bounds the wait for an agent that looks for tools and asks them for their
// versions.
const toolsWithin = 30 * time.Second

// toolsKey is the key of run.tools.
func toolsKey(place testbed.Place, spec workload.Spec) string {
	return place.Name + "\x00" + spec.Name
}

func (r *run) toolsAt(ctx context.Context, place testbed.Place, spec workload.Spec) (map[string]string, error) {
	key := toolsKey(place, spec)
	if have, ok := r.tools[key]; ok {
		return have, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, toolsWithin, fmt.Errorf("no answer within %v", toolsWithin))
	defer cancel()
	var have agent.ToolsResult
	if err := place.Agent.Call(ctx, agent.MethodTools, agent.ToolsParams{Tools: spec.Needs}, &have); err != nil {
		return nil, err
	}
	r.tools[key] = have.Versions
	return have.Versions, nil
}
