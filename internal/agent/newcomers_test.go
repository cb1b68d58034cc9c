package agent

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/labtest/fuzzed"
)

const reportToken = "00112233445566778899aabbccddeeff"

// fresh is an agent that has nothing under way.
func freshServer(t *testing.T) *server {
	t.Helper()
	s := &server{}
	s.fresh()
	t.Cleanup(func() {
		if err := s.cancelAll(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func expected(t *testing.T, s *server, names ...string) netip.AddrPort {
	t.Helper()
	r, err := s.expect(s.life, ExpectParams{Token: reportToken, Names: names, Address: "127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	return netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), r.Port)
}

// Pods that report before anybody asks, and after, arrive once each, with the time at which their
// reports came and for how long they had run. Then the port is closed.
func TestNewcomersArrive(t *testing.T) {
	s := freshServer(t)
	port := expected(t, s, "a", "b")
	if _, err := s.expect(s.life, ExpectParams{Token: reportToken, Names: []string{"c"}, Address: "127.0.0.1"}); err == nil {
		t.Error("others are expected at the same time")
	}
	const ran = 300 * time.Millisecond
	Newcomer{port, reportToken, "a"}.report(t.Context(), time.Now().Add(-ran))
	Newcomer{port, reportToken, "a"}.report(t.Context(), time.Now().Add(-ran)) // its answer was lost
	late := make(chan struct{})
	go func() {
		defer close(late)
		time.Sleep(50 * time.Millisecond)
		Newcomer{port, reportToken, "b"}.report(t.Context(), time.Now())
	}()
	got, err := s.arrived()
	if err != nil || len(got.Arrivals) != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	<-late
	a, b := got.Arrivals[0], got.Arrivals[1]
	if a.Name != "a" || b.Name != "b" || a.Ran < ran || a.Ran > ran+10*time.Second || b.Ran > 10*time.Second {
		t.Errorf("%+v", got)
	}
	if apart := time.Duration(b.At - a.At); apart < 40*time.Millisecond || apart > 10*time.Second {
		t.Errorf("the second arrived %v after the first", apart)
	}
	if conn, err := net.Dial("tcp", port.String()); err == nil {
		conn.Close()
		t.Error("the port is still open")
	}
	if _, err := s.arrived(); err == nil {
		t.Error("somebody is still expected")
	}
	expected(t, s, "c") // the next sample's
}

// What is no report of an expected pod gets no answer, and holds nobody up.
func TestNewcomersAndStrangers(t *testing.T) {
	s := freshServer(t)
	port := expected(t, s, "a")
	silent, err := net.Dial("tcp", port.String())
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	for _, line := range []string{
		"", "\n", reportToken + "\n", reportToken + " b 1\n", reportToken + " a -1\n", reportToken + " a x\n", reportToken + " a 1 2\n",
		"10112233445566778899aabbccddeeff a 1\n", " a 1\n", strings.Repeat("x", 2*longestReport) + "\n", reportToken + " a 99999999999999999999\n",
	} {
		conn, err := net.Dial("tcp", port.String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, line); err != nil {
			t.Fatal(err)
		}
		_ = conn.(*net.TCPConn).CloseWrite()                // it may have been closed by then
		if answer, _ := io.ReadAll(conn); len(answer) > 0 { // or the connection was reset
			t.Errorf("%.60q was answered %q", line, answer)
		}
		conn.Close()
	}
	began := time.Now()
	Newcomer{port, reportToken, "a"}.report(t.Context(), began)
	if got, err := s.arrived(); err != nil || len(got.Arrivals) != 1 || got.Strangers != 10 { // one said nothing at all
		t.Errorf("%+v, %v", got, err)
	}
	if took := time.Since(began); took > reportWithin {
		t.Errorf("a stranger who says nothing held it up for %v", took)
	}
}

// A sample that is cancelled leaves no port and no pod that is waited for.
func TestNewcomersAreCancelled(t *testing.T) {
	s := freshServer(t)
	port := expected(t, s, "a", "b")
	Newcomer{port, reportToken, "a"}.report(t.Context(), time.Now())
	failed := make(chan error, 1)
	go func() {
		_, err := s.arrived()
		failed <- err
	}()
	time.Sleep(20 * time.Millisecond)
	if err := s.cancelAll(); err != nil {
		t.Error(err)
	}
	select {
	case err := <-failed:
		if err == nil || !strings.Contains(err.Error(), "1 of 2 newcomers have reported") {
			t.Errorf("%v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it is still waited for")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	Newcomer{port, reportToken, "b"}.report(ctx, time.Now()) // it ends with its pod
	if ctx.Err() == nil {
		t.Error("the port answers")
	}
}

func TestNewcomersAreRefused(t *testing.T) {
	s := freshServer(t)
	many := make([]string, mostNewcomers+1)
	for i := range many {
		many[i] = fmt.Sprint(i)
	}
	for _, p := range []ExpectParams{
		{Token: "", Names: []string{"a"}, Address: "127.0.0.1"},
		{Token: "0011", Names: []string{"a"}, Address: "127.0.0.1"},
		{Token: "xx" + reportToken, Names: []string{"a"}, Address: "127.0.0.1"},
		{Token: reportToken, Address: "127.0.0.1"},
		{Token: reportToken, Names: many, Address: "127.0.0.1"},
		{Token: reportToken, Names: []string{"a"}, Address: "here"},
		{Token: reportToken, Names: []string{"a"}, Address: "192.0.2.1"},
	} {
		if _, err := s.expect(s.life, p); err == nil {
			t.Errorf("%.3d names at %s with token %q are expected", len(p.Names), p.Address, p.Token)
		}
	}
	for _, text := range []string{"", "x", "127.0.0.1:1/x", "127.0.0.1/x/y", "127.0.0.1:1/x/y/z", "127.0.0.1:1//y"} {
		if _, err := ParseNewcomer(text); err == nil {
			t.Errorf("%q was read", text)
		}
	}
	want := Newcomer{netip.MustParseAddrPort("[fd00::1]:9"), "t", "n"}
	if got, err := ParseNewcomer(want.String()); err != nil || got != want {
		t.Errorf("%v, %v", got, err)
	}
}

// FuzzNewcomer: whatever is sent to the port for newcomers, only a report of an expected pod with
// the token counts, for a time that is none before its beginning.
func FuzzNewcomer(f *testing.F) {
	for _, line := range []string{reportToken + " a 1\n", reportToken + " b 1\n", reportToken + " a -1\n", reportToken + "  a 1", "x a 1\n", "\n", reportToken + " a 1 \n"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		defer fuzzed.Within(t)()
		if len(line) > longestReport {
			t.Skip("longer than what is read")
		}
		n := &newcomers{token: reportToken, names: map[string]bool{"a": true}}
		a, ok := n.parse(line)
		if ok && (a.Name != "a" || a.Ran < 0 || !strings.HasPrefix(line, reportToken+" a ")) {
			t.Errorf("%q is %+v", line, a)
		}
	})
}
