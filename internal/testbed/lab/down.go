package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cnibench/cnibench/internal/cni"
	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network/catalog"
	"github.com/cnibench/cnibench/internal/testbed/lab/processes"
	"github.com/cnibench/cnibench/internal/testbed/lab/state"
)

// downTimeout bounds the taking down of one lab; when it is over, namespaces
// go without their pods' CNI DEL.
const downTimeout = 2 * time.Minute

// Gone describes a lab that was taken down.
type Gone struct {
	ID, Verb string
	// PID is its owner's, which had ended or had left it.
	PID        int
	Namespaces int
	Killed     int // processes that were still in it
	// Detach is why CNI DELs failed; nothing of their pods is left all the same.
	Detach error
}

func (g Gone) String() string {
	return fmt.Sprintf("lab %s (%s, process %d): %d namespaces removed, %d processes killed", g.ID, g.Verb, g.PID, g.Namespaces, g.Killed)
}

// Reap takes down every lab whose owner has ended without doing so. Every
// command that uses labs calls it first. Errors do not stop it. Without root
// it does nothing.
func Reap(ctx context.Context, o Options) ([]Gone, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	return clearLabs(ctx, o, func(st state.State) bool { return !st.Kept })
}

// Down takes down one lab that is kept, or whose owner has ended.
func Down(ctx context.Context, o Options, id string) (Gone, error) {
	if os.Getuid() != 0 {
		return Gone{}, errNeedsRoot()
	}
	s := o.store()
	h, err := s.Take(id)
	switch {
	case errors.Is(err, state.ErrInUse):
		st, _ := s.Read(id)
		if !s.OwnerLives(id) {
			return Gone{}, fmt.Errorf("lab %s: its owner, process %d (%s), has ended: %w: end that first", id, st.PID, st.Verb, err)
		}
		return Gone{}, fmt.Errorf("lab %s is in use by process %d (%s): end that first, for example kill -INT %d", id, st.PID, st.Verb, st.PID)
	case errors.Is(err, fs.ErrNotExist):
		ids, _ := s.IDs()
		return Gone{}, fmt.Errorf("there is no lab %q (there are %v)", id, ids)
	case err != nil:
		return Gone{}, fmt.Errorf("lab %s: %w", id, err)
	}
	return downHeld(ctx, o.Runner, h, id)
}

// DownAll takes down every lab that no living process uses, kept ones too.
func DownAll(ctx context.Context, o Options) ([]Gone, error) {
	if os.Getuid() != 0 {
		return nil, errNeedsRoot()
	}
	return clearLabs(ctx, o, func(state.State) bool { return true })
}

// clearLabs takes down the labs that nobody holds and that are chosen.
func clearLabs(ctx context.Context, o Options, choose func(state.State) bool) ([]Gone, error) {
	s := o.store()
	ids, err := s.IDs()
	if err != nil {
		return nil, err
	}
	var all []Gone
	var errs []error
	for _, id := range ids {
		h, err := s.Take(id)
		if errors.Is(err, state.ErrInUse) || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("lab %s: %w", id, err))
			continue
		}
		if st, err := s.Read(id); err == nil && !choose(st) {
			errs = append(errs, h.Release())
			continue
		}
		gone, err := downHeld(ctx, o.Runner, h, id)
		errs = append(errs, err)
		all = append(all, gone)
	}
	return all, errors.Join(errs...)
}

// downHeld takes down a lab by what is written of it. One without a readable
// state still has a name, and with it its namespaces.
func downHeld(ctx context.Context, r *exec.Runner, h *state.Held, id string) (Gone, error) {
	ctx, cancel := context.WithTimeout(ctx, downTimeout)
	defer cancel()
	st, err := h.Store.Read(id)
	if err != nil {
		st = state.State{ID: id, Verb: "unknown"}
	}
	return takeDown(ctx, r, h, st)
}

// takeDown ends the processes in a lab, detaches its pods, removes its
// namespaces and its files. Errors do not stop it; the kernel destroys with a
// namespace all that is in it, so a pod that could not be detached leaves
// nothing either.
func takeDown(ctx context.Context, r *exec.Runner, h *state.Held, st state.State) (Gone, error) {
	gone, err := clearNamespaces(ctx, r, h, st, st.Prefix())
	return gone, errors.Join(err, h.Remove())
}

// clearNamespaces takes down what has names with a prefix: a lab's, or that of
// one of its clusters.
func clearNamespaces(ctx context.Context, r *exec.Runner, h *state.Held, st state.State, prefix string) (Gone, error) {
	gone := Gone{ID: st.ID, Verb: st.Verb, PID: st.PID}
	namespaces, err := netns.List(prefix)
	errs := []error{err}
	gone.Namespaces = len(namespaces)
	inCgroups, err := processes.KillCgroups(prefix)
	errs = append(errs, err)
	gone.Killed, err = processes.KillInside(namespaces)
	gone.Killed += inCgroups
	errs = append(errs, err, processes.RemoveCgroups(prefix))
	gone.Detach = detach(ctx, r, h, st, namespaces)
	late, err := processes.KillInside(namespaces) // what a plugin's DEL has left running
	gone.Killed += late
	errs = append(errs, err)
	// Pods before nodes before fabric: names of pods begin with their node's.
	slices.Reverse(namespaces)
	g := new(errgroup.Group)
	g.SetLimit(parallel())
	for _, ns := range namespaces {
		g.Go(ns.Delete)
	}
	errs = append(errs, g.Wait())
	return gone, errors.Join(errs...)
}

// detach runs CNI DEL for every pod whose namespaces exist.
func detach(ctx context.Context, r *exec.Runner, h *state.Held, st state.State, namespaces []netns.NS) error {
	there := map[string]bool{}
	for _, ns := range namespaces {
		there[ns.Name] = true
	}
	if err := catalog.LinkOwn(ownPlugins(h.Path)); err != nil { // the program may have moved
		return err
	}
	rt := cniRuntime(r, st, h.Path)
	g := new(errgroup.Group)
	g.SetLimit(parallel())
	var mu sync.Mutex
	var errs []error
	for k, c := range st.Clusters {
		for n, raw := range c.Conflists {
			list, err := cni.ParseConflist(c.Spec.Network, raw)
			if err != nil {
				return err
			}
			node := st.Node(k+1, n+1)
			for p := 1; p <= c.Spec.Pods[n]; p++ {
				pod := st.Pod(k+1, n+1, p)
				if !there[node.Name] || !there[pod.Name] {
					continue
				}
				g.Go(func() error {
					ctx, cancel := context.WithTimeout(ctx, attachTimeout)
					defer cancel()
					if _, err := rt.Del(ctx, attachment(list, pod, node)); err != nil {
						mu.Lock()
						defer mu.Unlock()
						errs = append(errs, err)
					}
					return nil
				})
			}
		}
	}
	return errors.Join(g.Wait(), errors.Join(errs...))
}
