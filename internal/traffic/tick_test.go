package traffic

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A call that would never end is ended again and again, until stop; then there
// is no timer left that would end another's.
func TestTickEndsBlockingCalls(t *testing.T) {
	// The last call is ended by a byte alone. A garbage collection would wait for the call, and
	// the byte's sender for the collection. Agents collect none in a measured window either.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = closeFDs(pair[:]) }()
	type ended struct {
		errno unix.Errno
		after time.Duration
	}
	calls := make(chan ended, 3)
	stopped, failed := make(chan struct{}, 1), make(chan error, 1)
	go func() {
		<-stopped
		time.Sleep(3 * pollInterval)
		if _, err := unix.Write(pair[1], []byte{1}); err != nil {
			failed <- err
		}
	}()
	go func() {
		runtime.LockOSThread() // and the thread ends with the goroutine
		stop, err := tick()
		if err != nil {
			failed <- err
			return
		}
		var b byte
		for range 2 {
			began := nanotime()
			_, errno := recv(pair[0], unsafe.Pointer(&b), 1, 0)
			calls <- ended{errno, time.Duration(nanotime() - began)}
		}
		if err := stop(); err != nil {
			failed <- err
			return
		}
		stopped <- struct{}{} // a byte will come
		began := nanotime()
		_, errno := recv(pair[0], unsafe.Pointer(&b), 1, 0)
		calls <- ended{errno, time.Duration(nanotime() - began)}
	}()
	for i, want := range []unix.Errno{unix.EINTR, unix.EINTR, 0} {
		select {
		case got := <-calls:
			if got.errno != want {
				t.Errorf("call %d ended with %v after %v, want %v", i+1, got.errno, got.after, want)
			}
		case err := <-failed:
			t.Fatal(err)
		case <-time.After(20 * time.Second):
			t.Fatalf("call %d was never ended", i+1)
		}
	}
}
