package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/testbed/lab/state"
)

// freezeTimeout bounds the wait until the kernel has stopped all processes.
const freezeTimeout = 10 * time.Second

// describeKubernetes adds its places, and whether it is frozen.
func (i *Info) describeKubernetes(st state.State) {
	k := *st.Kubernetes
	i.Kubernetes = &k
	add := func(kind string, ns netns.NS) {
		i.Places = append(i.Places, PlaceInfo{
			Namespace: ns.Name, Network: k.CNI, Link: k.Link, MTU: k.MTU, Kind: kind, Addresses: addressesOf(ns),
		})
	}
	add("fabric", st.Fabric(1))
	add(state.ControlPlane, st.KubernetesNode(state.ControlPlane))
	for n := 1; n <= k.Nodes; n++ {
		add("node", st.KubernetesNode(fmt.Sprintf("node%d", n)))
	}
	dir, err := freezer(st)
	if err == nil {
		k.Frozen, err = isFrozen(dir)
	}
	i.Kubernetes.Frozen = err == nil && k.Frozen // it may not be there yet, or no more
}

// holder is the process that keeps a place's mounts; 0 where it has none.
func (i Info) holder(namespace string) int {
	if i.Kubernetes == nil {
		return 0
	}
	for _, p := range i.Kubernetes.Programs {
		if p.Name == state.Holder && strings.HasSuffix(namespace, "-"+p.Node) {
			return p.PID
		}
	}
	return 0
}

// freezer is the folder of the cgroup, of version 2, of all processes of a
// Kubernetes.
func freezer(s state.State) (string, error) {
	root, err := netns.CgroupRoot()
	if err != nil {
		return "", err
	}
	return filepath.Join(root, s.KubernetesCgroup()), nil
}

// SetFrozen stops all processes of a lab's Kubernetes, or lets them go on, and
// waits until that is done. The lab is named by its ID or its Kubernetes' name.
// A frozen Kubernetes takes no CPU time, and connections to it wait.
func SetFrozen(ctx context.Context, o Options, name string, frozen bool) error {
	if os.Getuid() != 0 {
		return errNeedsRoot()
	}
	st, err := kubernetesIn(o.store(), name)
	if err != nil {
		return err
	}
	dir, err := freezer(st)
	if err != nil {
		return err
	}
	value := "0"
	if frozen {
		value = "1"
	}
	if err := os.WriteFile(filepath.Join(dir, "cgroup.freeze"), []byte(value), 0o644); err != nil {
		return fmt.Errorf("lab %s: cgroup: %w", st.ID, err)
	}
	ctx, cancel := context.WithTimeout(ctx, freezeTimeout)
	defer cancel()
	for {
		is, err := isFrozen(dir)
		if err != nil {
			return fmt.Errorf("lab %s: cgroup: %w", st.ID, err)
		}
		if is == frozen {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("lab %s: the kernel did not stop all processes within %s: %w", st.ID, freezeTimeout, ctx.Err())
		case <-time.After(time.Millisecond):
		}
	}
}

func isFrozen(dir string) (bool, error) {
	events, err := os.ReadFile(filepath.Join(dir, "cgroup.events"))
	if err != nil {
		return false, err
	}
	return strings.Contains(string(events), "frozen 1"), nil
}

// kubernetesIn finds a lab's Kubernetes by its name or the lab's ID.
func kubernetesIn(s state.Store, name string) (state.State, error) {
	ids, err := s.IDs()
	if err != nil {
		return state.State{}, err
	}
	var there []string
	var errs []error
	for _, id := range ids {
		st, err := s.Read(id)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if st.Kubernetes == nil {
			continue
		}
		if id == name || st.Kubernetes.Name == name {
			return st, nil
		}
		there = append(there, st.Kubernetes.Name)
	}
	return state.State{}, errors.Join(append(errs, fmt.Errorf("there is no Kubernetes %q in a lab (there are %v): cnibench lab up --kubernetes", name, there))...)
}
