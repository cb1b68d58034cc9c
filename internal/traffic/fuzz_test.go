package traffic

import (
	"bytes"
	"encoding/binary"
	"net"
	"testing"

	"github.com/cnibench/cnibench/internal/labtest/fuzzed"
)

// FuzzGreeting: a connection is let in only by the run's token and an index that is still free; whatever
// else it says, it is turned away, and nothing waits for it.
func FuzzGreeting(f *testing.F) {
	const expected = 4
	cfg := quick(TCPStream)
	r, err := newRun(cfg, true)
	if err != nil {
		f.Fatal(err)
	}
	l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = l.Close() })
	f.Add(greeting(r.token, 0))
	f.Add(greeting(r.token, expected))
	f.Add(greeting(r.token, -1))
	f.Add(append(greeting(r.token, 1), 1, 2, 3))
	f.Add(make([]byte, greetingBytes))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Fuzz(func(t *testing.T, said []byte) {
		defer fuzzed.Within(t)()
		if len(said) > 4096 {
			t.Skip("longer than what a socket takes at once")
		}
		client, err := net.DialTCP("tcp4", nil, l.Addr().(*net.TCPAddr))
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		conn, err := l.AcceptTCP()
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := client.Write(said); err != nil {
			t.Fatal(err)
		}
		if err := client.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		d := &acceptor{run: r, expected: expected, seen: map[int]bool{2: true}, pending: []*net.TCPConn{conn}}
		index, ok := d.greet(conn)
		ours := len(said) >= greetingBytes && bytes.Equal(said[:tokenBytes], r.token[:])
		at := uint32(expected)
		if ours {
			at = binary.LittleEndian.Uint32(said[tokenBytes:])
		}
		if want := ours && at < expected && at != 2; ok != want || ok && index != int(at) {
			t.Errorf("%x: at %d, let in %v; want at %d, %v", said, index, ok, at, want)
		}
		if len(d.pending) > 0 {
			t.Errorf("%x: it still waits", said)
		}
		if ok && !d.seen[index] {
			t.Errorf("%x: its at is still free", said)
		}
	})
}

// FuzzMark: a control datagram is read where it has the run's token alone, and what is read
// is what was written.
func FuzzMark(f *testing.F) {
	r, err := newRun(quick(UDPRR), true)
	if err != nil {
		f.Fatal(err)
	}
	whole := r.mark(answerControl, 3, 7, flowAnswer{packets: 1, bytes: 2, reordered: 3, duplicated: 4, cpu: 5, took: 6})
	f.Add(whole[:])
	f.Add(whole[:controlBytes])
	f.Add(make([]byte, markBytes))
	f.Fuzz(func(t *testing.T, p []byte) {
		defer fuzzed.Within(t)()
		kind, number, a := r.readMark(p)
		if kind == 0 {
			if number != 0 || a != (flowAnswer{}) {
				t.Errorf("%x is refused, and gave %d, %+v", p, number, a)
			}
			return
		}
		_, index := r.readControl(p[:controlBytes])
		again := r.mark(kind, index, number, a)
		if k, n, b := r.readMark(again[:]); k != kind || n != number || b != a || !bytes.Equal(p[controlBytes:], again[controlBytes:]) {
			t.Errorf("%x became %x", p, again)
		}
		if !bytes.Equal(p[wordBytes:wordBytes+tokenBytes], r.token[:]) {
			t.Errorf("%x has another token", p)
		}
	})
}
