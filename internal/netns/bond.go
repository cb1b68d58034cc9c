package netns

import (
	"fmt"

	"github.com/vishvananda/netlink"
)

// ConnectBonded makes several veth pairs between two namespaces and bonds their
// ends on both sides: the first side's bond is put on a bridge there and set
// up. It gives the first side's end of each wire. Frames are spread by
// addresses and ports (balance-xor, layer3+4), which is static link
// aggregation: a flow keeps to one wire. mtu is in bytes.
func ConnectBonded(onBridge Port, bridge string, other Port, mtu, wires int) ([]Port, error) {
	for _, p := range []Port{onBridge, other} {
		if err := p.addBond(mtu); err != nil {
			return nil, err
		}
	}
	var ports []Port
	for i := range wires {
		near := Port{onBridge.NS, fmt.Sprintf("%s-%d", onBridge.Device, i+1)}
		far := Port{other.NS, fmt.Sprintf("%s-%d", other.Device, i+1)}
		if err := connect(near, far, mtu); err != nil {
			return nil, err
		}
		if err := near.join(onBridge.Device); err != nil {
			return nil, err
		}
		if err := far.join(other.Device); err != nil {
			return nil, err
		}
		ports = append(ports, near)
	}
	if err := onBridge.join(bridge); err != nil {
		return nil, err
	}
	for _, p := range append([]Port{onBridge, other}, ports...) {
		if err := p.holdMTU(mtu); err != nil {
			return nil, err
		}
	}
	return ports, nil
}

// bondCheck is how often a bond looks at its wires' carriers, milliseconds.
const bondCheck = 100

func (p Port) addBond(mtu int) error {
	h, err := Handle(p.NS)
	if err != nil {
		return err
	}
	defer h.Close()
	la := netlink.NewLinkAttrs()
	la.Name, la.MTU = p.Device, mtu
	bond := netlink.NewLinkBond(la)
	bond.Mode, bond.XmitHashPolicy, bond.Miimon = netlink.BOND_MODE_BALANCE_XOR, netlink.BOND_XMIT_HASH_POLICY_LAYER3_4, bondCheck
	if err := h.LinkAdd(bond); err != nil {
		return fmt.Errorf("bond %s: %w", p, err)
	}
	return nil
}

// connect makes a veth pair; both ends stay down.
func connect(near, far Port, mtu int) error {
	h, err := Handle(near.NS)
	if err != nil {
		return err
	}
	defer h.Close()
	return far.veth(h, near, mtu, 0)
}

// join puts a device, which is down, into a bond or on a bridge, and sets it up.
func (p Port) join(master string) error {
	h, err := Handle(p.NS)
	if err != nil {
		return err
	}
	defer h.Close()
	to, err := Link(h, master)
	if err != nil {
		return err
	}
	dev, err := Link(h, p.Device)
	if err != nil {
		return err
	}
	if err := h.LinkSetMasterByIndex(dev, to.Attrs().Index); err != nil {
		return fmt.Errorf("%s into %s: %w", p, master, err)
	}
	if err := h.LinkSetUp(dev); err != nil {
		return fmt.Errorf("%s: up: %w", p, err)
	}
	return nil
}
