package encryption

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/result"
)

// wireDevice is a node's device on the link where a device of the encryption has the name
// and the addresses that networks know.
const wireDevice = "wire0"

// Headers, in bytes.
const (
	ethernetHeader = 14
	ipv4Header     = 20 // without options, RFC 791
	ipv6Header     = 40 // RFC 8200
	udpHeader      = 8  // RFC 768
	// A WireGuard data message: type and reserved 4, receiver 4, counter 8, tag 16
	// (WireGuard's whitepaper, 5.4.6).
	wireguardHeader = 32
	// ESP: SPI and sequence number (RFC 4303, 2), the IV and the ICV of AES-GCM (RFC 4106,
	// 3.1 and 6), and what ends the payload: pad length and next header.
	espHeader, gcmIV, gcmICV, espTrailer = 8, 8, 16, 2
	// espAlign is what ESP pads its payload to (RFC 4303, 2.4).
	espAlign = 4
)

// outerHeader is the IP header around what is encrypted. On a cluster of both families
// WireGuard's packets are IPv6, and those of ESP as the packets that it encrypts.
func outerHeader(six bool) int {
	if six {
		return ipv6Header
	}
	return ipv4Header
}

// NodeMTU is the largest packet that a node can send to another on a link of an MTU, both in
// bytes: what networks take their own overhead from. WireGuard takes 60 bytes, 80 in IPv6.
// ESP leaves the IP header outside and pads the rest.
func (m Method) NodeMTU(link int, six bool) int {
	outer := outerHeader(six)
	switch {
	case !m.On():
		return link
	case m.device:
		return link - outer - udpHeader - wireguardHeader
	}
	room := link - outer - espHeader - gcmIV - gcmICV
	return outer + room/espAlign*espAlign - espTrailer
}

// Wire is a node as it is connected to the link, of an MTU in bytes: self where no device is
// between the network and the link.
func (m Method) Wire(self network.Node, link int) network.Node {
	self.MTU = link
	if m.device {
		self.Device, self.Address = wireDevice, wireAddress(self.Address)
		if self.Dual() {
			self.Address6 = wireAddress(self.Address6)
		}
	}
	return self
}

// wireAddress is a node's address under its encrypted one: 198.19.0.1 under 198.18.0.1, the
// other half of the range for tests of networks (RFC 2544), and fd00:198:19::1 under
// fd00:198:18::1.
func wireAddress(a netip.Prefix) netip.Prefix {
	if a.Addr().Is4() {
		b := a.Addr().As4()
		b[1]++
		return netip.PrefixFrom(netip.AddrFrom4(b), a.Bits())
	}
	b := a.Addr().As16()
	b[5]++
	return netip.PrefixFrom(netip.AddrFrom16(b), a.Bits())
}

// permanentNeighbours tells each node the others' hardware addresses. No question for them
// then crosses the link, which would be a plain packet in the count of a sample.
func permanentNeighbours(m Method, nodes []network.Node) error {
	type wired struct {
		network.Node
		mac net.HardwareAddr
	}
	all := make([]wired, len(nodes))
	for i, n := range nodes {
		all[i].Node = m.Wire(n, n.MTU)
		h, dev, err := netns.Port{NS: n.NS, Device: all[i].Device}.Open()
		if err != nil {
			return err
		}
		all[i].mac = dev.Attrs().HardwareAddr
		h.Close()
	}
	for _, self := range all {
		h, dev, err := netns.Port{NS: self.NS, Device: self.Device}.Open()
		if err != nil {
			return err
		}
		for _, peer := range all {
			for _, a := range []netip.Prefix{peer.Address, peer.Address6} {
				if peer.Index == self.Index || !a.IsValid() || err != nil {
					continue
				}
				err = h.NeighSet(&netlink.Neigh{
					LinkIndex: dev.Attrs().Index, State: netlink.NUD_PERMANENT, IP: a.Addr().AsSlice(), HardwareAddr: peer.mac,
				})
			}
		}
		h.Close()
		if err != nil {
			return fmt.Errorf("%s: neighbours: %w", self.Name, err)
		}
	}
	return nil
}

// Counters are what one node has sent since it was made.
type Counters struct {
	// Encrypted is how many bytes left the encryption: WireGuard's UDP payloads, or the IP
	// payloads of ESP.
	Encrypted uint64
	// Wire is what left the device on the link where only encrypted packets may; not
	// counted with ESP, whose packets share the device with others.
	Wire netns.Passed
	// Plain is how many packets of other nodes arrived without ESP and were refused.
	Plain uint64
}

// Read reads the counters of a node.
func (m Method) Read(self network.Node, nodes []network.Node) (Counters, error) {
	c, err := m.read(self, nodes)
	if err != nil {
		return c, fmt.Errorf("encryption by %s: counters of %s: %w", m.Name, self.Name, err)
	}
	return c, nil
}

// plainAllowed is how many bytes of small packets may cross the link beside the encrypted
// ones: what IPv6 says on a new device. One packet of a stream is more.
const plainAllowed = 1024

// Check says why a node's packets between two readings were not all encrypted. six tells
// that the cluster has IPv6. Of WireGuard, every byte that left on the link must be of an
// encrypted packet: a payload that the encryption counted, behind an Ethernet, an IP and a
// UDP header.
func (m Method) Check(name string, before, after Counters, six bool) error {
	if m.device {
		wire, packets := after.Wire.Bytes-before.Wire.Bytes, after.Wire.Packets-before.Wire.Packets
		headers := packets * uint64(ethernetHeader+outerHeader(six)+udpHeader)
		if encrypted := after.Encrypted - before.Encrypted; wire > headers+encrypted+plainAllowed {
			return fmt.Errorf("not encrypted: %s sent %d bytes in %d packets on the link, and only %d bytes of them were encrypted by %s", name, wire, packets, encrypted, m.Name)
		}
		return nil
	}
	if n := after.Plain - before.Plain; n > 0 {
		return fmt.Errorf("not encrypted: %s refused %d packets of other nodes, which came without ESP", name, n)
	}
	return nil
}

// Carried says why a node cannot have encrypted what a pod of another node received in the
// meantime. moved has whole frames, whose headers may differ on the way where segments are
// cut and joined: what counts is at least what is behind them. The pod's own node may have
// answered it a few small packets.
func (m Method) Carried(name string, before, after Counters, moved netns.Passed) error {
	const mostHeaders = ethernetHeader + 60 + 60 // with all options of IPv4 and TCP
	least := moved.Bytes - min(moved.Packets*mostHeaders, moved.Bytes/2)
	encrypted := after.Encrypted - before.Encrypted
	if encrypted+plainAllowed < least {
		return fmt.Errorf("not encrypted: %d bytes arrived from %s, which encrypted %d bytes by %s", moved.Bytes, name, encrypted, m.Name)
	}
	return nil
}

// Bytes is what a node encrypted between two readings.
func Bytes(before, after Counters) uint64 { return after.Encrypted - before.Encrypted }

// Record is what a sample's record has of it.
func (m Method) Record(encrypted uint64) *result.Encryption {
	return &result.Encryption{Algorithm: m.Algorithm, Implementation: m.Implementation(), EncryptedBytes: encrypted}
}
