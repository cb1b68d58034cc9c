package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed/lab/state"
)

// Info describes a lab that is up.
type Info struct {
	ID      string      `json:"id"`
	PID     int         `json:"pid"`
	Verb    string      `json:"verb"`
	Started time.Time   `json:"started"`
	Kept    bool        `json:"kept"`
	InUse   bool        `json:"in_use"` // a living process owns it
	Places  []PlaceInfo `json:"places"`
	// Kubernetes is set for a lab that is one.
	Kubernetes *state.Kubernetes `json:"kubernetes,omitempty"`
}

// PlaceInfo is one namespace of a lab.
type PlaceInfo struct {
	Namespace string `json:"namespace"` // what Exec takes
	Network   string `json:"network"`
	Link      string `json:"link"`
	MTU       int    `json:"mtu"`
	Kind      string `json:"kind"` // "fabric", "node", "pod", "control-plane"
	// Addresses are those of its devices, loopback left out.
	Addresses []string `json:"addresses,omitempty"`
}

// Up builds clusters and leaves them when this program ends, until Down.
func Up(ctx context.Context, o Options, specs []state.Spec) (Info, error) {
	l := New(o)
	for _, s := range specs {
		n, err := l.planner.find(s.Network)
		if err != nil {
			return Info{}, err
		}
		if n.Cgroup != nil {
			return Info{}, fmt.Errorf("%s lives only as long as the program that made it: it cannot be kept", n.Name)
		}
		if err := l.planner.check(n, s.Link, s.Profile, s.MTU); err != nil {
			return Info{}, err
		}
		between := result.Cell{Network: s.Network, Encryption: s.Encryption, Placement: result.InterHost, MTU: s.MTU}
		if err := l.planner.checkEncryption(n, between); err != nil {
			return Info{}, err
		}
	}
	if err := l.build(ctx, specs); err != nil {
		return Info{}, err
	}
	l.state.Kept = true
	if err := l.held.Save(l.state); err != nil {
		return Info{}, errors.Join(err, l.Close(ctx))
	}
	if err := l.held.Release(); err != nil {
		return Info{}, err
	}
	return describe(l.state, false), nil
}

// List describes every lab that is up.
func List(o Options) ([]Info, error) {
	s := o.store()
	ids, err := s.IDs()
	if err != nil {
		return nil, err
	}
	var all []Info
	for _, id := range ids {
		st, err := s.Read(id)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		h, err := s.Take(id)
		inUse := errors.Is(err, state.ErrInUse)
		if err == nil {
			err = h.Release()
		}
		if err != nil && !inUse && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		all = append(all, describe(st, inUse))
	}
	return all, nil
}

func describe(st state.State, inUse bool) Info {
	info := Info{ID: st.ID, PID: st.PID, Verb: st.Verb, Started: st.Started, Kept: st.Kept, InUse: inUse}
	if st.Kubernetes != nil {
		info.describeKubernetes(st)
	}
	for k, c := range st.Clusters {
		add := func(kind string, ns netns.NS) {
			info.Places = append(info.Places, PlaceInfo{
				Namespace: ns.Name, Network: c.Spec.Network, Link: c.Spec.Link, MTU: c.Spec.MTU, Kind: kind,
				Addresses: addressesOf(ns),
			})
		}
		add("fabric", st.Fabric(k+1))
		for n, pods := range c.Spec.Pods {
			add("node", st.Node(k+1, n+1))
			for p := 1; p <= pods; p++ {
				add("pod", st.Pod(k+1, n+1, p))
			}
		}
	}
	return info
}

// addressesOf are those of a namespace; none where it does not exist yet, or no
// more.
func addressesOf(ns netns.NS) []string {
	addresses, err := netns.Addresses(ns)
	if err != nil {
		return nil
	}
	return addresses
}

// Exec replaces this program by argv in a namespace of a lab, named in full or
// by an end of its name that fits one alone: "node1-pod1". It returns on an
// error only.
func Exec(o Options, place string, argv []string) error {
	if len(argv) == 0 {
		return errors.New("no program to run")
	}
	ns, holder, err := findPlace(o, place)
	if err != nil {
		return err
	}
	if os.Getuid() != 0 {
		return errNeedsRoot()
	}
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return err
	}
	// The new program has the namespaces of the thread that calls execve.
	runtime.LockOSThread()
	if err := enter(ns, holder); err != nil {
		return err
	}
	return fmt.Errorf("%s: %w", path, syscall.Exec(path, argv, os.Environ()))
}

// enter puts this thread into a namespace of a lab and, where a process keeps a
// mount namespace for it (not 0), into that as well.
func enter(ns netns.NS, holder int) error {
	f, err := os.Open(ns.Path)
	if err != nil {
		return fmt.Errorf("%s: %w", ns.Name, err)
	}
	defer f.Close()
	if err := unix.Setns(int(f.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter %s: %w", ns.Name, err)
	}
	if holder == 0 {
		return nil
	}
	mounts, err := os.Open(fmt.Sprintf("/proc/%d/ns/mnt", holder))
	if err != nil {
		return fmt.Errorf("the mounts of %s: %w", ns.Name, err)
	}
	defer mounts.Close()
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("enter the mounts of %s: %w", ns.Name, err)
	}
	if err := unix.Setns(int(mounts.Fd()), unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("enter the mounts of %s: %w", ns.Name, err)
	}
	return nil
}

// findPlace also gives the process that keeps the place's mounts, or 0.
func findPlace(o Options, place string) (netns.NS, int, error) {
	labs, err := List(o)
	if err != nil {
		return netns.NS{}, 0, err
	}
	var fit, all []string
	holders := map[string]int{}
	for _, l := range labs {
		for _, p := range l.Places {
			holders[p.Namespace] = l.holder(p.Namespace)
			if p.Namespace == place {
				return netns.Named(place), holders[place], nil
			}
			all = append(all, p.Namespace)
			if strings.HasSuffix(p.Namespace, "-"+place) {
				fit = append(fit, p.Namespace)
			}
		}
	}
	switch {
	case len(fit) == 1:
		return netns.Named(fit[0]), holders[fit[0]], nil
	case len(fit) > 1:
		return netns.NS{}, 0, fmt.Errorf("%q is more than one place: %s", place, strings.Join(fit, ", "))
	case len(all) == 0:
		return netns.NS{}, 0, fmt.Errorf("there is no place %q: no lab is up (cnibench lab up)", place)
	}
	return netns.NS{}, 0, fmt.Errorf("there is no place %q (there are %s)", place, strings.Join(all, ", "))
}
