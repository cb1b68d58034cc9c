package main

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/testbed/lab"
)

// messageBytes is what each datagram, request and answer carries.
const messageBytes = 64

// pair is a socket in the client's namespace and one in the server's. One thread
// uses both in turn, so that what is counted is the packet's way and not how a
// scheduler shares one CPU between two programs.
type pair struct {
	client, server int
	// flows makes clients, one for each datagram of a window, in place of client.
	// It is nil but for udp_flows.
	flows   *flows
	clients []int
}

// ends is where the sockets of a pair are to be.
type ends lab.Sites

func (p pair) close() error {
	if p.flows != nil {
		return unix.Close(p.server)
	}
	return errors.Join(unix.Close(p.client), unix.Close(p.server))
}

// within makes a socket in a namespace.
func within(ns netns.NS, kind int) (fd int, err error) {
	err = netns.Do(ns, func() error {
		fd, err = unix.Socket(unix.AF_INET, kind|unix.SOCK_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return -1, fmt.Errorf("socket in %s: %w", ns.Name, err)
	}
	// A packet that is lost is an error and no endless wait.
	return fd, unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 5})
}

// bound makes a socket of the server and gives where the client is to send to.
func (e ends) bound(kind int) (fd int, target *unix.SockaddrInet4, err error) {
	if fd, err = within(e.Server, kind); err != nil {
		return -1, nil, err
	}
	var own unix.Sockaddr
	if err = unix.Bind(fd, &unix.SockaddrInet4{Port: int(e.Port), Addr: e.Address.As4()}); err == nil {
		own, err = unix.Getsockname(fd)
	}
	v4, ok := own.(*unix.SockaddrInet4)
	if !ok {
		return -1, nil, errors.Join(fmt.Errorf("socket at %s: no IPv4 address: %w", e.Address, err), unix.Close(fd))
	}
	return fd, &unix.SockaddrInet4{Port: v4.Port, Addr: e.Target.As4()}, nil
}

// datagrams gives a pair whose client sends datagrams to its server.
func (e ends) datagrams() (pair, error) {
	server, at, err := e.bound(unix.SOCK_DGRAM)
	if err != nil {
		return pair{}, err
	}
	client, err := within(e.Client, unix.SOCK_DGRAM)
	if err != nil {
		return pair{}, errors.Join(err, unix.Close(server))
	}
	p := pair{client: client, server: server}
	if err := unix.Connect(client, at); err != nil {
		return pair{}, errors.Join(err, p.close())
	}
	return p, nil
}

// connection gives a pair with a TCP connection between.
func (e ends) connection() (pair, error) {
	listener, at, err := e.bound(unix.SOCK_STREAM)
	if err != nil {
		return pair{}, err
	}
	defer unix.Close(listener)
	if err := unix.Listen(listener, 1); err != nil {
		return pair{}, err
	}
	client, err := within(e.Client, unix.SOCK_STREAM)
	if err != nil {
		return pair{}, err
	}
	if err := unix.Connect(client, at); err != nil {
		return pair{}, errors.Join(err, unix.Close(client))
	}
	server, _, err := unix.Accept4(listener, unix.SOCK_CLOEXEC)
	if err != nil {
		return pair{}, errors.Join(err, unix.Close(client))
	}
	p := pair{client: client, server: server}
	for _, fd := range []int{client, server} {
		err = errors.Join(err, unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1),
			unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 5}))
	}
	if err != nil {
		return pair{}, errors.Join(err, p.close())
	}
	return p, nil
}

// pass sends one message and takes it at the other end.
func pass(from, to int, b []byte) error {
	if _, err := unix.Write(from, b); err != nil {
		return fmt.Errorf("send: %w", err)
	}
	n, err := unix.Read(to, b)
	for err == unix.EINTR { // a signal ends a call with a timeout
		n, err = unix.Read(to, b)
	}
	if err != nil {
		return fmt.Errorf("a message that was sent did not arrive: %w", err)
	}
	if n != len(b) {
		return fmt.Errorf("received %d bytes of %d", n, len(b))
	}
	return nil
}

// run passes n datagrams, or n transactions of a request and its answer. Of a
// hundred of them, so many are done twice: a known extra cost.
func (p pair) run(workload string, n, twicePercent int) error {
	b := make([]byte, messageBytes)
	for i := range n {
		times, client := 1, p.client
		if p.clients != nil {
			client = p.clients[i]
		}
		if i%100 < twicePercent {
			times = 2
		}
		for range times {
			if err := pass(client, p.server, b); err != nil {
				return err
			}
			if workload == "tcp_rr" {
				if err := pass(p.server, client, b); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
