package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/probe"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed"
	"github.com/cnibench/cnibench/internal/workload"
)

const (
	// fewestChanges is how often a sample changes its service at least: to the other
	// endpoint, and back.
	fewestChanges = 2
	// betweenChanges is how long connections go on after one reached another endpoint.
	betweenChanges = 50 * time.Millisecond
	// seenWithin bounds how long a new connection takes to reach the endpoint that the
	// service has. A SYN that is lost is sent again after 1, 3 and 7 s (RFC 6298, and the
	// kernel's tcp_syn_retries).
	seenWithin = 10 * time.Second
	// changesWithin bounds the changes of a sample.
	changesWithin = 3 * time.Minute
	// otherEndpoint is how far the port of the service's other endpoint is from the first.
	// Tools use the port after the first.
	otherEndpoint = 2
)

// updating is a sample that changes its service.
type updating struct {
	work    workload.ServiceUpdate
	params  workload.Params
	ends    testbed.Ends
	cell    result.Cell
	updater testbed.ServiceUpdater
	changes []result.ServiceChange
	// client and server are what both ends gave; the server is the one at the first endpoint.
	client, server workload.Output
}

// updateService measures a sample of service_update. The service leads to its first endpoint
// afterwards, whatever happened.
func (r *run) updateService(ctx context.Context, t *try, work workload.ServiceUpdate) (err error) {
	updater, ok := r.Testbed.(testbed.ServiceUpdater)
	if !ok {
		return fmt.Errorf("this testbed cannot change services: measure %s in the lab", t.sample.Cell.Workload)
	}
	s, ends := &t.sample, t.ends
	if ends.ServerPort == 0 || !ends.SharedClock {
		return fmt.Errorf("%s needs a path to a service between places with one clock", s.Cell.Workload)
	}
	bound := r.Sampling.Warmup() + changesWithin + patience
	ctx, cancel := context.WithTimeoutCause(ctx, bound, fmt.Errorf("no end after %v", bound))
	defer cancel()
	u := &updating{work: work, ends: ends, cell: s.Cell, updater: updater, params: workload.Params{
		Cell: s.Cell, Warmup: r.Sampling.Warmup(), Window: r.Sampling.Window(), Token: agent.NewToken(), SharedClock: ends.SharedClock,
	}}
	defer r.watchAlive(ctx, ends.Client, ends.Server)()
	if err := u.measure(ctx); err != nil {
		r.cancelEnds(ctx, ends)
		return err
	}
	m, err := work.Parse(u.params, u.server, u.client)
	if err == nil {
		err = workload.Updated(&m, u.changes, u.client)
	}
	if err != nil {
		return err
	}
	s.MeasuredSeconds, s.Metrics, s.Histogram, s.Warnings = &m.MeasuredSeconds, m.Metrics, m.Histogram, m.Warnings
	profileOf(s, ends)
	conditionsOf(s, u.client, u.server)
	mtuOf(s, ends)
	return nil
}

// measure runs two servers and a client, and changes the service meanwhile.
func (u *updating) measure(ctx context.Context) error {
	first, err := u.serve(ctx, u.work.Serve, u.ends.ServerPort)
	if err != nil {
		return err
	}
	other, err := u.serve(ctx, u.work.ServeOther, u.ends.ServerPort+otherEndpoint)
	if err != nil {
		return err
	}
	driven := make(chan error, 1)
	go func() { driven <- u.drive(ctx) }()
	err = u.change(ctx, driven)
	if err != nil {
		return err
	}
	// A server that is asked to finish reports that to its client, which is through then.
	if u.server, err = u.finish(ctx, first); err != nil {
		return err
	}
	if err := <-driven; err != nil {
		return err
	}
	return u.ends.Server.Agent.Call(ctx, agent.MethodAbandon, agent.FinishParams{Session: other}, nil)
}

// serve starts one server.
func (u *updating) serve(ctx context.Context, half func(workload.Params) (workload.Program, error), port uint16) (session string, err error) {
	program, err := half(u.params)
	if err != nil {
		return "", err
	}
	program.WithoutProbes = probe.Names()
	var got agent.ServeResult
	err = u.ends.Server.Agent.Call(ctx, agent.MethodServe, agent.ServeParams{Program: program, Port: port}, &got)
	if err != nil {
		return "", fmt.Errorf("server at %s: %w", u.ends.Server.Name, err)
	}
	return got.Session, nil
}

// drive runs the client to its end.
func (u *updating) drive(ctx context.Context) error {
	target := netip.AddrPortFrom(u.ends.ServerAddress, cmp.Or(u.ends.TargetPort, u.ends.ServerPort))
	program, err := u.work.Drive(u.params, target)
	if err != nil {
		return err
	}
	program.WithoutProbes = probe.Names()
	err = u.ends.Client.Agent.Call(ctx, agent.MethodDrive, agent.DriveParams{Program: program, Server: target.String()}, &u.client)
	if err != nil {
		return fmt.Errorf("client at %s: %w", u.ends.Client.Name, err)
	}
	return nil
}

func (u *updating) finish(ctx context.Context, session string) (out workload.Output, err error) {
	err = u.ends.Server.Agent.Call(ctx, agent.MethodFinish, agent.FinishParams{Session: session}, &out)
	if err != nil {
		err = fmt.Errorf("server at %s: %w", u.ends.Server.Name, err)
	}
	return out, err
}

// change changes the service to the other endpoint and back, again and again, for as long as
// the sample's window is. It ends when the client has.
func (u *updating) change(ctx context.Context, driven <-chan error) (err error) {
	defer func() {
		if err == nil {
			return
		}
		back, cancel := context.WithTimeout(context.WithoutCancel(ctx), changesWithin)
		defer cancel()
		_, backErr := u.updater.UpdateService(back, u.cell, u.ends.ServerPort)
		err = errors.Join(err, backErr)
	}()
	if err := u.seen(ctx, driven); err != nil {
		return fmt.Errorf("no connection reached the service's first endpoint: %w", err)
	}
	if err := u.pause(ctx, driven, u.params.Warmup+betweenChanges); err != nil {
		return err
	}
	ports := [...]uint16{u.ends.ServerPort + otherEndpoint, u.ends.ServerPort}
	for began := time.Now(); len(u.changes) < fewestChanges || len(u.changes)%2 > 0 || time.Since(began) < u.params.Window; {
		c, err := u.updater.UpdateService(ctx, u.cell, ports[len(u.changes)%2])
		if err != nil {
			return err
		}
		u.changes = append(u.changes, c)
		if err := u.seen(ctx, driven); err != nil {
			return fmt.Errorf("no new connection reached the other endpoint after change %d of the service: %w", len(u.changes), err)
		}
		if err := u.pause(ctx, driven, betweenChanges); err != nil {
			return err
		}
	}
	return nil
}

// seen waits until the client has reached the first endpoint, and another one for each change.
// The next change may not come before: nobody would know how long this one took, and those that
// take long would be missing.
func (u *updating) seen(ctx context.Context, driven <-chan error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, seenWithin, fmt.Errorf("none within %v", seenWithin))
	defer cancel()
	reached := make(chan error, 1)
	go func() {
		reached <- u.ends.Client.Agent.Call(ctx, agent.MethodSwitched, agent.SwitchedParams{Count: 1 + len(u.changes)}, nil)
	}()
	select {
	case err := <-driven:
		return endedEarly(err)
	case err := <-reached:
		return err
	}
}

// endedEarly is what a client failed by that ended while its service was changed.
func endedEarly(err error) error {
	return errors.Join(errors.New("the client ended before the changes of the service were over"), err)
}

// pause waits; a client that ends meanwhile has failed.
func (u *updating) pause(ctx context.Context, driven <-chan error, length time.Duration) error {
	select {
	case err := <-driven:
		return endedEarly(err)
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(length):
		return nil
	}
}
