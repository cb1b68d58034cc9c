// Package state is what is kept on disk about the labs of a machine: a folder for each,
// locked by its owner, with what another process needs to know to take the lab down.
package state

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/flock"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/wholefile"
)

// DefaultDir is where labs keep their state.
const DefaultDir = "/run/cnibench"

const (
	stateFile = "state.json"
	// netnsIsOurs is a file next to the labs: /run/netns did not exist before.
	netnsIsOurs = "netns-dir-is-ours"
)

// State is what another process needs to know to take a lab down. It is
// written before the first namespace, and names everything that will be made.
type State struct {
	Schema   int       `json:"schema"`
	ID       string    `json:"id"`
	PID      int       `json:"pid"`
	Verb     string    `json:"verb"` // what the owner does: "run", "lab up"
	Started  time.Time `json:"started"`
	Kept     bool      `json:"kept"` // stays when its owner ends
	CNIPath  []string  `json:"cni_path"`
	Clusters []Cluster `json:"clusters"`
	// Kubernetes is that of a lab that is one; such a lab has no Clusters.
	Kubernetes *Kubernetes `json:"kubernetes,omitempty"`
}

// Cluster is one cluster of a lab, with what taking it down needs.
type Cluster struct {
	Spec Spec `json:"spec"`
	// Conflists is that of each node's pods; empty where pods share their node.
	Conflists []json.RawMessage `json:"conflists,omitempty"`
}

// Prefix is what the names of all the lab's namespaces begin with.
func (s State) Prefix() string { return "cnb-" + s.ID + "-" }

// ClusterPrefix is that of one cluster's; clusters count from 1.
func (s State) ClusterPrefix(cluster int) string { return fmt.Sprintf("%s%d-", s.Prefix(), cluster) }

// Fabric is the namespace of a cluster's switch.
func (s State) Fabric(cluster int) netns.NS { return netns.Named(s.ClusterPrefix(cluster) + "fabric") }

// Node is the namespace of a cluster's node, from 1.
func (s State) Node(cluster, node int) netns.NS {
	return netns.Named(fmt.Sprintf("%snode%d", s.ClusterPrefix(cluster), node))
}

// KubernetesNode is the namespace of a node of the lab's Kubernetes, by its name.
func (s State) KubernetesNode(name string) netns.NS { return netns.Named(s.ClusterPrefix(1) + name) }

// Pod is the namespace of a pod of a node, from 1.
func (s State) Pod(cluster, node, pod int) netns.NS {
	return netns.Named(fmt.Sprintf("%snode%d-pod%d", s.ClusterPrefix(cluster), node, pod))
}

// Store is the folder of all labs' state. Each lab is a folder in it, locked
// (flock) by its owner for as long as that lives.
type Store struct {
	Dir string
	// wait bounds the wait for the store's lock; 0 is lockWait.
	wait time.Duration
}

// Held is a lab's folder with its lock.
type Held struct {
	Store Store
	Path  string
	lock  *os.File
}

// lockWait bounds the wait for another command that changes the store: the longest
// is one that removes the files of a Kubernetes.
const lockWait = 30 * time.Second

// locked runs f alone among all processes that use the store. The folder goes
// with the last lab, so it may vanish between opening and locking it.
func (s Store) locked(f func() error) error {
	for {
		if err := s.make(); err != nil {
			return fmt.Errorf("state of labs: %w", err)
		}
		d, err := flock.Lock(s.Dir, cmp.Or(s.wait, lockWait))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if errors.Is(err, flock.ErrHeld) {
			err = fmt.Errorf("%w: wait for that, or end it", err)
		}
		if err != nil {
			return fmt.Errorf("state of labs: %w", err)
		}
		defer d.Close()
		return f()
	}
}

// make makes the store's folder for its user alone: whoever can open a folder can
// lock it, and no command would go on.
func (s Store) make() error {
	if err := os.MkdirAll(filepath.Dir(s.Dir), 0o755); err != nil {
		return err
	}
	err := os.Mkdir(s.Dir, 0o700)
	if errors.Is(err, fs.ErrExist) {
		err = nil
		if s.Dir == DefaultDir { // an earlier version made it for all to read
			err = os.Chmod(s.Dir, 0o700)
		}
	}
	return err
}

// Create makes and locks the folder of a new lab and writes its state.
func (s Store) Create(st State) (*Held, error) {
	h := &Held{Store: s, Path: filepath.Join(s.Dir, st.ID)}
	err := s.locked(func() error {
		if _, err := os.Stat(netns.Dir); errors.Is(err, fs.ErrNotExist) {
			if err := os.WriteFile(filepath.Join(s.Dir, netnsIsOurs), nil, 0o644); err != nil {
				return err
			}
		}
		if err := os.Mkdir(h.Path, 0o700); err != nil {
			return err
		}
		var err error
		h.lock, err = flock.Lock(h.Path, 0)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("state of lab %s: %w", st.ID, err)
	}
	if err := h.Save(st); err != nil {
		return nil, errors.Join(err, h.Remove())
	}
	return h, nil
}

// Save replaces the state in one step.
func (h *Held) Save(st State) error {
	data, err := json.MarshalIndent(st, "", " ")
	if err != nil {
		return err
	}
	if err := wholefile.Write(filepath.Join(h.Path, stateFile), "."+stateFile+"-*", 0o644, wholefile.Bytes(data)); err != nil {
		return fmt.Errorf("state of lab %s: %w", st.ID, err)
	}
	return nil
}

// Release gives the lock back and leaves the lab.
func (h *Held) Release() error { return h.lock.Close() }

// Remove deletes the lab's folder and, with the last one, what is around it.
func (h *Held) Remove() error {
	err := h.Store.locked(func() error {
		if err := os.RemoveAll(h.Path); err != nil {
			return err
		}
		return h.Store.tidy()
	})
	if err != nil {
		err = fmt.Errorf("state of labs: %w", err)
	}
	return errors.Join(err, h.lock.Close())
}

// tidy removes, where no lab is left, the store and, where it was made for
// labs and nobody else has a namespace in it, /run/netns.
func (s Store) tidy() error {
	ids, err := s.IDs()
	if err != nil || len(ids) > 0 {
		return err
	}
	mark := filepath.Join(s.Dir, netnsIsOurs)
	if _, err := os.Stat(mark); err == nil {
		if err := os.Remove(netns.Dir); err != nil && !isNotEmpty(err) && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := os.Remove(mark); err != nil {
			return err
		}
	}
	if err := os.Remove(s.Dir); err != nil && !isNotEmpty(err) {
		return err
	}
	return nil
}

// isNotEmpty also takes a mount point for not empty: iproute2 makes one of
// /run/netns when it makes a namespace of its own.
func isNotEmpty(err error) bool {
	return errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST) || errors.Is(err, unix.EBUSY)
}

// IDs are the labs of the store.
func (s Store) IDs() ([]string, error) {
	entries, err := os.ReadDir(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("state of labs: %w: they belong to root: run it with sudo", err)
	}
	if err != nil {
		return nil, fmt.Errorf("state of labs: %w", err)
	}
	var ids []string
	for _, e := range entries {
		if e.IsDir() {
			ids = append(ids, e.Name())
		}
	}
	return ids, nil
}

// Read gives a lab's state; ErrNotExist: its owner ended before it made
// anything.
func (s Store) Read(id string) (State, error) {
	st := State{ID: id}
	data, err := os.ReadFile(filepath.Join(s.Dir, id, stateFile))
	if err != nil {
		return st, err
	}
	if err := json.Unmarshal(data, &st); err != nil {
		return State{ID: id}, fmt.Errorf("state of lab %s: %w", id, err)
	}
	if st.ID != id { // namespaces are removed by it
		return State{ID: id}, fmt.Errorf("state of lab %s: it names lab %q: clear what is left with cnibench lab down %s", id, st.ID, id)
	}
	return st, nil
}

// ErrInUse is the error where a living owner holds the lab.
var ErrInUse = errors.New("is in use")

// Take locks a lab that no living owner holds; ErrInUse, or ErrNotExist where
// it went meanwhile.
func (s Store) Take(id string) (*Held, error) {
	path := filepath.Join(s.Dir, id)
	for try := 0; ; try++ {
		lock, err := flock.Lock(path, 0)
		if err == nil {
			return &Held{Store: s, Path: path, lock: lock}, nil
		}
		if !errors.Is(err, flock.ErrHeld) {
			return nil, err
		}
		// A program that the owner was about to start when it was killed has
		// the lock as well, between fork and exec.
		if try == 300 || s.OwnerLives(id) {
			return nil, fmt.Errorf("%w: %w", ErrInUse, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// OwnerLives reports whether the process that made the lab exists and no
// zombie, which has no program any more.
func (s Store) OwnerLives(id string) bool {
	st, err := s.Read(id)
	if err != nil {
		return true // it is being made
	}
	_, err = os.Readlink(filepath.Join("/proc", strconv.Itoa(st.PID), "exe"))
	return !errors.Is(err, fs.ErrNotExist)
}
