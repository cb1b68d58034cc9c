package netns

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Handle opens rtnetlink in the namespace. Close it.
func Handle(n NS) (*netlink.Handle, error) {
	var h *netlink.Handle
	err := Do(n, func() (err error) {
		h, err = netlink.NewHandle(unix.NETLINK_ROUTE)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("netlink in %s: %w", n.Name, err)
	}
	return h, nil
}

// Dump repeats a listing that the kernel says was interrupted by a change: such
// an answer has data that may lack entries.
func Dump[T any](list func() (T, error)) (T, error) {
	for try := 0; ; try++ {
		got, err := list()
		if !errors.Is(err, netlink.ErrDumpInterrupted) || try == 20 {
			return got, err
		}
	}
}

// Link finds a device by name.
func Link(h *netlink.Handle, name string) (netlink.Link, error) {
	l, err := Dump(func() (netlink.Link, error) { return h.LinkByName(name) })
	if err != nil {
		return nil, fmt.Errorf("device %s: %w", name, err)
	}
	return l, nil
}
