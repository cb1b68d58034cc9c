package dataplane

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
)

// IPSet is a set and its members.
type IPSet struct {
	Name, Kind string // Kind is "hash:net", "hash:ip" …
	Members    []netip.Prefix
	// Ports are the members of a bitmap:port, entries those of sets of other kinds
	// than these three.
	Ports   []uint16
	Entries []netlink.IPSetEntry
}

// FillSets makes sets where they do not exist yet, and adds the members.
func FillSets(self network.Node, sets ...IPSet) error {
	var h *netlink.Handle
	err := netns.Do(self.NS, func() (err error) {
		h, err = netlink.NewHandle(unix.NETLINK_NETFILTER)
		return err
	})
	if err != nil {
		return fmt.Errorf("ipset in %s: %w", self.NS.Name, err)
	}
	defer h.Close()
	for _, s := range sets {
		if err := s.fill(self.NS, h); err != nil {
			return fmt.Errorf("ipset %s in %s: %w", s.Name, self.NS.Name, err)
		}
	}
	return nil
}

func (s IPSet) fill(ns netns.NS, h *netlink.Handle) error {
	options := netlink.IpsetCreateOptions{Replace: true, Family: unix.AF_INET}
	if s.Kind == "bitmap:port" {
		options.Family, options.PortTo = 0, 65535
	}
	if err := h.IpsetCreate(s.Name, s.Kind, options); err != nil {
		return err
	}
	entries := s.Entries
	for _, m := range s.Members {
		entry := netlink.IPSetEntry{IP: m.Addr().AsSlice()}
		if s.Kind == "hash:net" {
			entry.CIDR = uint8(m.Bits())
		}
		entries = append(entries, entry)
	}
	for _, e := range entries {
		e.Replace = true
		if err := h.IpsetAdd(s.Name, &e); err != nil {
			return fmt.Errorf("add %v: %w", e.IP, err)
		}
	}
	return netns.Do(ns, func() error {
		for _, port := range s.Ports {
			if err := addPort(s.Name, port); err != nil {
				return fmt.Errorf("add port %d: %w", port, err)
			}
		}
		return nil
	})
}

// addPort adds to a bitmap:port of the namespace that it runs in. netlink's own
// IpsetAdd names a protocol with each port, which kernels refuse for this kind.
func addPort(set string, port uint16) error {
	req := nl.NewNetlinkRequest(nl.IPSET_CMD_ADD|unix.NFNL_SUBSYS_IPSET<<8, nl.GetIpsetFlags(nl.IPSET_CMD_ADD))
	req.AddData(&nl.Nfgenmsg{NfgenFamily: unix.AF_INET, Version: nl.NFNETLINK_V0})
	req.AddData(nl.NewRtAttr(nl.IPSET_ATTR_PROTOCOL, nl.Uint8Attr(nl.IPSET_PROTOCOL)))
	req.AddData(nl.NewRtAttr(nl.IPSET_ATTR_SETNAME, nl.ZeroTerminated(set)))
	data := nl.NewRtAttr(nl.IPSET_ATTR_DATA|int(nl.NLA_F_NESTED), nil)
	data.AddChild(nl.NewRtAttr(int(nl.IPSET_ATTR_PORT|nl.NLA_F_NET_BYTEORDER), binary.BigEndian.AppendUint16(nil, port)))
	data.AddChild(&nl.Uint32Attribute{Type: nl.IPSET_ATTR_LINENO | nl.NLA_F_NET_BYTEORDER})
	req.AddData(data)
	_, err := req.Execute(unix.NETLINK_NETFILTER, 0)
	return err
}
