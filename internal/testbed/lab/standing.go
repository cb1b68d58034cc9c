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
	"github.com/cnibench/cnibench/internal/testbed/lab/wire"
)

// Kubernetes describes the Kubernetes of a lab that is one.
type Kubernetes struct {
	Name      string `json:"name"` // also the context of the kubeconfig
	CNI       string `json:"cni"`
	KubeProxy string `json:"kube_proxy"`
	Link      string `json:"link"`
	MTU       int    `json:"mtu"` // of the link, bytes
	Nodes     int    `json:"nodes"`
	IPv6      bool   `json:"ipv6,omitempty"`
	// Kubeconfig is the file; Server the address in it, on this machine's
	// loopback.
	Kubeconfig string `json:"kubeconfig"`
	Server     string `json:"server"`
	// Algorithms means that its pods may set any congestion control that this kernel
	// has, though the machine does not allow it to everybody.
	Algorithms bool `json:"any_congestion_control,omitempty"`
	// Frozen means that its processes are stopped: see SetFrozen.
	Frozen bool `json:"frozen"`
	// Timings is how long each part of its start took, in order of their ends.
	Timings []Timing `json:"timings,omitempty"`
	// Programs are its processes, containers left out.
	Programs []Program `json:"programs,omitempty"`
}

// Timing is one part of a start. Parts run at the same time: the last to end
// shows how long it took in all.
type Timing struct {
	Part    string  `json:"part"`
	Seconds float64 `json:"seconds"` // its own
	EndedAt float64 `json:"ended_at_seconds"`
}

// Program is a process of a lab's Kubernetes.
type Program struct {
	Node string   `json:"node"` // "control-plane", "node1"
	Name string   `json:"name"`
	PID  int      `json:"pid"`
	Argv []string `json:"argv"`
}

// Names of what each Kubernetes of a lab has.
const (
	// ControlPlane is the node without pods.
	ControlPlane = "control-plane"
	// Holder is the program that keeps a node's mount namespace.
	Holder = "holder"
	// kubernetesCgroup ends the name of the cgroup of all its processes.
	kubernetesCgroup  = "kubernetes"
	controlPlaneIndex = 254
)

// Standing is a lab of one Kubernetes while it is being made: its name, its
// folder, its lock, its namespaces with the wires between them.
type Standing struct {
	// Fabric is the switch's namespace. Nodes are the workers; Control is the
	// control plane's node.
	Fabric  netns.NS
	Nodes   []network.Node
	Control network.Node

	options Options
	state   state
	held    *held
}

// Begin writes down a lab for one Kubernetes, and makes its folder alone.
func Begin(o Options, k Kubernetes) (*Standing, error) {
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
	st := state{
		Schema: 1, ID: fmt.Sprintf("%06x", rand.Uint32()&0xffffff), PID: os.Getpid(), Verb: o.Verb, Started: time.Now(),
		Kubernetes: &k,
	}
	held, err := o.store().create(st)
	if err != nil {
		return nil, err
	}
	s := &Standing{Fabric: st.fabric(1), options: o, state: st, held: held}
	for i := 1; i <= k.Nodes; i++ {
		s.Nodes = append(s.Nodes, s.node("node"+strconv.Itoa(i), i))
	}
	s.Control = s.node(ControlPlane, controlPlaneIndex)
	return s, nil
}

func (s *Standing) node(name string, index int) network.Node {
	n := network.Node{
		Name: name, Index: index, NS: s.state.kubernetesNode(name), Device: device,
		Address: nodeAddress(index), PodCIDR: podCIDR(index), MTU: s.state.Kubernetes.MTU,
		DataDir: filepath.Join(s.held.path, name), Switch: netns.Port{NS: s.Fabric, Device: wire.Bridge},
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
func (s *Standing) ID() string { return s.state.ID }

// Dir is the lab's folder.
func (s *Standing) Dir() string { return s.held.path }

// Kubernetes is what is written down of it.
func (s *Standing) Kubernetes() *Kubernetes { return s.state.Kubernetes }

// Save writes down what has become of it.
func (s *Standing) Save() error { return s.held.save(s.state) }

// Cgroup is the path, below the top of every hierarchy of cgroups, that all its
// processes are in or below.
func (s *Standing) Cgroup() string { return s.state.clusterPrefix(1) + kubernetesCgroup }

// Wire makes the namespaces and the wires between them.
func (s *Standing) Wire(ctx context.Context) error {
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
func (s *Standing) Keep() (Info, error) {
	s.state.Kept = true
	if err := s.Save(); err != nil {
		return Info{}, err
	}
	return describe(s.state, false), s.held.release()
}

// Close takes the lab down.
func (s *Standing) Close(ctx context.Context) (Gone, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), downTimeout)
	defer cancel()
	gone, err := takeDown(ctx, s.options.Runner, s.held, s.state)
	return gone, errors.Join(gone.Detach, err)
}
