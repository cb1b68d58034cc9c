// Package lab is the testbed on this machine: nodes, pods and the switch
// between them are network namespaces, pods are attached by real CNI ADDs.
// Nothing is made in the machine's own namespace.
package lab

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/cni"
	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/catalog"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed"
	"github.com/cnibench/cnibench/internal/testbed/lab/state"
)

// Options say what a lab is made with.
type Options struct {
	// Runner starts agents and plugins; it must live longer than the lab.
	Runner *exec.Runner
	// Agent is the argv of an agent: this program and "agent".
	Agent []string
	// CNIPath is where plugins are searched, in order: cni.SearchPath.
	CNIPath []string
	// Machine changes the whole machine where a profile asks for that; nil: no
	// setting outside the lab's namespaces is changed.
	Machine Machine
	// Networks are the user's own (network.FromConflist); they go before the
	// list's.
	Networks []network.Network
	// Verb is what the owner does, for those who find the lab: "run".
	Verb string
	// Dir keeps the state of labs; "" is DefaultDir.
	Dir string
	// SetsAlgorithm reports whether a workload sets its congestion control itself; the lab
	// sets it for the others. nil: none does.
	SetsAlgorithm func(workload string) bool
	// Greeting bounds the wait for a new agent's greeting; 0 is the usual bound.
	Greeting time.Duration
}

func (o Options) store() state.Store {
	if o.Dir == "" {
		return state.Store{Dir: state.DefaultDir}
	}
	return state.Store{Dir: o.Dir}
}

// Lab is a testbed of network namespaces.
type Lab struct {
	options  Options
	planner  *planner
	state    state.State
	held     *state.Held
	clusters map[key]*cluster
	ordered  []*cluster

	mu     sync.Mutex
	agents map[string]*agent.Client
	// changed are settings of namespaces that cells ask for.
	changed map[string]changed
}

var _ testbed.Testbed = (*Lab)(nil)

// New makes a Lab that holds nothing yet.
func New(o Options) *Lab {
	return &Lab{
		options:  o,
		planner:  &planner{networks: o.Networks, features: map[string]error{}, machine: o.Machine != nil, setsAlgorithm: o.SetsAlgorithm},
		clusters: map[key]*cluster{}, agents: map[string]*agent.Client{}, changed: map[string]changed{},
	}
}

// ID names the lab: its namespaces begin with cnb-ID-. It is empty before
// Build.
func (l *Lab) ID() string { return l.state.ID }

// Build makes a cluster for each network, link, profile, MTU, number of services
// by a proxy and number of policies of the cells.
// A plugin that is missing is an error, and so is a set-up that fails where no
// other network but the baseline could be built; all is taken down again then. If
// others could, those of a network whose set-up failed are left out with the
// reason.
func (l *Lab) Build(ctx context.Context, cells []result.Cell) (map[result.Cell]string, error) {
	specs, unsupported := l.planner.specs(cells)
	if len(specs) == 0 {
		return unsupported, nil
	}
	if err := l.begin(specs); err != nil {
		return unsupported, err
	}
	failed, err := l.make(ctx)
	if err != nil || !l.othersBuilt(failed) {
		return unsupported, l.giveUp(ctx, errors.Join(append(failed.errors(), err)...))
	}
	for _, c := range cells {
		if err := failed[keyOf(c)]; err != nil && unsupported[c] == "" {
			unsupported[c] = strings.ReplaceAll(err.Error(), "\n", "; ")
		}
	}
	return unsupported, l.drop(ctx, failed)
}

// build makes the clusters, all or none.
func (l *Lab) build(ctx context.Context, specs []state.Spec) error {
	if err := l.begin(specs); err != nil {
		return err
	}
	failed, err := l.make(ctx)
	if err != nil || len(failed) > 0 {
		return l.giveUp(ctx, errors.Join(append(failed.errors(), err)...))
	}
	return nil
}

// begin writes down what will be made.
func (l *Lab) begin(specs []state.Spec) (err error) {
	if l.held != nil {
		return errors.New("the lab is built already")
	}
	if os.Getuid() != 0 {
		return errNeedsRoot()
	}
	l.state = state.State{
		Schema: 1, ID: fmt.Sprintf("%06x", rand.Uint32()&0xffffff), PID: os.Getpid(), Verb: l.options.Verb, Started: time.Now(),
	}
	dir := filepath.Join(l.options.store().Dir, l.state.ID)
	l.state.CNIPath = append([]string{ownPlugins(dir)}, l.options.CNIPath...)
	if err := l.plan(dir, specs); err != nil {
		return err
	}
	l.held, err = l.options.store().Create(l.state)
	return err
}

func errNeedsRoot() error { return errors.New("a lab needs root: run it with sudo") }

// plan names all that will be made and finds what is missing for it.
func (l *Lab) plan(dir string, specs []state.Spec) error {
	l.clusters, l.ordered = map[key]*cluster{}, nil
	missing := map[string]error{}
	for i, s := range specs {
		n, err := l.planner.find(s.Network)
		if err != nil {
			return err
		}
		c, err := newCluster(l.state, dir, i+1, s, n)
		if err != nil {
			return err
		}
		for _, p := range n.Plugins {
			if _, err := cni.Find(p, l.options.CNIPath); err != nil && !isOwnPlugin(p) {
				missing[p] = err
			}
		}
		l.clusters[keyOfSpec(s)] = c
		l.ordered = append(l.ordered, c)
		l.state.Clusters = append(l.state.Clusters, c.state())
	}
	var errs []error
	for _, err := range missing {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func isOwnPlugin(name string) bool {
	for _, p := range catalog.OwnPlugins() {
		if p.Name == name {
			return true
		}
	}
	return false
}

func ownPlugins(dir string) string { return filepath.Join(dir, "plugins") }

func cniRuntime(r *exec.Runner, st state.State, dir string) *cni.Runtime {
	return &cni.Runtime{Runner: r, Path: st.CNIPath, CacheDir: filepath.Join(dir, "cni")}
}

// parallel is how many things are made at once. Plugins wait for the kernel's
// one lock on network devices much of their time.
func parallel() int { return 4 * runtime.NumCPU() }

// Ends gives the two ends of a cell.
func (l *Lab) Ends(ctx context.Context, cell result.Cell) (testbed.Ends, error) {
	c, ok := l.clusters[keyOf(cell)]
	if !ok || l.held == nil {
		return testbed.Ends{}, fmt.Errorf("the lab was not built for network %s, link %s, profile %s, MTU %d%s",
			cell.Network, cell.Link, cell.Profile, cell.MTU, rulesOf(specOf(cell)))
	}
	from, to, err := sites(cell, c.network.HostNetwork)
	if err != nil {
		return testbed.Ends{}, err
	}
	if !c.has(from) || !c.has(to) {
		return testbed.Ends{}, fmt.Errorf("the lab was not built for path %s %s on network %s", cell.Path, cell.Placement, cell.Network)
	}
	if err := l.useProfile(ctx, c); err != nil {
		return testbed.Ends{}, err
	}
	doubts, err := l.useAlgorithm(c, cell, from, to)
	if err != nil {
		return testbed.Ends{}, err
	}
	if err := c.placeCarriers(cell, from, to); err != nil {
		return testbed.Ends{}, err
	}
	buffers, err := bufferDoubts(c.network, cell)
	if err != nil {
		return testbed.Ends{}, err
	}
	clientAddress, serverAddress := c.knownAs(from, cell.Family), c.knownAs(to, cell.Family)
	if from == to {
		clientAddress, serverAddress = loopbackOf(cell.Family), loopbackOf(cell.Family)
	}
	target, port := c.target(cell, from, to)
	client, err := l.place(ctx, c, from, serverAddress, roleClient)
	if err != nil {
		return testbed.Ends{}, err
	}
	server, err := l.place(ctx, c, to, clientAddress, roleServer)
	if err != nil {
		return testbed.Ends{}, err
	}
	client.Doubts = slices.Concat(client.Doubts, doubts, buffers)
	return testbed.Ends{Client: client, Server: server, ServerAddress: target, ServerPort: port, Proxied: c.network.Proxied != nil || c.network.Published != nil,
		Carried: len(c.carriers[from.node-1])+len(c.carriers[to.node-1]) > 0, SharedClock: true}, nil
}

// Close takes the lab down. It may be called again.
func (l *Lab) Close(ctx context.Context) error {
	gone, err := l.close(ctx)
	return errors.Join(gone.Detach, err)
}

func (l *Lab) close(ctx context.Context) (Gone, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.closeAgents()
	if l.options.Machine != nil {
		err = errors.Join(err, l.options.Machine.Close(ctx))
		l.options.Machine = nil
	}
	for _, c := range l.ordered {
		err = errors.Join(err, c.leaveCgroups())
	}
	if l.held == nil {
		return Gone{}, err
	}
	// What was begun is undone even if the caller was cancelled.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), downTimeout)
	defer cancel()
	gone, downErr := takeDown(ctx, l.options.Runner, l.held, l.state)
	l.held, l.clusters, l.ordered = nil, map[key]*cluster{}, nil
	return gone, errors.Join(err, downErr)
}

// closeAgents ends all agents at once: one that hangs takes seconds.
func (l *Lab) closeAgents() error {
	errs := make(chan error, len(l.agents))
	for name, a := range l.agents {
		go func() {
			err := a.Close()
			if err != nil {
				err = fmt.Errorf("agent at %s: %w", name, err)
			}
			errs <- err
		}()
	}
	var all []error
	for range l.agents {
		all = append(all, <-errs)
	}
	clear(l.agents)
	return errors.Join(all...)
}
