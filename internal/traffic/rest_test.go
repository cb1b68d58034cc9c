//go:build linux

package traffic

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestRestsFitTheBuffer: rests become shorter while they fill a quarter of the buffer, end where
// the shortest does, are tried again, and grow to the longest while the buffer stays empty.
func TestRestsFitTheBuffer(t *testing.T) {
	const size = 1 << 20
	r := rests{longest: int64(restTime)}
	for want := int64(restTime) / 2; want >= int64(restTime)>>restSteps; want /= 2 {
		if r.judge(size/fullRest, size); r.length() != want {
			t.Fatalf("a rest of %d ns after a full buffer, want %d", r.length(), want)
		}
	}
	if r.judge(size/emptyRest+1, size); r.length() != int64(restTime)>>restSteps {
		t.Errorf("a rest of %d ns after a buffer neither full nor empty", r.length())
	}
	if r.judge(size, size); r.length() != 0 {
		t.Errorf("a rest of %d ns where the shortest fills the buffer", r.length())
	}
	for range restlessReads {
		r.rest(nanotime())
	}
	for want := int64(restTime) >> restSteps; want <= int64(restTime); want *= 2 {
		if r.length() != want {
			t.Fatalf("a rest of %d ns, want %d", r.length(), want)
		}
		r.judge(0, size)
	}
	if r.length() != int64(restTime) {
		t.Errorf("a rest of %d ns, the longest is %v", r.length(), restTime)
	}
}

// TestReceiveMemory: what lies in a buffer is seen, and how large the buffer is.
func TestReceiveMemory(t *testing.T) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fds[0])
	defer unix.Close(fds[1])
	want, err := unix.GetsockoptInt(fds[0], unix.SOL_SOCKET, unix.SO_RCVBUF)
	if err != nil {
		t.Fatal(err)
	}
	if used, size, ok := receiveMemory(fds[0]); !ok || used != 0 || int(size) != want {
		t.Errorf("%d of %d bytes (%v), want none of %d", used, size, ok, want)
	}
	if _, _, ok := receiveMemory(-1); ok {
		t.Error("no socket has a buffer")
	}
}

// TestASmallWindowStaysOpen: what a receiver with a small buffer gets is not bounded by one
// buffer for each of the longest rests.
func TestASmallWindowStaysOpen(t *testing.T) {
	const (
		buffer = 64 << 10 // the kernel doubles it
		length = 300 * time.Millisecond
	)
	client, server := tcpPair(t, buffer)
	go func() {
		message := make([]byte, 64<<10)
		for {
			if _, err := unix.SendmsgN(client, message, nil, nil, unix.MSG_NOSIGNAL); err != nil {
				return // the test is over
			}
		}
	}()
	pauses := rests{fd: server, longest: int64(restLimit)}
	closedForm := int64(length/restLimit) * 2 * buffer
	buf := make([]byte, streamBuffer)
	for try := range 5 {
		var bytes int64
		for end := nanotime() + int64(length); nanotime() < end; {
			n, err := unix.Read(server, buf)
			if err != nil {
				t.Fatal(err)
			}
			bytes += int64(n)
			if n < streamRest {
				pauses.rest(nanotime())
			}
		}
		t.Logf("try %d: %d bytes, %.1f of one buffer for each of the longest rests", try, bytes, float64(bytes)/float64(closedForm))
		if bytes > 2*closedForm {
			return
		}
	}
	t.Error("the receiver's rests bound the stream")
}

// tcpPair is a connection over loopback, whose second end has asked for a receive buffer.
func tcpPair(t *testing.T, buffer int) (client, server int) {
	t.Helper()
	socket := func() int {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		return fd
	}
	listener := socket()
	defer unix.Close(listener)
	if err := unix.SetsockoptInt(listener, unix.SOL_SOCKET, unix.SO_RCVBUF, buffer); err != nil {
		t.Fatal(err)
	}
	if err := unix.Bind(listener, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := unix.Listen(listener, 1); err != nil {
		t.Fatal(err)
	}
	at, err := unix.Getsockname(listener)
	if err != nil {
		t.Fatal(err)
	}
	client = socket()
	t.Cleanup(func() { _ = unix.Close(client) })
	if err := unix.Connect(client, at); err != nil {
		t.Fatal(err)
	}
	if server, _, err = unix.Accept4(listener, unix.SOCK_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(server) })
	return client, server
}
