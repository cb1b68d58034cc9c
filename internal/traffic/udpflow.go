//go:build linux

package traffic

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// udpListener accepts the flows of a server: one shared socket receives the hello of each
// new flow. The flow then gets a socket of its own on the same port, connected to its
// client, so that the kernel keeps strangers' datagrams away from it.
type udpListener struct {
	r     *run
	fd    int
	port  uint16
	six   bool
	flows []int // the flows' sockets, by index in roles; -1: not open yet
	in    datagramBuffer
}

func openUDPListener(r *run) (*udpListener, error) {
	h := &udpListener{r: r, six: true, flows: make([]int, len(roles(r.cfg)))}
	for i := range h.flows {
		h.flows[i] = -1
	}
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if errors.Is(err, unix.EAFNOSUPPORT) {
		h.six = false
		fd, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	}
	if err != nil {
		return nil, fmt.Errorf("open a data port: %w", err)
	}
	h.fd = fd
	if err := h.bind(); err != nil {
		return nil, errors.Join(fmt.Errorf("open a data port: %w", err), unix.Close(fd))
	}
	return h, nil
}

func (h *udpListener) bind() error {
	var any unix.Sockaddr = &unix.SockaddrInet4{Port: int(h.r.cfg.Port)}
	info := unix.SetsockoptInt(h.fd, unix.IPPROTO_IP, unix.IP_PKTINFO, 1)
	if h.six {
		any = &unix.SockaddrInet6{Port: int(h.r.cfg.Port)}
		info = errors.Join(unix.SetsockoptInt(h.fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 0), unix.SetsockoptInt(h.fd, unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1))
	}
	// The port is chosen without SO_REUSEADDR, or it could be somebody's who
	// shares it; the flows' sockets share it after.
	if err := errors.Join(info, timeouts(h.fd), unix.Bind(h.fd, any), unix.SetsockoptInt(h.fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)); err != nil {
		return err
	}
	addr, err := unix.Getsockname(h.fd)
	if err != nil {
		return err
	}
	switch a := addr.(type) {
	case *unix.SockaddrInet4:
		h.port = uint16(a.Port)
	case *unix.SockaddrInet6:
		h.port = uint16(a.Port)
	}
	return nil
}

func (h *udpListener) run(ctx context.Context, hooks Hooks) (Report, error) {
	defer unix.Close(h.fd)
	if err := h.gather(ctx); err != nil {
		h.closeFlows()
		return Report{}, err
	}
	// Datagrams of strangers that arrive while traffic runs are counted.
	quit := make(chan struct{})
	quiet := make(chan struct{})
	go func() {
		defer close(quiet)
		for {
			select {
			case <-quit:
				return
			default:
			}
			if err := h.receiveHello(); err != nil {
				h.r.fail(err)
				return
			}
		}
	}()
	workers, err := h.workers()
	var report Report
	if err == nil {
		main := h.r.recv
		if h.r.cfg.Direction == Reverse {
			main = h.r.send
		}
		report, err = h.r.do(ctx, workers, main, hooks)
	}
	close(quit)
	<-quiet
	h.countDropped()
	h.closeFlows()
	report.Strangers = h.r.strangers.Load()
	return report, err
}

func (h *udpListener) workers() ([]worker, error) {
	var workers []worker
	for i, what := range roles(h.r.cfg) {
		w, err := h.r.flow(h.flows[i], i, what, true)
		if err != nil {
			return nil, err
		}
		workers = append(workers, w...)
	}
	return workers, nil
}

// closeFlows closes the sockets of all flows, after their threads.
func (h *udpListener) closeFlows() {
	for _, fd := range h.flows {
		if fd >= 0 {
			_ = unix.Close(fd) // what counts was received
		}
	}
}

// gather waits until all flows are open, and acknowledges each.
func (h *udpListener) gather(ctx context.Context) error {
	limit := time.Now().Add(firstWait)
	for came := 0; came < len(h.flows); {
		if err := h.receiveHello(); err != nil {
			return err
		}
		before := came
		came = 0
		for _, fd := range h.flows {
			if fd >= 0 {
				came++
			}
		}
		if came > before {
			limit = time.Now().Add(gatherWait)
		}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case came < len(h.flows) && h.r.over.Load():
			return fmt.Errorf("%d of %d flows had come when the client was over", came, len(h.flows))
		case came < len(h.flows) && time.Now().After(limit):
			return fmt.Errorf("%d of %d flows came in time", came, len(h.flows))
		}
	}
	for i, fd := range h.flows {
		h.r.sendControl(fd, ackControl, i)
	}
	return nil
}

// receiveHello reads one datagram from the shared socket, and waits up to pollInterval for it.
// A hello of this run opens the socket of its flow; anything else counts as a stranger's.
func (h *udpListener) receiveHello() error {
	n, errno := h.in.receive(h.fd)
	if temporary(errno) {
		return nil
	}
	if errno != 0 {
		return fmt.Errorf("wait for flows: %w", errno)
	}
	kind, index := h.r.readControl(h.in.buf[:n])
	if kind != helloControl || index >= len(h.flows) {
		h.r.strangers.Add(1)
		return nil
	}
	if h.flows[index] >= 0 {
		return nil // repeated before the flow had its socket
	}
	local, err := destination(h.in.oob[:h.in.hdr.Controllen], h.port)
	if err != nil {
		return err
	}
	if h.flows[index], err = openFlow(local, h.in.sender()); err != nil {
		return err
	}
	return h.r.noteBuffer(h.flows[index])
}

// destination is the address that a datagram was sent to.
func destination(oob []byte, port uint16) (unix.Sockaddr, error) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, fmt.Errorf("where a flow was sent to: %w", err)
	}
	for _, m := range messages {
		switch {
		case m.Header.Level == unix.IPPROTO_IPV6 && m.Header.Type == unix.IPV6_PKTINFO && len(m.Data) >= 20:
			ip := netip.AddrFrom16([16]byte(m.Data[:16]))
			if ip.Is4In6() {
				return &unix.SockaddrInet4{Port: int(port), Addr: ip.Unmap().As4()}, nil
			}
			a := &unix.SockaddrInet6{Port: int(port), Addr: ip.As16()}
			if ip.IsLinkLocalUnicast() {
				a.ZoneId = *(*uint32)(unsafe.Pointer(&m.Data[16]))
			}
			return a, nil
		case m.Header.Level == unix.IPPROTO_IP && m.Header.Type == unix.IP_PKTINFO && len(m.Data) >= 12:
			return &unix.SockaddrInet4{Port: int(port), Addr: [4]byte(m.Data[8:12])}, nil
		}
	}
	return nil, errors.New("where a flow was sent to: the kernel does not say")
}

// openFlow makes the socket of one flow.
func openFlow(local, peer unix.Sockaddr) (int, error) {
	family := unix.AF_INET6
	if _, four := local.(*unix.SockaddrInet4); four {
		family = unix.AF_INET
		if p, ok := peer.(*unix.SockaddrInet6); ok {
			peer = &unix.SockaddrInet4{Port: p.Port, Addr: netip.AddrFrom16(p.Addr).Unmap().As4()}
		}
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("open a flow: %w", err)
	}
	err = errors.Join(unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1), tuneUDP(fd))
	if err == nil {
		err = errors.Join(unix.Bind(fd, local), unix.Connect(fd, peer))
	}
	if err != nil {
		return -1, errors.Join(fmt.Errorf("open a flow: %w", err), unix.Close(fd))
	}
	// Between bind and connect the socket may have received datagrams meant for the shared socket.
	var b [1]byte
	for {
		if _, errno := recv(fd, unsafe.Pointer(&b), 1, unix.MSG_DONTWAIT); errno != 0 {
			return fd, nil
		}
	}
}

// sendControl sends a control datagram once. The caller repeats it if the other end does not answer.
func (r *run) sendControl(fd int, kind byte, index int) {
	c := r.control(kind, index)
	_, _ = send(fd, unsafe.Pointer(&c), len(c), unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
}

// sendControlThrice sends a control datagram three times, because nothing answers it.
func (r *run) sendControlThrice(fd int, kind byte, index int) {
	for range 3 {
		r.sendControl(fd, kind, index)
	}
}

// callUDP opens the client's flows and waits until the server has all. The
// sockets are the caller's to close, after the workers.
func (r *run) callUDP(ctx context.Context, server netip.AddrPort) ([]worker, []int, error) {
	fds, err := r.dialUDP(ctx, server)
	if err != nil {
		return nil, nil, err
	}
	var workers []worker
	for i, what := range roles(r.cfg) {
		w, err := r.flow(fds[i], i, what, false)
		if err != nil {
			return nil, nil, errors.Join(err, closeFDs(fds))
		}
		workers = append(workers, w...)
	}
	return workers, fds, nil
}

// dialUDP opens the client's flows and waits until the server has all.
func (r *run) dialUDP(ctx context.Context, server netip.AddrPort) ([]int, error) {
	addr, family := sockaddr(server)
	var fds []int
	fail := func(err error) ([]int, error) { return nil, errors.Join(err, closeFDs(fds)) }
	for range roles(r.cfg) {
		fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return fail(fmt.Errorf("open a flow: %w", err))
		}
		fds = append(fds, fd)
		if err := errors.Join(tuneUDP(fd), r.noteBuffer(fd)); err != nil {
			return fail(fmt.Errorf("open a flow to %v: %w", server, err))
		}
		if e := connect(fd, addr); e != 0 {
			return fail(fmt.Errorf("open a flow to %v: %w", server, e))
		}
	}
	if err := r.greetUDP(ctx, fds, server); err != nil {
		return fail(err)
	}
	return fds, nil
}

// greetUDP says hello on every flow until all are acknowledged.
func (r *run) greetUDP(ctx context.Context, fds []int, server netip.AddrPort) error {
	const again = 50 * time.Millisecond
	limit := time.Now().Add(gatherWait)
	acked := make([]bool, len(fds))
	for n := 0; n < len(fds); {
		for i, fd := range fds {
			if !acked[i] {
				r.sendControl(fd, helloControl, i)
			}
		}
		next := time.Now().Add(again)
		for i, fd := range fds {
			for !acked[i] && time.Now().Before(next) {
				kind, err := r.awaitControl(fd, time.Until(next))
				if err != nil {
					return fmt.Errorf("no answer from %v: %w", server, err)
				}
				if kind == ackControl {
					acked[i] = true
					limit = time.Now().Add(gatherWait)
					n++
				}
			}
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if n < len(fds) && time.Now().After(limit) {
			return fmt.Errorf("no answer from %v on %d of %d flows in %v", server, len(fds)-n, len(fds), gatherWait)
		}
	}
	return nil
}

// awaitControl reads one control datagram; 0 when none came in time.
func (r *run) awaitControl(fd int, wait time.Duration) (byte, error) {
	poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(poll, max(1, int(wait.Milliseconds())))
	if n == 0 || errors.Is(err, unix.EINTR) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	var b [2 * controlBytes]byte
	got, errno := recv(fd, unsafe.Pointer(&b), len(b), unix.MSG_DONTWAIT)
	switch {
	case temporary(errno):
		return 0, nil
	case errno != 0:
		return 0, errno
	}
	kind, _ := r.readControl(b[:got])
	return kind, nil
}

// flow makes the workers of one flow.
func (r *run) flow(fd, index int, what role, server bool) ([]worker, error) {
	switch {
	case what == roundTrips && server:
		return []worker{newUDPEcho(r, fd, index)}, nil
	case what == roundTrips && r.cfg.RatePerSecond > 0:
		return newUDPSchedule(r, fd, index), nil
	case what == roundTrips:
		return []worker{newUDPRequester(r, fd, index)}, nil
	case (what == upload) != server:
		w, err := newUDPSender(r, fd, index)
		return []worker{w}, err
	default:
		w, err := newUDPReceiver(r, fd, index)
		return []worker{w}, err
	}
}

// zone is the index of an IPv6 zone; 0 without one.
func zone(a netip.Addr) uint32 {
	if a.Zone() == "" {
		return 0
	}
	if n, err := strconv.ParseUint(a.Zone(), 10, 32); err == nil {
		return uint32(n)
	}
	if i, err := net.InterfaceByName(a.Zone()); err == nil {
		return uint32(i.Index)
	}
	return 0
}
