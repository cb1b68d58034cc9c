package traffic_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/labtest/space"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/workload"
)

// TestMain lets the test binary stand in for the agent.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "agent" {
		os.Exit(agent.Serve(context.Background(), os.Stdin, os.Stdout))
	}
	os.Exit(m.Run())
}

const token = "00112233445566778899aabbccddeeff"

// lane is a server's and a client's place with an agent each.
type lane struct {
	runner                     *exec.Runner
	server, client             *agent.Client
	address                    netip.Addr
	delay                      time.Duration // of a relay before the server
	serverNS, clientNS         netns.NS
	serverPort, clientPort     netns.Port // their devices
	toServerPort, toClientPort netns.Port // the switch's
}

func (l *lane) agent(t *testing.T, path string) *agent.Client {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c, err := agent.Start(t.Context(), l.runner, []string{self, "agent"}, path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // some tests kill it
	return c
}

// loopback is a lane that needs no root.
func loopback(t *testing.T) *lane {
	t.Helper()
	l := &lane{runner: exec.NewRunner(), address: netip.MustParseAddr("127.0.0.1")}
	t.Cleanup(l.runner.Close)
	l.server, l.client = l.agent(t, ""), l.agent(t, "")
	return l
}

// switched is a lane of two namespaces with a switch between them.
func switched(t *testing.T, mtu int) *lane {
	t.Helper()
	labtest.Root(t)
	l := &lane{runner: exec.NewRunner(), address: netip.MustParseAddr("198.18.0.1")}
	t.Cleanup(l.runner.Close)
	fabric := space.New(t, "switch")
	l.serverNS, l.clientNS = space.New(t, "server"), space.New(t, "client")
	l.serverPort, l.clientPort = netns.Port{NS: l.serverNS, Device: "eth0"}, netns.Port{NS: l.clientNS, Device: "eth0"}
	l.toServerPort, l.toClientPort = netns.Port{NS: fabric, Device: "port0"}, netns.Port{NS: fabric, Device: "port1"}
	err := errors.Join(
		netns.AddBridge(fabric, "br0", mtu),
		netns.Connect(l.toServerPort, "br0", l.serverPort, mtu),
		netns.Connect(l.toClientPort, "br0", l.clientPort, mtu),
		l.serverPort.SetAddress(netip.MustParsePrefix("198.18.0.1/24")),
		l.clientPort.SetAddress(netip.MustParsePrefix("198.18.0.2/24")),
	)
	if err != nil {
		t.Fatal(err)
	}
	l.server, l.client = l.agent(t, l.serverNS.Path), l.agent(t, l.clientNS.Path)
	return l
}

// in runs a command in one end's namespace.
func (l *lane) in(t *testing.T, ns netns.NS, argv ...string) {
	t.Helper()
	if _, err := l.runner.Run(t.Context(), exec.Cmd{Argv: argv, NetNS: ns.Path}); err != nil {
		t.Fatal(err)
	}
}

// long leaves a test out of the quick loop.
func long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes long: run make test")
	}
}

const warmup = 200 * time.Millisecond

// measure runs one cell as a campaign does. strike, if not nil, is called once,
// in the middle of the window or a second into it.
func (l *lane) measure(t *testing.T, cell result.Cell, window time.Duration, strike func()) (workload.Measurement, workload.Output, error) {
	t.Helper()
	none := workload.Measurement{}
	p := workload.Params{Cell: cell, Warmup: warmup, Window: window, Token: token, SharedClock: true}
	w, err := workload.Find(cell.Workload)
	if err != nil {
		t.Fatal(err)
	}
	program, err := w.Serve(p)
	if err != nil {
		t.Fatal(err)
	}
	var session agent.ServeResult
	if err := l.server.Call(t.Context(), agent.MethodServe, agent.ServeParams{Program: program}, &session); err != nil {
		return none, workload.Output{}, err
	}
	target := netip.AddrPortFrom(l.address, session.Port)
	if l.delay > 0 {
		target = relay(t, target, l.delay)
	}
	if program, err = w.Drive(p, target); err != nil {
		t.Fatal(err)
	}
	if strike != nil {
		timer := time.AfterFunc(warmup+min(window/2, time.Second), strike)
		defer timer.Stop()
	}
	var server, client workload.Output
	err = l.client.Call(t.Context(), agent.MethodDrive, agent.DriveParams{Program: program, Server: target.String()}, &client)
	err = errors.Join(err, l.server.Call(t.Context(), agent.MethodFinish, agent.FinishParams{Session: session.Session}, &server))
	if err != nil {
		return none, client, err
	}
	m, err := w.Parse(p, server, client)
	return m, client, err
}

// must measures a cell that has no reason to fail.
func (l *lane) must(t *testing.T, cell result.Cell, window time.Duration, strike func()) workload.Measurement {
	t.Helper()
	m, _, err := l.measure(t, cell, window, strike)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (l *lane) pid(t *testing.T, c *agent.Client) int {
	t.Helper()
	var hello agent.HelloResult
	if err := c.Call(t.Context(), agent.MethodHello, agent.HelloParams{Protocol: agent.Protocol}, &hello); err != nil {
		t.Fatal(err)
	}
	return hello.PID
}

// mustThrough measures through a relay that holds every response back.
func (l *lane) mustThrough(t *testing.T, cell result.Cell, window, delay time.Duration) workload.Measurement {
	t.Helper()
	l.delay = delay
	return l.must(t, cell, window, nil)
}

// relay passes TCP connections on to a server, and its answers back after a
// delay. It carries one round trip per connection at a time.
func relay(t *testing.T, to netip.AddrPort, delay time.Duration) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	pass := func(from, to net.Conn, delay time.Duration) {
		defer to.Close()
		buf := make([]byte, 64<<10)
		for {
			n, err := from.Read(buf)
			time.Sleep(delay)
			if _, e := to.Write(buf[:n]); err != nil || e != nil {
				return
			}
		}
	}
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", to.String())
			if err != nil {
				_ = near.Close()
				continue
			}
			go pass(near, far, 0)
			go pass(far, near, delay)
		}
	}()
	return l.Addr().(*net.TCPAddr).AddrPort()
}
