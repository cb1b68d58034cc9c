// Package baremetal is the testbed of bare machines: an Ansible inventory names
// them, Ansible's roles change and restore them, and cnibench runs on them over
// SSH. If they are nodes of a Kubernetes, its pods can be measured in the same campaign.
// No port is opened for control, and everything copied is removed.
package baremetal

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/buildable"
	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed"
)

// Options say what a testbed of hosts is made with.
type Options struct {
	// Runner starts ssh and Ansible; it must live longer than the testbed.
	Runner *exec.Runner
	// Program is this program, which is copied to the hosts.
	Program string
	// Inventory is the file that names the hosts.
	Inventory string
	// KeepGoing lets the steps continue with other hosts where one fails, and a
	// run without its sink.
	KeepGoing bool
	// Say reports what was found and corrected.
	Say func(format string, args ...any)
}

// Testbed measures between two hosts.
type Testbed struct {
	options   Options
	inventory Inventory
	player    *player
	// ends are client and server in this order.
	ends     [2]*end
	profiles []profile.Profile
	pods     *pods // nil: the hosts are nodes of no Kubernetes
	// kubeconfig is that of the control plane, in memory; nil: it was not fetched.
	kubeconfig *os.File
	ready      bool // Bootstrap went well
	deployed   bool // the program is on the hosts
	// held keeps the hosts' locks, by name; nil: occupy was not called.
	held map[string]*lock
	who  string // what the locks say of this command

	mu    sync.Mutex
	tuned tuning // what the hosts have now
	away  away
	made  map[string][]result.Setting
}

// end is one of the two hosts.
type end struct {
	host    Host
	role    string // "client", "server"
	facts   facts
	address netip.Addr
	agent   *agent.Client
	mtus    map[string]int
	// values and doubts are of the settings now in force.
	values map[string]string
	doubts []string
	// asked is what became of each setting of the profile in force.
	asked []result.Setting
}

// tuning is what a host is given between samples.
type tuning struct {
	profile string
	mtu     int // bytes; 0: nothing was given yet
}

var _ testbed.Testbed = (*Testbed)(nil)

// Open reads the inventory. Nothing is done to a host yet.
func Open(ctx context.Context, o Options) (*Testbed, error) {
	p, err := newPlayer(o.Runner)
	if err != nil {
		return nil, err
	}
	inv, err := read(ctx, o.Runner, o.Inventory, p.env())
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	b := &Testbed{options: o, inventory: inv, player: p, made: map[string][]result.Setting{}}
	b.ends = [2]*end{{host: inv.Client, role: "client"}, {host: inv.Server, role: "server"}}
	return b, nil
}

// Release lets the hosts go and removes what Open made on this machine. It is
// called after Close, where Build was called.
func (b *Testbed) Release() error {
	err := b.closePods(context.Background())
	b.vacate()
	if b.kubeconfig != nil {
		err = errors.Join(err, b.kubeconfig.Close())
		b.kubeconfig = nil
	}
	return errors.Join(err, b.player.close())
}

// HasSink reports whether the inventory names where results are copied to.
func (b *Testbed) HasSink() bool { return b.inventory.Sink != nil }

// Build makes the hosts ready: what a killed run left is put back, the program
// is copied. A cell that bare machines do not have is in the map.
func (b *Testbed) Build(ctx context.Context, cells []result.Cell) (map[result.Cell]string, error) {
	if !b.ready {
		if err := b.Bootstrap(ctx); err != nil {
			return nil, err
		}
	}
	unsupported, err := b.choose(ctx, cells)
	if err != nil || len(unsupported) == len(cells) {
		return unsupported, err
	}
	if err := b.Deploy(ctx); err != nil {
		return nil, errors.Join(err, b.Close(ctx))
	}
	return unsupported, nil
}

// choose reports which cells cannot be measured here, and gathers the profiles of
// those that can.
func (b *Testbed) choose(ctx context.Context, cells []result.Cell) (map[result.Cell]string, error) {
	unsupported := map[result.Cell]string{}
	for _, c := range cells {
		if err := b.support(c); err != nil {
			unsupported[c] = err.Error()
		}
	}
	if err := b.buildPods(ctx, cells, unsupported); err != nil {
		return nil, err
	}
	have := map[string]bool{}
	for _, c := range cells {
		if unsupported[c] != "" || have[c.Profile] {
			continue
		}
		have[c.Profile] = true
		p, err := profile.Find(c.Profile)
		if err != nil {
			return nil, err
		}
		b.profiles = append(b.profiles, p)
	}
	return unsupported, nil
}

// support says why a cell cannot be measured between bare machines.
func (b *Testbed) support(c result.Cell) error {
	switch {
	case c.HasManyEnds():
		return fmt.Errorf("%s has %d ranks, and an inventory has two hosts that are measured: measure it in the lab", c.Workload, c.Ranks)
	case c.Workload == result.PodSetupName:
		return fmt.Errorf("hosts are tuned, and pods are added to a cluster as it is: measure %s with testbed kubernetes, or in the lab", c.Workload)
	case b.ofPods(c):
		return b.supportPods(c)
	case c.Network == campaign.Detected:
		return errors.New("the inventory has no group control_plane, so there is no cluster whose network could be detected")
	case c.Network != result.HostNetwork:
		return fmt.Errorf("bare machines have no pod network %s: they measure the network host, the baseline of others", c.Network)
	case c.Placement != result.InterHost:
		return fmt.Errorf("client and server are two machines: there is no placement %s", c.Placement)
	case c.Family != "" && c.Family != "ipv4":
		return fmt.Errorf("the hosts are spoken to over IPv4, not %s", c.Family)
	}
	return b.supportLink(c)
}

// supportLink compares the link's name with the speed that the devices report.
func (b *Testbed) supportLink(c result.Cell) error {
	want, shaped := buildable.LinkRate(c.Link)
	if !shaped {
		return nil
	}
	for _, e := range b.ends { // a bond reports the sum of its wires
		if e.facts.deviceMbps != int(want/1e6) {
			return fmt.Errorf("link %s: %s of %s %s", c.Link, e.facts.device, e.host.Name, speedInWords(e.facts.deviceMbps))
		}
	}
	return nil
}

func speedInWords(mbps int) string {
	if mbps <= 0 {
		return "does not tell its speed; unshaped takes the wire as it is"
	}
	return fmt.Sprintf("runs at %d Mbit/s", mbps)
}

// Ends gives both hosts with the settings of the cell and living agents. A host
// that does not answer any more is a testbed.LostError; one that is back is used
// again.
func (b *Testbed) Ends(ctx context.Context, cell result.Cell) (testbed.Ends, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.deployed {
		return testbed.Ends{}, errors.New("the hosts are not ready: Build comes first")
	}
	if err := b.givenUp(time.Now()); err != nil {
		return testbed.Ends{}, err
	}
	for began := time.Now(); ; {
		ends, err := b.endsOf(ctx, cell)
		if err = b.lost(err); b.away.since.IsZero() || time.Since(began) > returnWithin {
			return ends, err
		}
		select {
		case <-ctx.Done():
			return testbed.Ends{}, err
		case <-time.After(time.Second):
		}
	}
}

func (b *Testbed) endsOf(ctx context.Context, cell result.Cell) (testbed.Ends, error) {
	if err := b.reconnect(ctx); err != nil {
		return testbed.Ends{}, err
	}
	if err := b.tune(ctx, tuning{cell.Profile, cell.MTU}); err != nil {
		return testbed.Ends{}, err
	}
	if b.ofPods(cell) {
		return b.podEnds(ctx, cell)
	}
	for _, e := range b.ends {
		if err := b.startAgent(ctx, e); err != nil {
			return testbed.Ends{}, err
		}
	}
	client, server := b.ends[0], b.ends[1]
	machine := client.agent.Machine()
	return testbed.Ends{
		Client: client.place(), Server: server.place(), ServerAddress: server.address,
		SharedClock: machine != "" && machine == server.agent.Machine(),
	}, nil
}

func (e *end) name() string { return e.role + " " + e.host.Name }

func (e *end) place() testbed.Place {
	return testbed.Place{
		Name: e.name(), Node: e.host.Name, MTU: e.mtus[e.facts.device], Agent: e.agent, Settings: e.values, Doubts: e.doubts,
	}
}

// startAgent starts the agent of a host, where none lives, and reads the MTUs. One that
// does not answer is ended, so that the next call starts another.
func (b *Testbed) startAgent(ctx context.Context, e *end) error {
	if e.agent != nil && e.mtus != nil {
		return nil
	}
	if e.agent == nil {
		if err := b.greet(ctx, e, answerWithin); err != nil {
			return fmt.Errorf("agent on %s: %w", e.name(), err)
		}
	}
	f, err := e.agent.Facts(ctx)
	if err != nil {
		err = errors.Join(fmt.Errorf("%s: facts: %w", e.name(), err), e.agent.Close())
		e.agent = nil
		return err
	}
	e.mtus = f.MTUs
	return nil
}

// greet starts the agent of a host and waits for its greeting.
func (b *Testbed) greet(ctx context.Context, e *end, within time.Duration) error {
	p, err := b.options.Runner.StartPiped(context.WithoutCancel(ctx), e.host.ssh(e.host.agent(), "agent"))
	if err != nil {
		return err
	}
	wait := func() error { return e.host.explain(p.Wait()) }
	ctx, cancel := context.WithTimeoutCause(ctx, within, &HostError{
		Host: e.host.Name, Lost: true, Text: fmt.Sprintf("no greeting within %v", within), Cure: "see whether it is overloaded, or the network between",
	})
	defer cancel()
	e.agent, err = agent.NewClient(ctx, agent.Transport{Stdin: p.Stdin, Stdout: p.Stdout, Stderr: p.Stderr, Wait: wait, Kill: p.Kill})
	return err
}

// Close ends the agents and puts both hosts back as they were.
func (b *Testbed) Close(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	errs := []error{b.closePods(ctx)}
	for _, e := range b.ends {
		if e.agent != nil {
			if err := e.agent.Close(); err != nil {
				errs = append(errs, fmt.Errorf("agent on %s: %w", e.name(), err))
			}
			e.agent = nil
		}
	}
	if b.deployed {
		errs = append(errs, b.lost(b.destroy(context.WithoutCancel(ctx))))
	}
	return errors.Join(errs...)
}
