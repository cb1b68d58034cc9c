package lab

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/testbed/lab/state"
	"github.com/cnibench/cnibench/internal/testbed/lab/wire"
)

const controlPlaneIndex = 254

// Kubernetes is a lab for one Kubernetes while it is being made: its name, its folder,
// its lock, its namespaces with the wires between them.
type Kubernetes struct {
	// Fabric is the switch's namespace. Nodes are the workers; Control is the
	// control plane's node.
	Fabric  netns.NS
	Nodes   []network.Node
	Control network.Node

	options Options
	state   state.State
	held    *state.Held
}

// Begin writes down a lab for one Kubernetes, and makes only its folder.
func Begin(o Options, k state.Kubernetes) (*Kubernetes, error) {
	if os.Getuid() != 0 {
		return nil, errNeedsRoot()
	}
	if k.Nodes < 1 || k.Nodes >= controlPlaneIndex {
		return nil, fmt.Errorf("a lab's Kubernetes has 1 to %d nodes, not %d", controlPlaneIndex-1, k.Nodes)
	}
	if _, err := wire.Find(k.Link); err != nil {
		return nil, err
	}
	if k.MTU < minMTU6 || k.MTU > maxMTU {
		return nil, fmt.Errorf("an MTU of %d: a lab's Kubernetes has %d to %d", k.MTU, minMTU6, maxMTU)
	}
	if err := nameIsFree(o, k.Name); err != nil {
		return nil, err
	}
	st := state.State{
		Schema: 1, ID: fmt.Sprintf("%06x", rand.Uint32()&0xffffff), PID: os.Getpid(), Verb: o.Verb, Started: time.Now(),
		Kubernetes: &k,
	}
	held, err := o.store().Create(st)
	if err != nil {
		return nil, err
	}
	s := &Kubernetes{Fabric: st.Fabric(1), options: o, state: st, held: held}
	for i := 1; i <= k.Nodes; i++ {
		s.Nodes = append(s.Nodes, s.node("node"+strconv.Itoa(i), i))
	}
	s.Control = s.node(state.ControlPlane, controlPlaneIndex)
	return s, nil
}

func (s *Kubernetes) node(name string, index int) network.Node {
	n := network.Node{
		Name: name, Index: index, NS: s.state.KubernetesNode(name), Device: device,
		Address: nodeAddress(index), PodCIDR: podCIDR(index), MTU: s.state.Kubernetes.MTU,
		DataDir: filepath.Join(s.held.Path, name), Switch: netns.Port{NS: s.Fabric, Device: wire.Bridge},
	}
	if s.state.Kubernetes.IPv6 {
		n.Address6, n.PodCIDR6 = nodeAddress6(index), podCIDR6(index)
	}
	return n
}

// nameIsFree keeps names apart: contexts of kubeconfigs have them.
func nameIsFree(o Options, name string) error {
	labs, err := List(o)
	if err != nil {
		return err
	}
	for _, l := range labs {
		if l.Kubernetes != nil && l.Kubernetes.Name == name {
			return fmt.Errorf("a Kubernetes %q is running already (lab %s): take it down with cnibench lab down %s, or choose another --name", name, l.ID, l.ID)
		}
	}
	return nil
}

// ID names the lab.
func (s *Kubernetes) ID() string { return s.state.ID }

// Dir is the lab's folder.
func (s *Kubernetes) Dir() string { return s.held.Path }

// Recorded is what is written down of it.
func (s *Kubernetes) Recorded() *state.Kubernetes { return s.state.Kubernetes }

// Save writes down what it is now.
func (s *Kubernetes) Save() error { return s.held.Save(s.state) }

// Cgroup is the path, below the top of every hierarchy of cgroups, that all its
// processes are in or below.
func (s *Kubernetes) Cgroup() string { return s.state.KubernetesCgroup() }

// Wire makes the namespaces and the wires between them.
func (s *Kubernetes) Wire(ctx context.Context) error {
	k := s.state.Kubernetes
	link, err := wire.Find(k.Link)
	if err != nil {
		return err
	}
	nodes := append([]network.Node{s.Control}, s.Nodes...)
	defaults := nodeDefaults(k.IPv6)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(makeNamespace(ctx, s.Fabric, wire.FabricSettings()))
	for _, n := range nodes {
		g.Go(makeNamespace(ctx, n.NS, defaults))
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return wire.Connect(s.Fabric, link, k.MTU, nodes)
}

// Keep leaves the lab when this program ends, until Down.
func (s *Kubernetes) Keep() (Info, error) {
	s.state.Kept = true
	if err := s.Save(); err != nil {
		return Info{}, err
	}
	return describe(s.state, false), s.held.Release()
}

// Close takes the lab down.
func (s *Kubernetes) Close(ctx context.Context) (Gone, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), downTimeout)
	defer cancel()
	gone, err := takeDown(ctx, s.options.Runner, s.held, s.state)
	return gone, errors.Join(gone.Detach, err)
}
