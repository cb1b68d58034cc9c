package cli_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/fault"
	"github.com/cnibench/cnibench/internal/result"
)

// relayName makes this test's program a relay for ssh (ProxyCommand).
const relayName = "cnibench-relay"

// controlDelay is what a relay adds to each direction of a control path.
const controlDelay = 25 * time.Millisecond

// relay passes on what comes, late: the control path then has 50 ms more of round trip.
func relay(host, port string) int {
	conn, err := net.Dial("tcp", net.JoinHostPort(host, port))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ended := make(chan struct{}, 2)
	late := func(to io.Writer, from io.Reader) {
		fault.Late(to, from, controlDelay)
		ended <- struct{}{}
	}
	go late(conn, os.Stdin)
	go late(os.Stdout, conn)
	<-ended
	return 0
}

// farAway measures the same two machines in slices over a control path with 50 ms more of
// latency: the client keeps the schedule by its own clock, so nearly all slices take place.
func (f *farm) farAway() {
	t := f.t
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f.write("ssh_config", fmt.Sprintf("Host *\n  ProxyCommand %s %s %%h %%p\n", self, relayName))
	near := f.read("hosts.yml")
	f.write("far.yml", strings.Replace(near, "ansible_ssh_common_args: ", "ansible_ssh_common_args: -F "+f.path("ssh_config")+" ", 1))
	f.write("far.yaml", `name: far
testbed: hosts
networks: [host]
workloads: [{name: tcp_rr, message_bytes: [64]}, {name: tcp_stream, message_bytes: [1472]}]
sampling: {slices: 10, explain_seconds: 0, min_blocks: 3, max_blocks: 3}
`)
	if _, stderr, err := f.run("run", "far.yaml", "--inventory", f.path("far.yml"), "--out", "far", "--seed", "1"); err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	rec, err := result.Read(f.path("far"))
	if err != nil {
		t.Fatal(err)
	}
	// A busy machine may hold up some slices of a sample; latency would hold up those of all.
	asked, took := 0, 0
	for _, s := range rec.Samples {
		if s.Status != result.StatusOK || s.Slices == nil || len(s.Slices.PerSecond) < 5 {
			t.Errorf("%s %s is %s (%s) with slices %+v, want at least 5 of 10", s.ID, s.Cell.Workload, s.Status, s.Reason, s.Slices)
			continue
		}
		asked, took = asked+s.Slices.Asked, took+len(s.Slices.PerSecond)
	}
	if 10*took < 9*asked {
		t.Errorf("%d of %d slices took place, want nine tenths", took, asked)
	}
	if len(rec.Samples) != 6 {
		t.Errorf("%d samples, want 6", len(rec.Samples))
	}
}
