//go:build linux

package traffic

import (
	"context"
	"errors"
	"net"
)

// Server is the serving half of a run. Its data port is open from Listen on;
// Run must follow.
type Server struct {
	run  *run
	tcp  *net.TCPListener // nil for datagrams
	udp  *udpListener     // nil for connections
	port uint16
}

// Listen opens the data port, the configured or a free one, on all addresses,
// IPv4 and IPv6.
func Listen(cfg Config) (*Server, error) {
	r, err := newRun(cfg, true)
	if err != nil {
		return nil, err
	}
	s := &Server{run: r}
	if cfg.udp() {
		if s.udp, err = openUDPListener(r); err != nil {
			return nil, err
		}
		s.port = s.udp.port
		return s, nil
	}
	if s.tcp, err = listenTCP(context.Background(), cfg); err != nil {
		return nil, err
	}
	s.port = s.tcp.Addr().(*net.TCPAddr).AddrPort().Port()
	return s, nil
}

// AddCarriers has the CPU time of processes counted as the server's in sliced runs: they carry
// its packets in user space, and are no other end's. Run must follow.
func (s *Server) AddCarriers(pids []int) { s.run.carriers = pids }

// Port is the number of the data port.
func (s *Server) Port() uint16 { return s.port }

// Finish reports that the driving half is through: Run then ends within the time
// that what is still under way may take.
func (s *Server) Finish() { s.run.over.Store(true) }

// Run serves one client until the run is over. It is called once, and closes
// the port. An error means that nothing can be said of the run: the client did
// not come, went too soon, or the path was cut.
func (s *Server) Run(ctx context.Context, h Hooks) (Report, error) {
	if s.run.cfg.Sliced {
		return s.runSliced(ctx)
	}
	if s.udp != nil {
		return s.udp.run(ctx, h)
	}
	if s.run.cfg.Test == TCPCRR {
		return s.runCRR(ctx, h)
	}
	list := roles(s.run.cfg)
	d := &acceptor{run: s.run, l: s.tcp, expected: len(list), arrived: make(chan arrival, len(list)), seen: map[int]bool{}}
	closed := make(chan struct{})
	go func() { defer close(closed); d.open() }()
	workers, err := s.welcome(ctx, d, list)
	var report Report
	if err == nil {
		report, err = s.run.do(ctx, workers, s.mainWindow(), h)
	}
	err = errors.Join(err, s.tcp.Close())
	<-closed
	if err != nil {
		return Report{}, err
	}
	report.Strangers = s.run.strangers.Load()
	return report, nil
}

// mainWindow is the window that this half's probes follow.
func (s *Server) mainWindow() *window {
	if s.run.cfg.Direction == Reverse {
		return s.run.send
	}
	return s.run.recv
}

func (s *Server) welcome(ctx context.Context, d *acceptor, list []role) ([]worker, error) {
	conns, err := d.gather(ctx)
	if err != nil {
		return nil, err
	}
	fds, err := s.run.take(conns, list)
	if err != nil {
		return nil, err
	}
	var workers []worker
	var behind []int
	for i, fd := range fds {
		switch list[i] {
		case upload:
			workers = append(workers, newTCPReceiver(s.run, fd))
		case download:
			w, err := newTCPSender(s.run, fd)
			if err != nil {
				return nil, errors.Join(err, closeFDs(fds))
			}
			workers = append(workers, w)
		case background:
			behind = append(behind, fd)
		case roundTrips:
			workers = append(workers, newTCPEcho(s.run, fd))
		}
	}
	if len(behind) > 0 {
		workers = append(workers, newBackgroundReceiver(s.run, behind))
	}
	return workers, nil
}
