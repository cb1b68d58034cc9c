package cli_test

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed"
)

// TestStrangerInAToolsRecord: a stranger who is connected to the server of a published tool
// when its sample ends is in the record; a sample without one has no such warning.
func TestStrangerInAToolsRecord(t *testing.T) {
	t.Parallel()
	labtest.Tool(t, "nginx", "nginx-light")
	labtest.Tool(t, "wrk", "wrk")
	b := newBrokenLab(t)
	cell := faultCell("http", "keep-alive", "", func(c *result.Cell) { c.MessageBytes, c.Streams = 1024, 2 })
	warned := func(records []result.Sample) string {
		t.Helper()
		if len(records) != 1 || records[0].Status != result.StatusOK {
			t.Fatalf("%+v", records)
		}
		return strings.Join(records[0].Warnings, "\n")
	}
	var stranger string
	got := warned(b.run([]result.Cell{cell}, 3, func(e testbed.Ends) func() {
		server, port := b.pid(e.Server), uint16(0)
		var err error
		for begin := time.Now(); port == 0 && err == nil && time.Since(begin) < 2*time.Second; time.Sleep(5 * time.Millisecond) {
			port, err = dataPort(server, "tcp")
		}
		stranger = e.ServerAddress.String() // who connects from the server's own machine
		var c net.Conn
		if err == nil {
			err = netns.Do(netns.NS{Name: "server", Path: fmt.Sprintf("/proc/%d/ns/net", server)}, func() (err error) {
				c, err = net.DialTimeout("tcp", netip.AddrPortFrom(e.ServerAddress, port).String(), time.Second)
				return err
			})
		}
		if err != nil {
			t.Error(err)
			return nil
		}
		return func() { _ = c.Close() } // its server may have gone first
	}))
	if !strings.Contains(got, "strangers: 1 connections from others than the client ("+stranger+")") {
		t.Errorf("with a stranger: %q", got)
	}
	if got := warned(b.run([]result.Cell{cell}, 1, nil)); strings.Contains(got, "strangers") {
		t.Errorf("without a stranger: %q", got)
	}
}
