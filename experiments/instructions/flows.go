package main

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/netns"
)

// udpFlows is udp_stream with a socket, and so a port, for each datagram: the
// kernel tracks each as a connection of its own, and does for each what it else
// does for the first packet alone, such as to look a service up.
const udpFlows = "udp_flows"

// flows makes the clients of udp_flows.
type flows struct {
	ends ends
	at   *unix.SockaddrInet4
	port int // of the next client; no two have the same
}

// manyFlows gives a pair whose clients are made before each window.
func (e ends) manyFlows() (pair, error) {
	server, at, err := e.bound(unix.SOCK_DGRAM)
	if err != nil {
		return pair{}, err
	}
	return pair{client: -1, server: server, flows: &flows{ends: e, at: at, port: 20_000}}, nil
}

// graceTime is more than the kernel takes until it frees what was closed (RCU):
// some ticks of its clock. What it freed later would be counted.
const graceTime = 100 * time.Millisecond

// open gives n clients, each of which sends one datagram, when those before are
// no more.
func (f *flows) open(n int) (clients []int, err error) {
	time.Sleep(graceTime)
	err = netns.Do(f.ends.Client, func() error {
		for range n {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				return err
			}
			clients = append(clients, fd)
			if err := unix.Bind(fd, &unix.SockaddrInet4{Port: f.port}); err != nil {
				return fmt.Errorf("port %d: %w", f.port, err)
			}
			f.port++
			if err := unix.Connect(fd, f.at); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("clients in %s: %w", f.ends.Client.Name, err), closeAll(clients))
	}
	return clients, nil
}

func closeAll(fds []int) (err error) {
	for _, fd := range fds {
		err = errors.Join(err, unix.Close(fd))
	}
	return err
}
