package lab

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
)

// DefaultDir is where labs keep their state.
const DefaultDir = "/run/cnibench"

const (
	stateFile = "state.json"
	// netnsIsOurs is a file next to the labs: /run/netns did not exist before.
	netnsIsOurs = "netns-dir-is-ours"
)

// state is what another process needs to know to take a lab down. It is
// written before the first namespace, and names everything that will be made.
type state struct {
	Schema   int            `json:"schema"`
	ID       string         `json:"id"`
	PID      int            `json:"pid"`
	Verb     string         `json:"verb"` // what the owner does: "run", "lab up"
	Started  time.Time      `json:"started"`
	Kept     bool           `json:"kept"` // stays when its owner ends
	CNIPath  []string       `json:"cni_path"`
	Clusters []clusterState `json:"clusters"`
	// Kubernetes is that of a lab that is one; such a lab has no Clusters.
	Kubernetes *Kubernetes `json:"kubernetes,omitempty"`
}

type clusterState struct {
	Spec Spec `json:"spec"`
	// Conflists is that of each node's pods; empty where pods share their node.
	Conflists []json.RawMessage `json:"conflists,omitempty"`
}

// prefix is what the names of all the lab's namespaces begin with.
func (s state) prefix() string { return "cnb-" + s.ID + "-" }

// clusterPrefix is that of one cluster's.
func (s state) clusterPrefix(cluster int) string { return fmt.Sprintf("%s%d-", s.prefix(), cluster) }

func (s state) fabric(cluster int) netns.NS { return netns.Named(s.clusterPrefix(cluster) + "fabric") }

func (s state) node(cluster, node int) netns.NS {
	return netns.Named(fmt.Sprintf("%snode%d", s.clusterPrefix(cluster), node))
}

func (s state) kubernetesNode(name string) netns.NS { return netns.Named(s.clusterPrefix(1) + name) }

func (s state) pod(cluster, node, pod int) netns.NS {
	return netns.Named(fmt.Sprintf("%snode%d-pod%d", s.clusterPrefix(cluster), node, pod))
}

// store is the folder of all labs' state. Each lab is a folder in it, locked
// (flock) by its owner for as long as that lives.
type store struct {
	dir string
	// wait bounds the wait for the store's lock; 0 is lockWait.
	wait time.Duration
}

// held is a lab's folder with its lock.
type held struct {
	store store
	path  string
	lock  *os.File
}

// lockWait bounds the wait for another command that changes the store: the longest
// is one that removes the files of a Kubernetes.
const lockWait = 30 * time.Second

// locked runs f alone among all processes that use the store. The folder goes
// with the last lab, so it may vanish between opening and locking it.
func (s store) locked(f func() error) error {
	for {
		if err := s.make(); err != nil {
			return fmt.Errorf("state of labs: %w", err)
		}
		d, err := flock.Lock(s.dir, cmp.Or(s.wait, lockWait))
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
func (s store) make() error {
	if err := os.MkdirAll(filepath.Dir(s.dir), 0o755); err != nil {
		return err
	}
	err := os.Mkdir(s.dir, 0o700)
	if errors.Is(err, fs.ErrExist) {
		err = nil
		if s.dir == DefaultDir { // an earlier version made it for all to read
			err = os.Chmod(s.dir, 0o700)
		}
	}
	return err
}

// create makes and locks the folder of a new lab and writes its state.
func (s store) create(st state) (*held, error) {
	h := &held{store: s, path: filepath.Join(s.dir, st.ID)}
	err := s.locked(func() error {
		if _, err := os.Stat(netns.Dir); errors.Is(err, fs.ErrNotExist) {
			if err := os.WriteFile(filepath.Join(s.dir, netnsIsOurs), nil, 0o644); err != nil {
				return err
			}
		}
		if err := os.Mkdir(h.path, 0o700); err != nil {
			return err
		}
		var err error
		h.lock, err = flock.Lock(h.path, 0)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("state of lab %s: %w", st.ID, err)
	}
	if err := h.save(st); err != nil {
		return nil, errors.Join(err, h.remove())
	}
	return h, nil
}

// save replaces the state in one step.
func (h *held) save(st state) error {
	data, err := json.MarshalIndent(st, "", " ")
	if err != nil {
		return err
	}
	tmp := filepath.Join(h.path, "."+stateFile)
	if err := os.WriteFile(tmp, data, 0o644); err != nil {
		return fmt.Errorf("state of lab %s: %w", st.ID, err)
	}
	if err := os.Rename(tmp, filepath.Join(h.path, stateFile)); err != nil {
		return fmt.Errorf("state of lab %s: %w", st.ID, err)
	}
	return nil
}

// release gives the lock back and leaves the lab.
func (h *held) release() error { return h.lock.Close() }

// remove deletes the lab's folder and, with the last one, what is around it.
func (h *held) remove() error {
	err := h.store.locked(func() error {
		if err := os.RemoveAll(h.path); err != nil {
			return err
		}
		return h.store.tidy()
	})
	if err != nil {
		err = fmt.Errorf("state of labs: %w", err)
	}
	return errors.Join(err, h.lock.Close())
}

// tidy removes, where no lab is left, the store and, where it was made for
// labs and nobody else has a namespace in it, /run/netns.
func (s store) tidy() error {
	ids, err := s.ids()
	if err != nil || len(ids) > 0 {
		return err
	}
	mark := filepath.Join(s.dir, netnsIsOurs)
	if _, err := os.Stat(mark); err == nil {
		if err := os.Remove(netns.Dir); err != nil && !isNotEmpty(err) && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := os.Remove(mark); err != nil {
			return err
		}
	}
	if err := os.Remove(s.dir); err != nil && !isNotEmpty(err) {
		return err
	}
	return nil
}

// isNotEmpty also takes a mount point for not empty: iproute2 makes one of
// /run/netns when it makes a namespace of its own.
func isNotEmpty(err error) bool {
	return errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST) || errors.Is(err, unix.EBUSY)
}

// ids are the labs of the store.
func (s store) ids() ([]string, error) {
	entries, err := os.ReadDir(s.dir)
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

// read gives a lab's state; ErrNotExist: its owner ended before it made
// anything.
func (s store) read(id string) (state, error) {
	st := state{ID: id}
	data, err := os.ReadFile(filepath.Join(s.dir, id, stateFile))
	if err != nil {
		return st, err
	}
	if err := json.Unmarshal(data, &st); err != nil {
		return state{ID: id}, fmt.Errorf("state of lab %s: %w", id, err)
	}
	if st.ID != id { // namespaces are removed by it
		return state{ID: id}, fmt.Errorf("state of lab %s: it names lab %q: clear what is left with cnibench lab down %s", id, st.ID, id)
	}
	return st, nil
}

// errInUse: a living owner holds the lab.
var errInUse = errors.New("is in use")

// take locks a lab that no living owner holds; errInUse, or ErrNotExist where
// it went meanwhile.
func (s store) take(id string) (*held, error) {
	path := filepath.Join(s.dir, id)
	for try := 0; ; try++ {
		lock, err := flock.Lock(path, 0)
		if err == nil {
			return &held{store: s, path: path, lock: lock}, nil
		}
		if !errors.Is(err, flock.ErrHeld) {
			return nil, err
		}
		// A program that the owner was about to start when it was killed has
		// the lock as well, between fork and exec.
		if try == 300 || s.ownerLives(id) {
			return nil, fmt.Errorf("%w: %w", errInUse, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// ownerLives reports whether the process that made the lab is there and no
// zombie, which has no program any more.
func (s store) ownerLives(id string) bool {
	st, err := s.read(id)
	if err != nil {
		return true // it is being made
	}
	_, err = os.Readlink(filepath.Join("/proc", strconv.Itoa(st.PID), "exe"))
	return !errors.Is(err, fs.ErrNotExist)
}
