package workload_test

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/workload"
)

// stranger is an address in the client's namespace that is not the client's.
const stranger = "198.18.77.9"

// serving starts the server of a cell, as the bench loop does.
func (w wire) serving(t *testing.T, p workload.Params) agent.ServeResult {
	t.Helper()
	serve, err := find(t, p.Cell.Workload).Serve(p)
	if err != nil {
		t.Fatal(err)
	}
	var session agent.ServeResult
	if err := w.server.Call(t.Context(), agent.MethodServe, agent.ServeParams{Program: serve, Address: w.address[p.Cell.Family].String()}, &session); err != nil {
		t.Fatal(err)
	}
	return session
}

// served are the processes in the server's namespace but its agent.
func (w wire) served(t *testing.T) (pids []string) {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		pid := strings.Split(path, "/")[2]
		info, err := os.Stat(path)
		if err != nil {
			continue // it has ended
		}
		argv, err := os.ReadFile(filepath.Join("/proc", pid, "cmdline"))
		if err == nil && info.Sys().(*syscall.Stat_t).Ino == w.inode && !strings.HasSuffix(string(argv), "\x00agent\x00") {
			pids = append(pids, pid)
		}
	}
	return pids
}

// TestToolServers: the server of each published tool listens on the measured address
// alone, and runs as a user who owns nothing and has no capability. Where the tool can, it
// refuses who does not know the sample's token.
func TestToolServers(t *testing.T) {
	w := newWire(t)
	ip(t, w, "addr add "+stranger+"/24 dev cnb0")
	for _, c := range []struct {
		cell result.Cell
		says string // what a stranger sends
		gets string // what it must get
	}{
		{result.Cell{Workload: "redis", Test: "set", MessageBytes: 100}, "PING\r\n", "-NOAUTH "},
		{result.Cell{Workload: "http", Test: "keep-alive", MessageBytes: 1024}, "GET /body HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 403 "},
		{result.Cell{Workload: "netperf", Test: "TCP_RR", MessageBytes: 100}, "", ""},
		{result.Cell{Workload: "iperf3", Protocol: "tcp"}, "", ""},
		{result.Cell{Workload: "sockperf", Test: "ping-pong", Protocol: "tcp"}, "", ""},
		{result.Cell{Workload: "sockperf", Test: "ping-pong", Protocol: "udp"}, "", ""},
	} {
		t.Run(c.cell.Workload+c.cell.Protocol, func(t *testing.T) {
			needTools(t, c.cell.Workload)
			p := paramsOf(c.cell)
			p.Token = "tokentoken"
			session := w.serving(t, p)
			w.bound(t, session.Port)
			pids := w.served(t)
			if len(pids) == 0 {
				t.Error("nothing serves")
			}
			for _, pid := range pids {
				status, err := os.ReadFile(filepath.Join("/proc", pid, "status"))
				if err != nil {
					t.Fatal(err)
				}
				for _, want := range []string{"\nUid:\t65534\t65534\t65534\t65534\n", "\nGid:\t65534\t65534\t65534\t65534\n", "\nGroups:\t \n", "\nCapEff:\t0000000000000000\n"} {
					if !strings.Contains(string(status), want) {
						t.Errorf("%s has no %q:\n%s", pid, want, status)
					}
				}
			}
			to := netip.AddrPortFrom(w.address[""], session.Port)
			if c.says != "" {
				if got := w.says(t, to, c.says); !strings.HasPrefix(got, c.gets) {
					t.Errorf("a stranger gets %q, want %q", got, c.gets)
				}
			}
			if c.cell.Workload == "netperf" { // its own client without the passphrase
				res, err := w.runner.Run(t.Context(), exec.Cmd{NetNS: w.clientNS, Argv: []string{"timeout", "5", "netperf", "-H", to.Addr().String(), "-p", fmt.Sprint(to.Port()), "-l", "1", "-t", "TCP_RR"}})
				if err == nil || res.ExitCode == 124 || strings.Contains(string(res.Stdout), "per sec") {
					t.Errorf("a stranger is served: %s, %v", res.Stdout, err)
				}
			}
			if err := w.server.Call(t.Context(), agent.MethodFinish, agent.FinishParams{Session: session.Session}, nil); err != nil {
				t.Error(err)
			}
		})
	}
}

// bound checks that a port is open on the measured address, and no other.
func (w wire) bound(t *testing.T, port uint16) {
	t.Helper()
	res, err := w.runner.Run(t.Context(), exec.Cmd{NetNS: w.serverNS, Argv: []string{"ss", "-Htuln"}})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(res.Stdout)) {
		fields := strings.Fields(line) // Netid State Recv-Q Send-Q Local Peer
		if len(fields) < 5 {
			t.Fatalf("ss: %q", line)
		}
		if fields[4] != netip.AddrPortFrom(w.address[""], port).String() {
			t.Errorf("also open: %s", line)
		}
		n++
	}
	if n == 0 {
		t.Error("nothing listens")
	}
}

// says sends something to a server as a stranger, and gives what comes back first.
func (w wire) says(t *testing.T, to netip.AddrPort, text string) (got string) {
	t.Helper()
	err := netns.Do(netns.NS{Name: "client", Path: w.clientNS}, func() error {
		c, err := dialFrom(stranger, to)
		if err != nil {
			return err
		}
		defer c.Close()
		answer := make([]byte, 256)
		if err := c.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
			return err
		}
		if _, err := c.Write([]byte(text)); err != nil {
			return err
		}
		n, err := c.Read(answer)
		got = string(answer[:n])
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return got
}

func ip(t *testing.T, w wire, args string) {
	t.Helper()
	if _, err := w.runner.Run(t.Context(), exec.Cmd{Argv: append([]string{"ip"}, strings.Fields(args)...), NetNS: w.clientNS}); err != nil {
		t.Fatal(err)
	}
}

// TestStrangerAtAToolsServer: a stranger who holds a connection to a tool's port while a
// sample is measured is in its doubts. The sample's own connections are not.
func TestStrangerAtAToolsServer(t *testing.T) {
	w := newWire(t)
	ip(t, w, "addr add "+stranger+"/24 dev cnb0")
	for _, k := range []struct {
		cell result.Cell
		with []bool
	}{
		{result.Cell{Workload: "http", Test: "close", MessageBytes: 1024, Streams: 2}, []bool{false, true}},
		{result.Cell{Workload: "redis", Test: "set", MessageBytes: 3, Streams: 10}, []bool{true}},
		{result.Cell{Workload: "netperf", Test: "TCP_RR", MessageBytes: 100}, []bool{true}},
	} {
		for _, with := range k.with {
			cell := k.cell
			t.Run(fmt.Sprintf("%s/stranger=%v", cell.Workload, with), func(t *testing.T) {
				needTools(t, cell.Workload)
				p := paramsOf(cell)
				p.Token = "tokentoken"
				session := w.serving(t, p)
				to := netip.AddrPortFrom(w.address[""], session.Port)
				if with {
					w.hold(t, to)
				}
				drive, err := find(t, cell.Workload).Drive(p, to)
				if err != nil {
					t.Fatal(err)
				}
				f := fixture{cell: cell}
				if err := w.client.Call(t.Context(), agent.MethodDrive, agent.DriveParams{Program: drive, Server: to.String()}, &f.client); err != nil {
					t.Fatal(err)
				}
				if f.client.Source != "198.18.77.1" {
					t.Errorf("the client sends from %q", f.client.Source)
				}
				if err := w.server.Call(t.Context(), agent.MethodFinish, agent.FinishParams{Session: session.Session, Peer: f.client.Source}, &f.server); err != nil {
					t.Fatal(err)
				}
				if _, err := find(t, cell.Workload).Parse(p, f.server, f.client); err != nil {
					t.Errorf("%v\n%s%s", err, f.client.Stdout, f.client.Stderr)
				}
				doubts := strings.Join(f.server.Doubts, "\n")
				if doubted := strings.Contains(doubts, "from others than the client ("+stranger+")"); doubted != with || strings.Contains(doubts, "198.18.77.1)") {
					t.Errorf("doubts: %q", doubts)
				}
			})
		}
	}
}

// hold opens a connection of a stranger that says nothing.
func (w wire) hold(t *testing.T, to netip.AddrPort) {
	t.Helper()
	err := netns.Do(netns.NS{Name: "client", Path: w.clientNS}, func() error {
		c, err := dialFrom(stranger, to)
		if err == nil {
			t.Cleanup(func() { _ = c.Close() })
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// dialFrom connects from one of the place's addresses.
func dialFrom(from string, to netip.AddrPort) (net.Conn, error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: 5 * time.Second}
	return d.Dial("tcp", to.String())
}

// TestStrangerTakesIperf3: a sample whose server serves a stranger fails, and its reason
// names the stranger's address.
func TestStrangerTakesIperf3(t *testing.T) {
	w := newWire(t)
	needTools(t, "iperf3")
	ip(t, w, "addr add "+stranger+"/24 dev cnb0")
	p := paramsOf(result.Cell{Workload: "iperf3", Protocol: "tcp", MessageBytes: 1472, Streams: 1})
	session := w.serving(t, p)
	to := netip.AddrPortFrom(w.address[""], session.Port)
	other, err := w.runner.StartPiped(t.Context(), exec.Cmd{NetNS: w.clientNS, Argv: []string{
		"iperf3", "-c", to.Addr().String(), "-p", fmt.Sprint(to.Port()), "-B", stranger, "-b", "1M", "-t", "30"}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = other.Kill() // it may have ended with its server
		_ = other.Wait()
	}()
	for begin := time.Now(); ; time.Sleep(5 * time.Millisecond) { // its control and its data connection
		res, err := w.runner.Run(t.Context(), exec.Cmd{NetNS: w.serverNS, Argv: []string{"ss", "-Htn", "state", "established", "sport", "=", fmt.Sprintf(":%d", to.Port())}})
		if err != nil || time.Since(begin) > 20*time.Second {
			t.Fatalf("the stranger is not served: %s, %v", res.Stdout, err)
		}
		if strings.Count(string(res.Stdout), "\n") >= 2 {
			break
		}
	}
	drive, err := find(t, "iperf3").Drive(p, to)
	if err != nil {
		t.Fatal(err)
	}
	f := fixture{cell: p.Cell}
	if err := w.client.Call(t.Context(), agent.MethodDrive, agent.DriveParams{Program: drive, Server: to.String()}, &f.client); err != nil {
		t.Fatal(err)
	}
	if err := w.server.Call(t.Context(), agent.MethodFinish, agent.FinishParams{Session: session.Session, Peer: f.client.Source}, &f.server); err != nil {
		t.Fatal(err)
	}
	_, err = find(t, "iperf3").Parse(p, f.server, f.client)
	if err == nil || !strings.Contains(err.Error(), "taken by another client, at "+stranger) {
		t.Errorf("%v\nclient: %s\nserver: %s", err, f.client.Stdout, f.server.Stdout)
	}
	if doubts := strings.Join(f.server.Doubts, "\n"); !strings.Contains(doubts, "("+stranger+")") {
		t.Errorf("doubts: %q", doubts)
	}
}
