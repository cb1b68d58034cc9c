package agent

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cnibench/cnibench/internal/traffic"
	"github.com/cnibench/cnibench/internal/workload"
)

const (
	// tryWindow is how long a try sends transactions.
	tryWindow = 10 * time.Millisecond
	// tryPatience is when an agent ends a half of a try that hangs.
	tryPatience = time.Minute
	// tryEnd bounds the wait for both agents to end what a try began.
	tryEnd = 5 * time.Second
)

// Try reports whether a client's place reaches a server's: it sends a few transactions
// over TCP. The server serves on port, or on a free one where that is 0; the client
// sends to it at to, whose port may be 0 for the one that the server has. The error says
// why no answer came. Nothing is left running at either end.
func Try(ctx context.Context, client, server *Client, to netip.AddrPort, port uint16) error {
	program := workload.Program{Timeout: tryPatience, Native: &traffic.Config{
		Test: traffic.TCPRR, Token: NewToken(), MessageBytes: 1, Streams: 1, Window: tryWindow,
	}}
	var session ServeResult
	if err := server.Call(ctx, MethodServe, ServeParams{Program: program, Port: port}, &session); err != nil {
		return err
	}
	if to.Port() == 0 {
		to = netip.AddrPortFrom(to.Addr(), session.Port)
	}
	var out workload.Output
	driveErr := client.Call(ctx, MethodDrive, DriveParams{Program: program, Server: to.String()}, &out)
	after, stop := context.WithTimeoutCause(context.WithoutCancel(ctx), tryEnd, fmt.Errorf("no answer within %v", tryEnd))
	defer stop()
	g, end := errgroup.WithContext(after)
	for _, c := range []*Client{client, server} {
		g.Go(func() error { return c.Call(end, MethodCancel, CancelParams{}, nil) })
	}
	return errors.Join(driveErr, g.Wait())
}
