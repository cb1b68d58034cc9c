package workload_test

import (
	"context"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/workload"
)

// TestSockperfServesWhereConnectionsWait: a service has one port for all samples, so
// that a server must be able to bind it while a connection of the sample before is in
// TIME_WAIT there.
func TestSockperfServesWhereConnectionsWait(t *testing.T) {
	labtest.Tool(t, "sockperf", "sockperf")
	port := waiting(t)
	p, err := workload.Sockperf{}.Serve(workload.Params{Cell: result.Cell{Workload: "sockperf", Test: "ping-pong", Protocol: "tcp"}, Window: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	fill := strings.NewReplacer("{port}", strconv.Itoa(port), "{bind}", "0.0.0.0")
	argv := strings.Split(fill.Replace(strings.Join(p.Argv, "\x00")), "\x00")
	runner := exec.NewRunner()
	defer runner.Close()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan string, 1)
	go func() {
		out, err := runner.Run(ctx, exec.Cmd{Argv: argv})
		text := string(out.Stdout) + string(out.Stderr)
		if err != nil {
			text += err.Error()
		}
		ended <- text
	}()
	defer func() { cancel(); <-ended }()
	for {
		select {
		case text := <-ended:
			ended <- text
			t.Fatalf("the server ended: %s", text)
		default:
		}
		conn, err := net.DialTimeout("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), time.Second)
		if err == nil {
			conn.Close()
			return
		}
		if t.Context().Err() != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond) // a server that does not listen yet refuses at once
	}
}

// waiting gives a port of which a connection is in TIME_WAIT: its server closed first.
func waiting(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Read(make([]byte, 1)); err == nil {
		t.Fatal("the server did not close")
	}
	return l.Addr().(*net.TCPAddr).Port
}
