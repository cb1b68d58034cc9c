package lab

import (
	"context"
	"errors"
	"fmt"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/encryption"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed"
)

var _ testbed.EncryptionReader = (*Lab)(nil)

// checkEncryption says why a cell's packets between nodes cannot be encrypted.
func (p *planner) checkEncryption(n network.Network, c result.Cell) error {
	if c.Encryption == "" {
		return nil
	}
	m, err := encryption.Find(c.Encryption)
	if err != nil {
		return err
	}
	if c.Workload == result.PodSetupName {
		return fmt.Errorf("%s sends nothing between nodes that encryption by %s could be verified with", c.Workload, m.Name)
	}
	if c.Placement != result.InterHost {
		return fmt.Errorf("encryption by %s is between nodes, and both ends are on one", m.Name)
	}
	if err := m.Refuses(n, p.probe); err != nil {
		return err
	}
	six := c.Family == familyIPv6
	least := minMTU + n.Overhead
	if six {
		least = minMTU6 + max(n.Overhead, n.Overhead6)
	}
	if left := m.NodeMTU(c.MTU, six); left < least {
		return fmt.Errorf("%s with encryption by %s cannot be built on an MTU of %d: %d are left for packets between nodes, and %d are needed", n.Name, m.Name, c.MTU, left, least)
	}
	for _, f := range m.Needs(six) {
		if err := p.probe(f); err != nil {
			return err
		}
	}
	return nil
}

// encryptedReading is what the nodes of a cluster and the pods of a cell had counted at one
// moment.
type encryptedReading struct {
	nodes    []encryption.Counters
	received []netns.Passed // of each end that is a pod, in the order of the ends
}

// WatchEncryption reads the counters of the cell's nodes, and those of the pods at its ends.
func (l *Lab) WatchEncryption(_ context.Context, cell result.Cell) func() (*result.Encryption, error) {
	c, ok := l.clusters[keyOf(cell)]
	if !ok || !c.encryption.On() {
		return func() (*result.Encryption, error) { return nil, nil }
	}
	ends := c.encryptedEnds(cell)
	before, err := c.readEncryption(ends)
	return func() (*result.Encryption, error) {
		after, errAfter := c.readEncryption(ends)
		if err := errors.Join(err, errAfter); err != nil {
			return nil, err
		}
		return c.checkEncrypted(ends, before, after)
	}
}

// encryptedEnds are the two ends of a cell. A cell with ranks has none: ranks of one node
// reach each other without encryption.
func (c *cluster) encryptedEnds(cell result.Cell) []site {
	from, to, err := sites(cell, c.network.HostNetwork)
	if err != nil || cell.HasManyEnds() || !c.has(from) || !c.has(to) {
		return nil
	}
	return []site{from, to}
}

// readEncryption reads what pods received before what nodes encrypted: a packet is encrypted
// before it arrives.
func (c *cluster) readEncryption(ends []site) (r encryptedReading, err error) {
	for _, s := range ends {
		var got netns.Passed
		if s.pod > 0 {
			if got, err = netns.Received(c.ns(s), device); err != nil {
				return r, err
			}
		}
		r.received = append(r.received, got)
	}
	for _, n := range c.nodes {
		got, err := c.encryption.Read(n, c.nodes)
		if err != nil {
			return r, err
		}
		r.nodes = append(r.nodes, got)
	}
	return r, nil
}

// checkEncrypted says why the packets between two readings were not all encrypted, or how
// many bytes were.
func (c *cluster) checkEncrypted(ends []site, before, after encryptedReading) (*result.Encryption, error) {
	var sum uint64
	for i, n := range c.nodes {
		if err := c.encryption.Check(n.Name, before.nodes[i], after.nodes[i], c.spec.IPv6); err != nil {
			return nil, err
		}
		sum += encryption.Bytes(before.nodes[i], after.nodes[i])
	}
	for i, s := range ends {
		from := ends[1-i].node - 1
		moved := netns.Passed{
			Bytes:   after.received[i].Bytes - before.received[i].Bytes,
			Packets: after.received[i].Packets - before.received[i].Packets,
		}
		if s.pod == 0 {
			moved = netns.Passed{}
		}
		if err := c.encryption.Carried(c.nodes[from].Name, before.nodes[from], after.nodes[from], moved); err != nil {
			return nil, err
		}
	}
	if sum == 0 {
		return nil, fmt.Errorf("not encrypted: no node encrypted anything by %s", c.encryption.Name)
	}
	return c.encryption.Record(sum), nil
}
