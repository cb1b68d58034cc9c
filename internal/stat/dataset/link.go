package dataset

import (
	"math"
	"strings"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/estimate"
)

// FillsLink is the share of the link's goodput from which a cell is link-bound.
const FillsLink = 0.99

// LinkBound returns what goodput the cell's link can carry, and whether the cell
// fills it. The limit is nil where the link, its rate or the traffic's framing
// is not known.
func (c *Dataset) LinkBound(d *CellData) (limit *float64, bound bool) {
	if d.Primary != "throughput_bits_per_second" || d.Cell.Placement == result.IntraHost {
		return nil, false // traffic inside a node does not use the link
	}
	rate, ok := c.Options.LinkRate(d.Cell.Link)
	if !ok || rate <= 0 {
		return nil, false
	}
	mtu := d.Cell.MTU
	if own := estimate.Values(d.Series("client_mtu_bytes")); len(own) > 0 {
		mtu = int(estimate.MedianOf(own))
	}
	share, ok := goodputShare(d.Cell, mtu)
	if !ok {
		return nil, false
	}
	l := rate * share
	xs := estimate.Values(d.Series(d.Primary))
	return &l, len(xs) > 0 && estimate.MedianOf(xs) >= FillsLink*l
}

// goodputShare is the payload's share of the bytes that a shaped link counts,
// headers of 14 bytes Ethernet, 20 IPv4 or 40 IPv6, 32 TCP with timestamps, 8
// UDP: (MTU − 52)/(MTU + 14) for TCP over IPv4 and (MTU − 28)/(MTU + 14) for
// full UDP datagrams. podMTU is the client's own; what it falls short of the
// link's is the encapsulation that every packet carries on the wire.
func goodputShare(c result.Cell, podMTU int) (float64, bool) {
	const ethernet, tcp, udp = 14, 32, 8
	ip := 20
	if c.Family == "ipv6" {
		ip = 40
	}
	overhead := max(0, c.MTU-podMTU)
	switch Transport(c) {
	case "tcp":
		payload := podMTU - ip - tcp
		return float64(payload) / float64(podMTU+overhead+ethernet), payload > 0
	case "udp":
		if c.MessageBytes <= 0 || podMTU <= ip+udp {
			return 0, false
		}
		packets, bytes := 1, c.MessageBytes+udp
		if room := (podMTU - ip) / 8 * 8; bytes > podMTU-ip { // fragments carry a multiple of 8
			packets = int(math.Ceil(float64(bytes) / float64(room)))
		}
		wire := bytes + packets*(ip+overhead+ethernet)
		return float64(c.MessageBytes) / float64(wire), true
	}
	return 0, false
}

// Transport is the protocol that carries a cell's traffic; "" where the cell
// does not say.
func Transport(c result.Cell) string {
	if c.Protocol != "" {
		return c.Protocol
	}
	for _, p := range []string{"tcp", "udp"} {
		if strings.HasPrefix(c.Workload, p+"_") || strings.HasPrefix(strings.ToLower(c.Test), p+"_") {
			return p
		}
	}
	return ""
}
