package traffic

import (
	"context"
	"errors"
	"net/netip"
)

// Server is the serving half of a run.
type Server struct{}

// Listen binds.
func Listen(cfg Config) (*Server, error) {
	return nil, errors.New("the native engine is not built yet")
}

// Port is the data port.
func (s *Server) Port() uint16 { return 0 }

// Finish tells that the driving half is over.
func (s *Server) Finish() {}

// Run serves until the run is over.
func (s *Server) Run(ctx context.Context, h Hooks) (Report, error) { return Report{}, nil }

// Drive runs the driving half.
func Drive(ctx context.Context, cfg Config, server netip.AddrPort, h Hooks) (Report, error) {
	return Report{}, errors.New("the native engine is not built yet")
}
