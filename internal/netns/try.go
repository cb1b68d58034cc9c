package netns

import (
	"fmt"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Try runs f with a new namespace that has a veth device of that name and ends
// with f: what a lab's nodes and pods are like, before there is one.
func Try(device string, f func(NS) error) error {
	return throwaway(func() error {
		// The namespace of this thread, as others can open it.
		ns := NS{Name: "a namespace to try in", Path: fmt.Sprintf("/proc/%d/task/%d/ns/net", unix.Getpid(), unix.Gettid())}
		h, err := Handle(ns)
		if err != nil {
			return err
		}
		defer h.Close()
		la := netlink.NewLinkAttrs()
		la.Name = device
		if err := h.LinkAdd(&netlink.Veth{LinkAttrs: la, PeerName: device + "-peer"}); err != nil {
			return fmt.Errorf("veth %s: %w", device, err)
		}
		return f(ns)
	})
}
