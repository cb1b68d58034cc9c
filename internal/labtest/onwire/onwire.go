// Package onwire shows tests which packets pass a wire of a lab.
package onwire

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/netns"
)

// Frame is what a test needs to know of one on the wire.
type Frame struct {
	Source, Destination netip.Addr
	Protocol            byte
	Port                uint16 // the destination's
	Fragmented          bool
	Bytes               int
	// Tunnel is "vxlan 4789 4096" (port and network), "geneve 256", "ipip", "udp", "sleeve",
	// "wireguard" or "esp"; "" for plain packets.
	Tunnel string
	// Inner is the destination inside the tunnel, where it can be read.
	Inner netip.Addr
}

// Watch collects the IP packets that pass the devices of a namespace until the test ends.
type Watch struct {
	mu     sync.Mutex
	frames []Frame
}

// NewWatch begins to collect.
func NewWatch(t *testing.T, ns netns.NS) *Watch {
	t.Helper()
	all := uint16(unix.ETH_P_ALL)
	var fd int
	err := netns.Do(ns, func() (err error) {
		fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, int(all<<8|all>>8))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	timeout := unix.Timeval{Usec: 100_000}
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout); err != nil {
		t.Fatal(err)
	}
	w, stop, stopped := &Watch{}, make(chan struct{}), make(chan struct{})
	t.Cleanup(func() {
		close(stop)
		<-stopped
		if err := unix.Close(fd); err != nil {
			t.Error(err)
		}
	})
	go func() {
		defer close(stopped)
		buf := make([]byte, 1<<17)
		for {
			select {
			case <-stop:
				return
			default:
			}
			n, _, err := unix.Recvfrom(fd, buf, 0)
			if err == nil {
				w.add(buf[:n])
			}
		}
	}()
	return w
}

func (w *Watch) add(b []byte) {
	f, ok := readFrame(b)
	if !ok {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.frames = append(w.frames, f)
}

// Seen are the packets so far.
func (w *Watch) Seen() []Frame {
	time.Sleep(150 * time.Millisecond) // one receive timeout
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]Frame(nil), w.frames...)
}

// readFrame reads Ethernet, IPv4 or IPv6, UDP, and what networks put into them.
func readFrame(b []byte) (Frame, bool) {
	f := Frame{Bytes: len(b)}
	var payload []byte
	switch {
	case len(b) >= 14+20 && binary.BigEndian.Uint16(b[12:]) == unix.ETH_P_IP:
		ip := b[14:]
		f.Source, _ = netip.AddrFromSlice(ip[12:16])
		f.Destination = destination(ip)
		f.Protocol = ip[9]
		f.Fragmented = binary.BigEndian.Uint16(ip[6:])&0x3fff != 0 // more fragments, or an offset
		payload = ip[int(ip[0]&15)*4:]
	case len(b) >= 14+40 && binary.BigEndian.Uint16(b[12:]) == unix.ETH_P_IPV6:
		ip := b[14:]
		f.Source, _ = netip.AddrFromSlice(ip[8:24])
		f.Destination = destination(ip)
		f.Protocol = ip[6]
		f.Fragmented = f.Protocol == unix.IPPROTO_FRAGMENT
		payload = ip[40:]
	default:
		return f, false
	}
	switch f.Protocol {
	case unix.IPPROTO_IPIP:
		f.Tunnel, f.Inner = "ipip", destination(payload)
	case unix.IPPROTO_ESP:
		f.Tunnel = "esp" // what is inside, nobody can read
	}
	if f.Protocol == unix.IPPROTO_UDP && len(payload) >= 8 {
		f.readUDP(payload)
	}
	return f, true
}

// readUDP reads what networks put into UDP.
func (f *Frame) readUDP(payload []byte) {
	f.Port = binary.BigEndian.Uint16(payload[2:])
	switch inside := payload[8:]; f.Port {
	case 8472, 4789, 6784:
		if len(inside) >= 8+14+20 {
			f.Tunnel = fmt.Sprintf("vxlan %d %d", f.Port, binary.BigEndian.Uint32(inside[4:])>>8)
			f.Inner = destination(inside[8+14:])
		}
	case 6081:
		if len(inside) < 8 {
			break
		}
		if options := int(inside[0]&0x3f) * 4; len(inside) >= 8+options+14+20 {
			f.Tunnel = fmt.Sprintf("geneve %d", binary.BigEndian.Uint32(inside[4:])>>8)
			if options > 0 { // the first one's class, and its type
				f.Tunnel += fmt.Sprintf(" option %04x %02x", binary.BigEndian.Uint16(inside[8:]), inside[10])
			}
			f.Inner = destination(inside[8+options+14:])
		}
	case 6783:
		f.Tunnel = "sleeve"
		for rest := inside[min(6, len(inside)):]; len(rest) >= 14+14+20; { // each frame behind two names and its length
			size := min(int(binary.BigEndian.Uint16(rest[12:])), len(rest)-14)
			if eth := rest[14 : 14+size]; size >= 34 && binary.BigEndian.Uint16(eth[12:]) == unix.ETH_P_IP {
				f.Inner = destination(eth[14:])
			}
			rest = rest[14+size:]
		}
	case 8285:
		f.Tunnel, f.Inner = "udp", destination(inside)
	case 51820, 51871: // WireGuard's own, and Cilium's
		f.Tunnel = "wireguard" // as esp
	}
}

// destination is that of an IP header.
func destination(ip []byte) netip.Addr {
	var a netip.Addr
	switch {
	case len(ip) >= 20 && ip[0]>>4 == 4:
		a, _ = netip.AddrFromSlice(ip[16:20])
	case len(ip) >= 40 && ip[0]>>4 == 6:
		a, _ = netip.AddrFromSlice(ip[24:40])
	}
	return a
}
