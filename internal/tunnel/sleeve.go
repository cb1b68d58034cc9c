package tunnel

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Sleeve is one node's end of weave's sleeve overlay without encryption
// (Weave Net v2.8 router/sleeve.go, crypto.go): Ethernet frames that a bridge
// hands to a device are carried in UDP to the node that has their destination.
// A datagram has the sender's name and then frames, each with the names of the
// nodes that it comes from and goes to and its length.
type Sleeve struct {
	Device string         `json:"device"` // that frames are captured at and injected into
	Local  netip.AddrPort `json:"local"`
	// Name is this node's, six octets written as a hardware address.
	Name  string       `json:"name"`
	Peers []SleevePeer `json:"peers"`
	// MaxPayload bounds a datagram, bytes without IP and UDP headers.
	MaxPayload int `json:"max_payload_bytes"`
	// Ready is a file that is made once frames are forwarded.
	Ready string `json:"ready"`
}

// SleevePeer is another node.
type SleevePeer struct {
	Name string         `json:"name"`
	Node netip.AddrPort `json:"node"`
}

// The sizes of a datagram's parts, bytes: a name, and what is before a frame.
const (
	sleeveName   = 6
	sleeveHeader = 2*sleeveName + 2
	ethernet     = 14
)

// SleeveOverhead is what a frame's payload cannot have of the nodes' MTU: IP
// and UDP, the sender's name, the frame's names and length, Ethernet.
const SleeveOverhead = 28 + sleeveName + sleeveHeader + ethernet

// Arg is the configuration as an argument of a program.
func (s Sleeve) Arg() (string, error) {
	b, err := json.Marshal(struct {
		Sleeve Sleeve `json:"sleeve"`
	}{s})
	return string(b), err
}

// peer is a node and what waits to be sent to it.
type peer struct {
	name [sleeveName]byte
	node unix.SockaddrInet4
	out  []byte // begins with this node's name
}

// local is the place of this node where that of a peer is expected.
const local = -1

// maxMACs bounds what is remembered of hardware addresses, which pods can make
// up; above it, all are learnt again.
const maxMACs = 1 << 16

// maxBatch is how many frames are taken before the other way has its turn
// (weave's aggregateAndSend).
const maxBatch = 100

// sleeve is the state of the loop.
type sleeve struct {
	captured, udp int
	name          [sleeveName]byte
	peers         []peer
	byName        map[[sleeveName]byte]int
	where         map[[6]byte]int // hardware addresses: index of a peer, or local
	limit         int
	buf           []byte
}

// Serve forwards until ctx ends. Frames that are too large, or come from
// nobody that is known, are dropped.
func (s Sleeve) Serve(ctx context.Context) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	f := &sleeve{byName: map[[sleeveName]byte]int{}, where: map[[6]byte]int{}, limit: s.MaxPayload, buf: make([]byte, 1<<16)}
	if f.limit <= sleeveName+sleeveHeader+ethernet || f.limit > 1<<16-1-28 {
		return fmt.Errorf("datagrams of %d bytes cannot carry frames", f.limit)
	}
	if err := f.know(s); err != nil {
		return err
	}
	var err error
	if f.udp, err = listenWhole(s.Local); err != nil {
		return fmt.Errorf("listen at %s: %w", s.Local, err)
	}
	defer unix.Close(f.udp)
	if f.captured, err = capture(s.Device); err != nil {
		return fmt.Errorf("capture at %s: %w", s.Device, err)
	}
	defer unix.Close(f.captured)
	if err := os.WriteFile(s.Ready, nil, 0o644); err != nil {
		return err
	}
	return f.loop(ctx)
}

// know reads the names of this node and its peers.
func (f *sleeve) know(s Sleeve) error {
	name := func(text string) (n [sleeveName]byte, err error) {
		mac, err := net.ParseMAC(text)
		if err == nil && len(mac) != sleeveName {
			err = fmt.Errorf("name %s: %d octets, want %d", text, len(mac), sleeveName)
		}
		copy(n[:], mac)
		return n, err
	}
	var err error
	if f.name, err = name(s.Name); err != nil {
		return err
	}
	for i, p := range s.Peers {
		if !p.Node.Addr().Is4() {
			return fmt.Errorf("peer %s at %s: the overlay takes IPv4", p.Name, p.Node)
		}
		n, err := name(p.Name)
		if err != nil {
			return err
		}
		f.byName[n] = i
		f.peers = append(f.peers, peer{
			name: n, node: unix.SockaddrInet4{Addr: p.Node.Addr().As4(), Port: int(p.Node.Port())},
			out: append(make([]byte, 0, f.limit), f.name[:]...),
		})
	}
	return nil
}

// listenWhole makes a socket whose datagrams are not fragmented and have no
// checksum, as weave's have that may not be fragmented.
func listenWhole(at netip.AddrPort) (int, error) {
	fd, err := listen(at)
	if err != nil {
		return -1, err
	}
	err = unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_DO)
	if err == nil {
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_NO_CHECK, 1)
	}
	if err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}

// capture opens a device for the frames that come in by it, and to send frames
// out of it.
func capture(device string) (int, error) {
	dev, err := net.InterfaceByName(device)
	if err != nil {
		return -1, err
	}
	const all = unix.ETH_P_ALL>>8 | unix.ETH_P_ALL&0xff<<8 // in network order
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, err
	}
	err = unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1)
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: dev.Index})
	}
	if err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}

// loop goes on until ctx ends. A device that is down is not gone.
func (f *sleeve) loop(ctx context.Context) error {
	return pump(ctx, f.captured, f.udp, unix.POLLNVAL, func() bool {
		out, in := f.toPeers(), f.toDevice()
		return out || in
	})
}

// toPeers takes the frames that the device has, up to maxBatch, and sends as
// many as fit in one datagram.
func (f *sleeve) toPeers() bool {
	some := false
	for range maxBatch {
		n, err := unix.Read(f.captured, f.buf)
		if err != nil {
			break
		}
		some = true
		if n >= ethernet {
			f.forward(f.buf[:n])
		}
	}
	for i := range f.peers {
		f.flush(&f.peers[i])
	}
	return some
}

// forward adds a frame to what its destination's node is to get; one whose
// destination is not known, or all, to that of every node.
func (f *sleeve) forward(frame []byte) {
	f.learn([6]byte(frame[6:12]), local)
	to, known := f.where[[6]byte(frame[:6])]
	switch {
	case !known:
		for i := range f.peers {
			f.add(&f.peers[i], frame)
		}
	case to != local:
		f.add(&f.peers[to], frame)
	}
}

// learn notes where a hardware address is.
func (f *sleeve) learn(mac [6]byte, at int) {
	if mac[0]&1 != 0 { // of a group: nobody's own
		return
	}
	if now, known := f.where[mac]; known && now == at {
		return
	}
	if len(f.where) >= maxMACs {
		clear(f.where)
	}
	f.where[mac] = at
}

func (f *sleeve) add(p *peer, frame []byte) {
	size := sleeveHeader + len(frame)
	if sleeveName+size > f.limit {
		return
	}
	if len(p.out)+size > f.limit {
		f.flush(p)
	}
	p.out = append(p.out, f.name[:]...)
	p.out = append(p.out, p.name[:]...)
	p.out = binary.BigEndian.AppendUint16(p.out, uint16(len(frame)))
	p.out = append(p.out, frame...)
}

// flush sends what waits for a peer. What cannot be sent is lost, as on any
// wire.
func (f *sleeve) flush(p *peer) {
	if len(p.out) > sleeveName {
		_ = unix.Sendto(f.udp, p.out, 0, &p.node)
		p.out = p.out[:sleeveName]
	}
}

// toDevice takes a datagram of a peer, if there is one.
func (f *sleeve) toDevice() bool {
	n, err := unix.Read(f.udp, f.buf)
	if err != nil {
		return false
	}
	f.eachFrame(f.buf[:n], func(from int, frame []byte) {
		f.learn([6]byte(frame[6:12]), from)
		_, _ = unix.Write(f.captured, frame)
	})
	return true
}

// eachFrame gives the frames of a datagram that are for this node, with the
// peer that each comes from, up to the first that is cut short.
func (f *sleeve) eachFrame(datagram []byte, take func(from int, frame []byte)) {
	if len(datagram) < sleeveName {
		return
	}
	if _, known := f.byName[[sleeveName]byte(datagram)]; !known {
		return
	}
	for rest := datagram[sleeveName:]; len(rest) >= sleeveHeader; {
		from, known := f.byName[[sleeveName]byte(rest)]
		to := [sleeveName]byte(rest[sleeveName:])
		size := int(binary.BigEndian.Uint16(rest[2*sleeveName:]))
		rest = rest[sleeveHeader:]
		if size > len(rest) {
			return
		}
		if known && to == f.name && size >= ethernet {
			take(from, rest[:size])
		}
		rest = rest[size:]
	}
}
