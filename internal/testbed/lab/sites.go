package lab

import (
	"fmt"
	"net/netip"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/result"
)

// Sites is where the two ends of a cell are.
type Sites struct {
	Client, Server netns.NS
	// Address is the server's own, Target where the client sends to: a service's
	// where the cell's path leads to one, else the same.
	Address, Target netip.Addr
	// Port is where the server must listen; 0 is anywhere.
	Port uint16
}

// Sites gives where the two ends of a cell are, for programs that open the
// sockets of both ends themselves.
func (l *Lab) Sites(cell result.Cell) (Sites, error) {
	c, ok := l.clusters[keyOf(cell)]
	if !ok || l.held == nil {
		return Sites{}, fmt.Errorf("the lab was not built for network %s", cell.Network)
	}
	from, to, err := sites(cell, c.network.HostNetwork)
	if err != nil {
		return Sites{}, err
	}
	if !c.has(from) || !c.has(to) {
		return Sites{}, fmt.Errorf("the lab was not built for path %s %s on network %s", cell.Path, cell.Placement, cell.Network)
	}
	s := Sites{Client: c.ns(from), Server: c.ns(to), Address: c.addressOf(to, cell.Family)}
	if from == to {
		s.Address = loopbackOf(cell.Family)
	}
	s.Target, s.Port = c.target(cell, from, to)
	return s, nil
}

// target is where the client of a cell sends to, and the port at which its server must listen;
// 0 is any.
func (c *cluster) target(cell result.Cell, from, to site) (netip.Addr, uint16) {
	switch {
	case cell.ToService():
		return c.serviceTarget(cell, to), measuredPort(cell.Placement)
	case from == to:
		return loopbackOf(cell.Family), 0
	case to.pod != 0 && c.network.Published != nil:
		return c.knownAs(to, cell.Family), c.network.Published(c.address(to))
	}
	return c.knownAs(to, cell.Family), 0
}

// knownAs is the address that others know a site by.
func (c *cluster) knownAs(s site, family string) netip.Addr {
	if c.network.Published != nil {
		s.pod = 0
	}
	return c.addressOf(s, family)
}
