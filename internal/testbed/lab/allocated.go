package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// allocations sees addresses being reserved: host-local makes a file for each, by
// the address's name, in a folder of the network below the node's data folder.
type allocations struct {
	file *os.File
	done chan error
	at   map[string]time.Time // by file name
}

// watchAddresses begins to watch the existing folders.
func watchAddresses(dataDir string) (*allocations, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("watch addresses: %w", err)
	}
	a := &allocations{file: os.NewFile(uintptr(fd), "inotify"), done: make(chan error, 1), at: map[string]time.Time{}}
	folders, err := os.ReadDir(dataDir)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // none, and no address of host-local's
	}
	for _, f := range folders {
		if err == nil && f.IsDir() {
			_, err = unix.InotifyAddWatch(fd, filepath.Join(dataDir, f.Name()), unix.IN_CREATE)
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("watch addresses below %s: %w", dataDir, err), a.file.Close())
	}
	go func() { a.done <- a.read() }()
	return a, nil
}

func (a *allocations) read() error {
	buf := make([]byte, 1<<16)
	for {
		n, err := a.file.Read(buf)
		now := time.Now()
		if errors.Is(err, os.ErrClosed) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("watch addresses: %w", err)
		}
		for at := 0; at+unix.SizeofInotifyEvent <= n; { // inotify(7)
			event := (*unix.InotifyEvent)(unsafe.Pointer(&buf[at]))
			at += unix.SizeofInotifyEvent
			end := min(n, at+int(event.Len))
			if name := strings.TrimRight(string(buf[at:end]), "\x00"); a.at[name].IsZero() {
				a.at[name] = now
			}
			at = end
		}
	}
}

// stop ends the watching and gives when each file was made.
func (a *allocations) stop() (map[string]time.Time, error) {
	closeErr := a.file.Close()
	return a.at, errors.Join(<-a.done, closeErr)
}
