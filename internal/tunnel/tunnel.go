// Package tunnel carries pods' packets between nodes in UDP from user space, as
// flannel's backend udp does, their frames as weave's sleeve does, and what nodes send each
// other encrypted by wireguard-go.
package tunnel

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"runtime"

	"golang.org/x/sys/unix"
)

// Config is one node's end.
type Config struct {
	Device string         `json:"device"` // of the tun device, which lives as long as Serve
	Local  netip.AddrPort `json:"local"`  // where other nodes send to
	Routes []Route        `json:"routes"`
}

// Route says which node has which pods.
type Route struct {
	Pods netip.Prefix   `json:"pods"`
	Node netip.AddrPort `json:"node"`
}

// Arg is the configuration as an argument of a program.
func (c Config) Arg() (string, error) {
	b, err := json.Marshal(c)
	return string(b), err
}

// ServeArg serves a configuration as one of the funcs Arg gives it. stdin has what is secret
// of it.
func ServeArg(ctx context.Context, arg string, stdin io.Reader) error {
	var c struct {
		Config
		Sleeve    *Sleeve    `json:"sleeve"`
		WireGuard *WireGuard `json:"wireguard"`
	}
	if err := json.Unmarshal([]byte(arg), &c); err != nil {
		return fmt.Errorf("configuration of the tunnel: %w", err)
	}
	switch {
	case c.Sleeve != nil:
		return c.Sleeve.Serve(ctx)
	case c.WireGuard != nil:
		return c.WireGuard.Serve(ctx, stdin)
	}
	return Serve(ctx, c.Config)
}

// hop is a route as the loop wants it.
type hop struct {
	network, mask uint32
	node          unix.SockaddrInet4
}

// forwarder is the state of the loop.
type forwarder struct {
	tun, udp int
	hops     []hop
	buf      []byte
}

// pollMillis bounds how long the end of the context goes unseen.
const pollMillis = 200

// minHeader is an IPv4 header without options, in bytes.
const minHeader = 20

// Serve forwards until ctx ends: from the device to the node that has the
// packet's destination, and from other nodes to the device. The device is there
// once packets can be taken. Packets for no route are dropped.
func Serve(ctx context.Context, c Config) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	f := &forwarder{buf: make([]byte, 1<<16)}
	for _, r := range c.Routes {
		if !r.Pods.Addr().Is4() || !r.Node.Addr().Is4() {
			return fmt.Errorf("route to %s by %s: the tunnel takes IPv4", r.Pods, r.Node)
		}
		a := r.Pods.Masked().Addr().As4()
		f.hops = append(f.hops, hop{
			network: binary.BigEndian.Uint32(a[:]), mask: ^uint32(0) << (32 - r.Pods.Bits()),
			node: unix.SockaddrInet4{Addr: r.Node.Addr().As4(), Port: int(r.Node.Port())},
		})
	}
	var err error
	if f.udp, err = listen(c.Local); err != nil {
		return fmt.Errorf("listen at %s: %w", c.Local, err)
	}
	defer unix.Close(f.udp)
	if f.tun, err = openTun(c.Device); err != nil {
		return fmt.Errorf("tun device %s: %w", c.Device, err)
	}
	defer unix.Close(f.tun)
	return f.loop(ctx)
}

func listen(at netip.AddrPort) (int, error) {
	if !at.Addr().Is4() {
		return -1, errors.New("the tunnel takes IPv4")
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, err
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: at.Addr().As4(), Port: int(at.Port())}); err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}

func openTun(name string) (int, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return -1, err
	}
	req, err := unix.NewIfreq(name)
	if err == nil {
		req.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, req)
	}
	if err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}

// loop goes on until ctx ends.
func (f *forwarder) loop(ctx context.Context) error {
	return pump(ctx, f.tun, f.udp, unix.POLLERR|unix.POLLNVAL, func() bool {
		out, in := f.toNode(), f.toDevice()
		return out || in
	})
}

// pump is one thread for both ways, as flannel's and weave's are: while step
// says that either end has something it does not wait. gone are the events that
// report that the device is gone.
func pump(ctx context.Context, device, udp int, gone int16, step func() bool) error {
	fds := []unix.PollFd{{Fd: int32(device), Events: unix.POLLIN}, {Fd: int32(udp), Events: unix.POLLIN}}
	for ctx.Err() == nil {
		if _, err := unix.Poll(fds, pollMillis); err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("poll: %w", err)
		}
		if fds[0].Revents&gone != 0 {
			return errors.New("the device is gone")
		}
		for step() {
			if ctx.Err() != nil {
				return nil
			}
		}
	}
	return nil
}

// toNode takes a packet of the device, if there is one. A packet that cannot be
// sent is lost, as on any wire.
func (f *forwarder) toNode() bool {
	n, err := unix.Read(f.tun, f.buf)
	if err != nil || n < minHeader {
		return err == nil && n > 0
	}
	p := f.buf[:n]
	if h := f.find(binary.BigEndian.Uint32(p[16:])); h != nil && decrementTTL(p) {
		_ = unix.Sendto(f.udp, p, 0, &h.node)
	}
	return true
}

// toDevice takes a datagram of another node, if there is one.
func (f *forwarder) toDevice() bool {
	n, err := unix.Read(f.udp, f.buf)
	if err != nil || n < minHeader {
		return err == nil && n > 0
	}
	if p := f.buf[:n]; decrementTTL(p) {
		_, _ = unix.Write(f.tun, p)
	}
	return true
}

func (f *forwarder) find(destination uint32) *hop {
	for i := range f.hops {
		if destination&f.hops[i].mask == f.hops[i].network {
			return &f.hops[i]
		}
	}
	return nil
}

// decrementTTL subtracts one from an IPv4 header's time to live and updates its
// checksum (RFC 1624); false reports that it is used up, or that it is no IPv4.
func decrementTTL(p []byte) bool {
	if p[0]>>4 != 4 || p[8] <= 1 {
		return false
	}
	p[8]--
	sum := uint32(binary.BigEndian.Uint16(p[10:])) + 0x100
	binary.BigEndian.PutUint16(p[10:], uint16(sum+sum>>16))
	return true
}
