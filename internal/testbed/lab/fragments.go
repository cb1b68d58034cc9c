package lab

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/catalog"
	"github.com/cnibench/cnibench/internal/network/encryption"
	"github.com/cnibench/cnibench/internal/result"
)

// checkFragments says why datagrams of a cell's size do not arrive. A switch in user space may
// lose what travels in fragments. Flat out it loses some of all packets, and a datagram arrives
// only with all of its fragments. Those of incomplete datagrams fill the memory of the receiving
// node (net.ipv4.ipfrag_high_thresh) for half a minute (ipfrag_time): nothing of this size
// arrives there meanwhile, in this cell or in any other.
func (p *planner) checkFragments(n network.Network, c result.Cell) error {
	const headers4, headers6 = 20 + 8, 40 + 8 // IP and UDP
	lost := n.UserSpaceLoses
	if c.ToService() {
		proxy, err := catalog.FindServiceProxy(c.ServiceProxy)
		if err != nil {
			return err
		}
		lost = max(lost, proxy.UserSpaceLoses)
	}
	six, link := c.Family == familyIPv6, c.MTU
	if c.Encryption != "" {
		m, err := encryption.Find(c.Encryption)
		if err != nil {
			return err
		}
		link = m.NodeMTU(link, six)
	}
	largest := n.PodMTU(link) - headers4
	if six {
		largest = n.PodMTU6(link) - headers6
	}
	if !c.Datagrams() || max(c.MessageBytes, c.ResponseBytes) <= largest || lost == network.NoFragments || lost == network.FloodsOfFragments && !flatOut(c) {
		return nil
	}
	what := "datagrams in fragments"
	if lost == network.FloodsOfFragments {
		what += " flat out"
	}
	what = fmt.Sprintf("%s switches packets in user space, which loses %s: send at most %d bytes at once", c.Network, what, largest)
	if len(n.InKernel) == 0 && c.Placement != result.IntraHost { // a tunnel in user space
		return errors.New(what)
	}
	for _, f := range n.InKernel {
		if err := p.probe(f); err != nil {
			return fmt.Errorf("%w: %s", err, what)
		}
	}
	return nil
}

// flatOut reports whether a cell sends datagrams without a rate, and waits for no answers.
func flatOut(c result.Cell) bool {
	for _, name := range []string{c.Workload, c.Test} {
		if strings.HasSuffix(strings.ToLower(name), "_rr") || name == "ping-pong" {
			return false
		}
	}
	return c.RateBitsPerSecond == 0 && c.RatePerSecond == 0
}
