package encryption

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
)

const (
	// espAlgorithm is AES-GCM with a salt behind the key (RFC 4106), as strongSwan's
	// proposal aes128gcm16, which Antrea has, comes to the kernel.
	espAlgorithm = "rfc4106(gcm(aes))"
	espKeyBytes  = 16 + 4
	// espReplay is strongSwan's replay window, in packets.
	espReplay = 32
	espReqID  = 1
)

// direction is what one node sends another in one family.
type direction struct{ from, to netip.Addr }

// directions are all pairs of nodes, in each family.
func directions(nodes []network.Node) []direction {
	var all []direction
	for _, a := range nodes {
		for _, b := range nodes {
			if a.Index == b.Index {
				continue
			}
			all = append(all, direction{a.Address.Addr(), b.Address.Addr()})
			if a.Dual() {
				all = append(all, direction{a.Address6.Addr(), b.Address6.Addr()})
			}
		}
	}
	return all
}

// spi tells a direction from all others of a receiver: those below 256 are reserved
// (RFC 4303).
func (d direction) spi() int {
	b := d.from.As16()
	spi := 0x1000 + int(b[14])<<8 + int(b[15])
	if d.from.Is6() {
		spi += 0x100000
	}
	return spi
}

// state is the security association of a direction; key may be nil where it is only asked
// for.
func (d direction) state(key []byte) *netlink.XfrmState {
	return &netlink.XfrmState{
		Src: d.from.AsSlice(), Dst: d.to.AsSlice(), Proto: netlink.XFRM_PROTO_ESP, Mode: netlink.XFRM_MODE_TRANSPORT,
		Spi: d.spi(), Reqid: espReqID, ReplayWindow: espReplay,
		Aead: &netlink.XfrmStateAlgo{Name: espAlgorithm, Key: key, ICVLen: gcmICV * 8},
	}
}

// policy requires ESP for the packets of a direction, as they leave or as they arrive.
func (d direction) policy(dir netlink.Dir) *netlink.XfrmPolicy {
	return &netlink.XfrmPolicy{
		Src: network.IPNet(network.Single(d.from)), Dst: network.IPNet(network.Single(d.to)), Dir: dir,
		Tmpls: []netlink.XfrmPolicyTmpl{{
			Src: d.from.AsSlice(), Dst: d.to.AsSlice(), Proto: netlink.XFRM_PROTO_ESP, Mode: netlink.XFRM_MODE_TRANSPORT, Reqid: espReqID,
		}},
	}
}

// startIPsec gives each node the associations and the policies of what it sends and
// receives. Policies for what is received exist there first, so that nothing is taken plain.
func startIPsec(_ context.Context, nodes []network.Node) error {
	keys := map[direction][]byte{}
	for _, d := range directions(nodes) {
		keys[d] = make([]byte, espKeyBytes)
		rand.Read(keys[d]) // never fails (crypto/rand)
	}
	for _, dir := range []netlink.Dir{netlink.XFRM_DIR_IN, netlink.XFRM_DIR_OUT} {
		for _, n := range nodes {
			if err := netns.Do(n.NS, func() error { return protect(n, dir, keys) }); err != nil {
				return fmt.Errorf("%s: %w", n.Name, err)
			}
		}
	}
	return nil
}

// protect sets those of one node and one direction of its packets.
func protect(self network.Node, dir netlink.Dir, keys map[direction][]byte) error {
	for d, key := range keys {
		own := d.to
		if dir == netlink.XFRM_DIR_OUT {
			own = d.from
		}
		if own != self.Address.Addr() && own != self.Address6.Addr() {
			continue
		}
		if err := netlink.XfrmStateAdd(d.state(key)); err != nil {
			return fmt.Errorf("ESP from %s to %s: %w", d.from, d.to, err)
		}
		if err := netlink.XfrmPolicyAdd(d.policy(dir)); err != nil {
			return fmt.Errorf("policy from %s to %s: %w", d.from, d.to, err)
		}
	}
	return nil
}

// readIPsec sums what the node's associations encrypted, with what ESP adds to each packet
// at least, and reads how many packets of other nodes came plain.
func readIPsec(self network.Node, nodes []network.Node) (c Counters, err error) {
	err = netns.Do(self.NS, func() error {
		for _, d := range directions(nodes) {
			if d.from != self.Address.Addr() && d.from != self.Address6.Addr() {
				continue
			}
			asked := netlink.XfrmState{Dst: d.to.AsSlice(), Proto: netlink.XFRM_PROTO_ESP, Spi: d.spi()}
			s, err := netlink.XfrmStateGet(&asked)
			if err != nil {
				return fmt.Errorf("ESP from %s to %s: %w", d.from, d.to, err)
			}
			c.Encrypted += s.Statistics.Bytes + s.Statistics.Packets*(espHeader+gcmIV+espTrailer+gcmICV)
		}
		text, err := os.ReadFile("/proc/thread-self/net/xfrm_stat")
		if err != nil {
			return err
		}
		c.Plain, err = refused(string(text))
		return err
	})
	return c, err
}

// refused is how many packets were dropped because a policy requires ESP and they came
// without (Documentation/networking/xfrm_proc.rst).
func refused(xfrmStat string) (uint64, error) {
	for line := range strings.Lines(xfrmStat) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == "XfrmInTmplMismatch" {
			return strconv.ParseUint(f[1], 10, 64)
		}
	}
	return 0, fmt.Errorf("/proc/net/xfrm_stat has no XfrmInTmplMismatch")
}
