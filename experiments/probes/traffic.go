package main

import (
	"context"
	"errors"
	"net/netip"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/probe"
	"github.com/cnibench/cnibench/internal/testbed"
	"github.com/cnibench/cnibench/internal/workload"
)

// traffic runs both halves of a sample. Both ends are one machine: its counters
// are read at the server alone, as a campaign does it.
func traffic(ctx context.Context, w workload.Workload, p workload.Params, without []string, ends testbed.Ends) (server, client workload.Output, err error) {
	serve, err := w.Serve(p)
	if err != nil {
		return server, client, err
	}
	serve.WithoutProbes = without
	var session agent.ServeResult
	if err := ends.Server.Agent.Call(ctx, agent.MethodServe, agent.ServeParams{Program: serve}, &session); err != nil {
		return server, client, err
	}
	target := netip.AddrPortFrom(ends.ServerAddress, session.Port)
	drive, err := w.Drive(p, target)
	if err != nil {
		return server, client, err
	}
	drive.WithoutProbes = append([]string{probe.CountersName, probe.StacksName}, without...)
	err = ends.Client.Agent.Call(ctx, agent.MethodDrive, agent.DriveParams{Program: drive, Server: target.String()}, &client)
	err = errors.Join(err, ends.Server.Agent.Call(ctx, agent.MethodFinish, agent.FinishParams{Session: session.Session}, &server))
	return server, client, err
}
