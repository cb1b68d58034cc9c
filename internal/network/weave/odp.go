package weave

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/netns"
)

// The kernel's interface to Open vSwitch's datapath (linux/openvswitch.h), as
// far as it is used here.
const (
	odpNew = 1 // OVS_DP_CMD_NEW, OVS_VPORT_CMD_NEW, OVS_FLOW_CMD_NEW

	odpDatapathName, odpDatapathUpcall                           = 1, 2
	odpPortNumber, odpPortType, odpPortName, odpPortUpcall       = 1, 2, 3, 5
	odpPortNetdev                                                = 1
	odpFlowKey, odpFlowActions, odpFlowMask                      = 1, 2, 7
	odpKeyInPort, odpKeyEthernet, odpKeyTunnel                   = 3, 4, 16
	odpTunnelID, odpTunnelTo, odpTunnelTTL, odpTunnelDF          = 0, 2, 4, 5
	odpActionOutput, odpActionSet                                = 1, 3
	odpDatapathVersion, odpPortVersion, odpFlowVersion     uint8 = 2, 1, 1
)

// odpSwitch is a datapath of Open vSwitch in the kernel, without ovs-vswitchd:
// what no flow matches is dropped.
type odpSwitch struct {
	ns    netns.NS
	name  string
	index int // of its own device
}

// newODP makes a datapath in a namespace. It goes with that.
func newODP(ns netns.NS, name string) (odpSwitch, error) {
	s := odpSwitch{ns: ns, name: name}
	err := s.ask("ovs_datapath", odpDatapathVersion,
		nl.NewRtAttr(odpDatapathName, nl.ZeroTerminated(name)), nl.NewRtAttr(odpDatapathUpcall, nl.Uint32Attr(0)))
	if err != nil {
		return s, fmt.Errorf("datapath %s in %s: %w", name, ns.Name, err)
	}
	h, dev, err := netns.Port{NS: ns, Device: name}.Open()
	if err != nil {
		return s, err
	}
	defer h.Close()
	s.index = dev.Attrs().Index
	return s, nil
}

// addPort puts a device of the namespace on the datapath.
func (s odpSwitch) addPort(number uint32, device string) error {
	err := s.ask("ovs_vport", odpPortVersion,
		nl.NewRtAttr(odpPortNumber, nl.Uint32Attr(number)), nl.NewRtAttr(odpPortType, nl.Uint32Attr(odpPortNetdev)),
		nl.NewRtAttr(odpPortName, nl.ZeroTerminated(device)), nl.NewRtAttr(odpPortUpcall, nl.Uint32Attr(0)))
	if err != nil {
		return fmt.Errorf("%s on datapath %s in %s: %w", device, s.name, s.ns.Name, err)
	}
	return nil
}

// odpTunnel is where a packet that is sent to a tunnel's port goes.
type odpTunnel struct {
	id uint64
	to netip.Addr
}

// addFlow sends what comes in by a port and is for an address, compared under a
// mask, to a port; where tunnels are given, once to each.
func (s odpSwitch) addFlow(in uint32, dst, mask net.HardwareAddr, out uint32, tunnels ...odpTunnel) error {
	match := func(attr int, port uint32, to net.HardwareAddr) *nl.RtAttr {
		a := nl.NewRtAttr(attr|unix.NLA_F_NESTED, nil)
		a.AddRtAttr(odpKeyInPort, nl.Uint32Attr(port))
		a.AddRtAttr(odpKeyEthernet, append(make([]byte, 6), to...)) // source, destination
		return a
	}
	actions := nl.NewRtAttr(odpFlowActions|unix.NLA_F_NESTED, nil)
	for _, t := range tunnels {
		key := actions.AddRtAttr(odpActionSet|unix.NLA_F_NESTED, nil).AddRtAttr(odpKeyTunnel|unix.NLA_F_NESTED, nil)
		key.AddRtAttr(odpTunnelID, binary.BigEndian.AppendUint64(nil, t.id))
		key.AddRtAttr(odpTunnelTo, t.to.AsSlice())
		key.AddRtAttr(odpTunnelTTL, []byte{64})
		key.AddRtAttr(odpTunnelDF, nil)
		actions.AddRtAttr(odpActionOutput, nl.Uint32Attr(out))
	}
	if len(tunnels) == 0 {
		actions.AddRtAttr(odpActionOutput, nl.Uint32Attr(out))
	}
	err := s.ask("ovs_flow", odpFlowVersion, match(odpFlowKey, in, dst), actions, match(odpFlowMask, ^uint32(0), mask))
	if err != nil {
		return fmt.Errorf("flow to %s of datapath %s in %s: %w", dst, s.name, s.ns.Name, err)
	}
	return nil
}

// odpHeader is struct ovs_header: which datapath is meant.
type odpHeader struct{ datapath uint32 }

func (odpHeader) Len() int { return 4 }

func (h odpHeader) Serialize() []byte { return binary.NativeEndian.AppendUint32(nil, h.datapath) }

// ask sends a command of a generic netlink family and waits for its end.
func (s odpSwitch) ask(family string, version uint8, attrs ...*nl.RtAttr) error {
	return netns.Do(s.ns, func() error {
		f, err := netlink.GenlFamilyGet(family)
		if err != nil {
			return fmt.Errorf("kernel has no %s: %w", family, err)
		}
		req := nl.NewNetlinkRequest(int(f.ID), unix.NLM_F_ACK|unix.NLM_F_CREATE)
		req.AddData(&nl.Genlmsg{Command: odpNew, Version: version})
		req.AddData(odpHeader{uint32(s.index)})
		for _, a := range attrs {
			req.AddData(a)
		}
		_, err = req.Execute(unix.NETLINK_GENERIC, 0)
		return err
	})
}
