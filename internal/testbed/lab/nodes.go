package lab

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/cnibench/cnibench/internal/netfilter"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network/inspect"
	"github.com/cnibench/cnibench/internal/network/sockmap"
	"github.com/cnibench/cnibench/internal/probe"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed"
	"github.com/cnibench/cnibench/internal/unit"
)

var _ testbed.NodeReader = (*Lab)(nil)

// watched is one node while a sample of a cell runs.
type watched struct {
	c       *cluster
	node    int // from 1
	counted netns.NS
	device  string // of counted, whose packets are those of the sample
	before  netfilter.Ruleset
	packets uint64
	values  map[string]float64
	took    time.Duration
	doubts  []string
	ready   bool // the first reading is done
}

// WatchNodes reads the nodes of both ends, each once.
func (l *Lab) WatchNodes(ctx context.Context, cell result.Cell, without []string) func(context.Context) testbed.NodeReadings {
	c, ok := l.clusters[keyOf(cell)]
	if !ok {
		return func(context.Context) testbed.NodeReadings { return testbed.NodeReadings{} }
	}
	from, to, err := sites(cell, c.network.HostNetwork)
	if err != nil || !c.has(from) || !c.has(to) {
		return func(context.Context) testbed.NodeReadings { return testbed.NodeReadings{} } // Ends says why
	}
	client := newWatched(c, from, to)
	server := client
	if to.node != from.node {
		server = newWatched(c, to, from)
	}
	both := slices.Compact([]*watched{client, server})
	bypassed := c.watchSegments(cell, from, to)
	if c.network.Cgroup != nil && server == client {
		bypassed = c.watchSockmap(to.node)
	}
	if !slices.Contains(without, probe.NetfilterName) {
		for _, w := range both {
			w.readRules(ctx)
		}
	}
	return func(ctx context.Context) testbed.NodeReadings {
		var r testbed.NodeReadings
		for _, w := range both {
			if w.ready {
				w.crossed(ctx)
			}
			if !slices.Contains(without, probe.MemoryName) {
				w.readMemory()
			}
			r.Doubts = append(r.Doubts, w.doubts...)
		}
		if doubt := bypassed(); doubt != "" {
			r.Doubts = append(r.Doubts, doubt)
		}
		r.Client, r.Server = client.values, maps.Clone(server.values)
		return r
	}
}

// watchSockmap gives a func that doubts a sample between sockets of one node of
// which messages went by the network in spite of a sockmap: it then mixes two ways.
func (c *cluster) watchSockmap(node int) (doubt func() string) {
	name, at := c.nodes[node-1].Name, c.cgroup(node).Name()
	before, err := sockmap.Counters(at)
	return func() string {
		after, errAfter := sockmap.Counters(at)
		switch err := errors.Join(err, errAfter); {
		case err != nil:
			return fmt.Sprintf("sockmap: %s: %v", name, err)
		case after["plain"] > before["plain"]:
			return "sockmap: messages between sockets of " + name + " went by the network: their other end was not known yet, or is a service by rules"
		}
		return ""
	}
}

// newWatched chooses the device whose packets are counted: the pod's, where the
// end or the other one is a pod, else the node's on the link.
func newWatched(c *cluster, s, other site) *watched {
	w := &watched{c: c, node: s.node, device: device, values: map[string]float64{}}
	switch {
	case s.pod == 0 && other == s:
		w.counted, w.device = c.ns(s), "lo"
	case s.pod == 0 && other.node == s.node:
		w.counted = c.ns(other)
	default:
		w.counted = c.ns(s)
	}
	return w
}

func (w *watched) doubt(probe string, err error) {
	w.doubts = append(w.doubts, fmt.Sprintf("probe %s: %s: %v", probe, w.c.nodes[w.node-1].Name, err))
}

// rules gives the reader of the node's rules, which the cluster keeps.
func (w *watched) rules() (*inspect.RuleReader, error) {
	if r := w.c.rules[w.node]; r != nil {
		return r, nil
	}
	r, err := inspect.OpenRules(w.c.nodes[w.node-1].NS)
	if err != nil {
		return nil, err
	}
	if w.c.rules == nil {
		w.c.rules = map[int]*inspect.RuleReader{}
	}
	w.c.rules[w.node] = r
	w.c.held = append(w.c.held, r)
	return r, nil
}

// read reads rules and packets.
func (w *watched) read(ctx context.Context) (netfilter.Ruleset, uint64, error) {
	began := time.Now()
	defer func() { w.took += time.Since(began) }()
	r, err := w.rules()
	if err != nil {
		return netfilter.Ruleset{}, 0, err
	}
	packets, err := netns.Packets(w.counted, w.device)
	if err != nil {
		return netfilter.Ruleset{}, 0, err
	}
	rules, err := r.Read(ctx)
	return rules, packets, err
}

func (w *watched) readRules(ctx context.Context) {
	var err error
	if w.before, w.packets, err = w.read(ctx); err != nil {
		w.doubt(probe.NetfilterName, err)
		return
	}
	w.ready = true
}

// crossed reads the rules again, and returns which of them packets hit between.
func (w *watched) crossed(ctx context.Context) {
	after, packets, err := w.read(ctx)
	if err != nil {
		w.doubt(probe.NetfilterName, err)
		return
	}
	x, err := netfilter.Between(w.before, after)
	switch {
	case errors.Is(err, netfilter.ErrNotCounted): // a property of the rules, the same in each sample
	case err != nil:
		w.doubt(probe.NetfilterName, err)
		return
	}
	w.values[unit.NetfilterRules] = float64(x.Rules)
	w.values[unit.NetfilterChains] = float64(x.Chains)
	w.values[unit.NetfilterReadSeconds] = w.took.Seconds()
	if w.device == "lo" {
		packets, w.packets = packets/2, w.packets/2 // sent and received is one
	}
	if err == nil && packets > w.packets {
		n := float64(packets - w.packets)
		w.values[unit.NetfilterRulesPerPacket] = x.Evaluated / n
		w.values[unit.NetfilterChainsPerPacket] = x.Entered / n
	}
}

// readMemory reads what the node holds for its network.
func (w *watched) readMemory() {
	began := time.Now()
	node := w.c.nodes[w.node-1].NS
	put := func(name string, of func() (float64, error)) {
		v, err := of()
		switch {
		case errors.Is(err, probe.ErrAbsent):
		case err != nil:
			w.doubt(probe.MemoryName, err)
		default:
			w.values[name] = v
		}
	}
	memory := probe.Memory{Proc: "/proc", Sys: "/sys"}
	if len(w.c.programmed) > 0 {
		w.values[unit.ServicesSetUpSeconds] = w.c.programmed[w.node-1].Seconds()
	}
	w.values[unit.NetworkProcesses] = float64(len(w.c.carriers[w.node-1]))
	put(unit.NetworkResidentBytes, func() (float64, error) { return memory.Resident(w.c.carriers[w.node-1]) })
	if entries, err := netns.Sysctl(node, "net/netfilter/nf_conntrack_count"); err == nil {
		put(unit.ConntrackEntries, func() (float64, error) { return probe.ParseCount(entries) })
		put(unit.ConntrackBytes, func() (float64, error) { return memory.Conntrack(entries) })
	}
	put(unit.EBPFMapBytes, func() (float64, error) { return number(inspect.EBPFMapBytes(node)) })
	put(unit.IPSetBytes, func() (float64, error) { return number(inspect.IPSetBytes(node)) })
	w.values[unit.MemoryReadSeconds] = time.Since(began).Seconds()
}

func number(n uint64, err error) (float64, error) { return float64(n), err }
