package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/probe"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/workload"
)

const (
	mtu    = 1500
	warmup = 200 * time.Millisecond
)

// path is two namespaces with an agent each, and a switch between them.
type path struct {
	spaces         []netns.NS
	server, client *agent.Client
	address        netip.Addr
}

func buildPath(ctx context.Context, runner *exec.Runner, congestion string) (p *path, err error) {
	p = &path{address: netip.MustParseAddr("198.18.0.1")}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	for _, name := range []string{"switch", "server", "client"} {
		ns, err := netns.New(fmt.Sprintf("cnb-bt%d-%s", os.Getpid(), name))
		if err != nil {
			return p, err
		}
		p.spaces = append(p.spaces, ns)
	}
	if err := netns.AddBridge(p.spaces[0], "br0", mtu); err != nil {
		return p, err
	}
	self, err := os.Executable()
	if err != nil {
		return p, err
	}
	for i, address := range []string{"198.18.0.1/24", "198.18.0.2/24"} {
		end := netns.Port{NS: p.spaces[i+1], Device: "eth0"}
		if err := netns.Connect(netns.Port{NS: p.spaces[0], Device: fmt.Sprintf("port%d", i)}, "br0", end, mtu); err != nil {
			return p, err
		}
		if err := end.SetAddress(netip.MustParsePrefix(address)); err != nil {
			return p, err
		}
		if congestion == "" {
			congestion, err = netns.Sysctl(end.NS, "net/ipv4/tcp_congestion_control")
			if err != nil {
				return p, err
			}
		}
		if err := netns.SetSysctls(end.NS, netns.Setting{Path: "net/ipv4/tcp_congestion_control", Value: congestion}); err != nil {
			return p, err
		}
		c, err := agent.Start(ctx, runner, []string{self, "agent"}, p.spaces[i+1].Path)
		if err != nil {
			return p, err
		}
		if i == 0 {
			p.server = c
		} else {
			p.client = c
		}
	}
	return p, nil
}

func (p *path) close() error {
	var errs error
	for _, c := range []*agent.Client{p.client, p.server} {
		if c != nil {
			errs = errors.Join(errs, c.Close())
		}
	}
	for _, ns := range p.spaces {
		errs = errors.Join(errs, ns.Delete())
	}
	return errs
}

// sample measures one cell as a campaign does.
func (p *path) sample(ctx context.Context, cell result.Cell, window time.Duration) (workload.Measurement, error) {
	none := workload.Measurement{}
	w, err := workload.Find(cell.Workload)
	if err != nil {
		return none, err
	}
	var token [16]byte
	if _, err := rand.Read(token[:]); err != nil {
		return none, err
	}
	params := workload.Params{Cell: cell, Warmup: warmup, Window: window, Token: hex.EncodeToString(token[:]), SharedClock: true}
	serve, err := w.Serve(params)
	if err != nil {
		return none, err
	}
	serve.Placement, serve.WithoutProbes = cell.CPUs, probe.Names()
	var session agent.ServeResult
	if err := p.server.Call(ctx, agent.MethodServe, agent.ServeParams{Program: serve}, &session); err != nil {
		return none, err
	}
	target := netip.AddrPortFrom(p.address, session.Port)
	drive, err := w.Drive(params, target)
	if err != nil {
		return none, err
	}
	drive.Placement, drive.WithoutProbes = cell.CPUs, probe.Names()
	var client, server workload.Output
	err = p.client.Call(ctx, agent.MethodDrive, agent.DriveParams{Program: drive, Server: target.String()}, &client)
	err = errors.Join(err, p.server.Call(ctx, agent.MethodFinish, agent.FinishParams{Session: session.Session}, &server))
	if err != nil {
		return none, err
	}
	return w.Parse(params, server, client)
}
