package netns

import (
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
)

// Qdisc is the kind of the root queueing discipline, as tc names it, of the device
// that leads to an address in the calling process's own namespace; where the
// address is not valid, of the device with a name. "" where neither is known, or
// the device has none that is shown.
func Qdisc(to netip.Addr, device string) (string, error) {
	link, err := linkTo(to, device)
	if link == nil || err != nil {
		return "", err
	}
	list, err := Dump(func() ([]netlink.Qdisc, error) { return netlink.QdiscList(link) })
	if err != nil {
		return "", fmt.Errorf("qdiscs of %s: %w", link.Attrs().Name, err)
	}
	for _, q := range list {
		if q.Attrs().Parent == netlink.HANDLE_ROOT {
			return q.Type(), nil
		}
	}
	return "", nil
}

func linkTo(to netip.Addr, device string) (netlink.Link, error) {
	if !to.IsValid() {
		if device == "" {
			return nil, nil
		}
		return Dump(func() (netlink.Link, error) { return netlink.LinkByName(device) })
	}
	routes, err := Dump(func() ([]netlink.Route, error) { return netlink.RouteGet(to.AsSlice()) })
	if err != nil || len(routes) == 0 {
		return nil, fmt.Errorf("route to %s: %w", to, err)
	}
	return netlink.LinkByIndex(routes[0].LinkIndex)
}
