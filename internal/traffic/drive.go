//go:build linux

package traffic

import (
	"context"
	"errors"
	"net/netip"

	"golang.org/x/sys/unix"
)

// Drive runs the driving half of a run against the server's data port. An
// error means that nothing can be said of the run; it comes within 5 s of what
// caused it.
func Drive(ctx context.Context, cfg Config, server netip.AddrPort, h Hooks) (Report, error) {
	r, err := newRun(cfg, false)
	if err != nil {
		return Report{}, err
	}
	main := r.recv
	if r.sendsOnly() {
		main = r.send
	}
	var workers []worker
	switch {
	case cfg.udp():
		var fds []int
		workers, fds, err = r.callUDP(ctx, server)
		defer func() { _ = closeFDs(fds) }() // what counts was received
	case cfg.Test == TCPCRR:
		workers, err = r.callCRR(server, h.Switched)
	default:
		workers, err = r.callTCP(ctx, server)
	}
	if err != nil {
		return Report{}, err
	}
	return r.do(ctx, workers, main, h)
}

// sendsOnly reports that the driving half receives nothing that is measured.
func (r *run) sendsOnly() bool {
	return (r.cfg.Test == TCPStream || r.cfg.Test == UDPStream) && r.cfg.Direction == Forward
}

func (r *run) callTCP(ctx context.Context, server netip.AddrPort) ([]worker, error) {
	list := roles(r.cfg)
	conns, err := dial(ctx, r, server, len(list))
	if err != nil {
		return nil, err
	}
	fds, err := r.take(conns, list)
	if err != nil {
		return nil, err
	}
	var workers []worker
	var behind []int
	for i, fd := range fds {
		switch list[i] {
		case upload:
			w, err := newTCPSender(r, fd)
			if err != nil {
				return nil, errors.Join(err, closeFDs(fds))
			}
			workers = append(workers, w)
		case download:
			workers = append(workers, newTCPReceiver(r, fd))
		case background:
			behind = append(behind, fd)
		case roundTrips:
			workers = append(workers, r.askTCP(fd)...)
		}
	}
	if len(behind) > 0 {
		workers = append(workers, newBackgroundSender(r, behind))
	}
	return workers, nil
}

// askTCP makes the workers of one connection of round trips.
func (r *run) askTCP(fd int) []worker {
	if r.cfg.RatePerSecond > 0 {
		return newTCPSchedule(r, fd)
	}
	return []worker{newTCPRequester(r, fd)}
}

func closeFDs(fds []int) error {
	var errs error
	for _, fd := range fds {
		errs = errors.Join(errs, unix.Close(fd))
	}
	return errs
}
