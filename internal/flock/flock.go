// Package flock locks files and folders, in places too where other users may write: nothing
// in it follows a symbolic link, waits for a FIFO or waits without a bound.
package flock

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

var (
	// ErrHeld means that another open file has the lock.
	ErrHeld = errors.New("is locked")
	// ErrForeign means that what has the name is no folder, or another user's.
	ErrForeign = errors.New("is no folder of this user")
)

// every is how often a lock that another has is tried again.
const every = 10 * time.Millisecond

// Open opens a folder that belongs to this user, or to root. ErrForeign: it is
// something else, whose lock or contents mean nothing.
func Open(path string) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	switch {
	case errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP):
		return nil, fmt.Errorf("%s %w", path, ErrForeign)
	case err != nil:
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	f := os.NewFile(uintptr(fd), path)
	info, err := f.Stat()
	if err == nil {
		if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Getuid() && st.Uid != 0 {
			err = fmt.Errorf("%s %w: it belongs to user %d", path, ErrForeign, st.Uid)
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Lock opens and locks a folder, and waits up to wait for another that has the
// lock; then the error is an ErrHeld that names the holder. fs.ErrNotExist: the
// folder does not exist, or went before it was locked.
func Lock(path string, wait time.Duration) (*os.File, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	if err = Take(f, wait); err == nil {
		var mine, now os.FileInfo
		if mine, err = f.Stat(); err == nil {
			if now, err = os.Lstat(path); err == nil && !os.SameFile(mine, now) {
				err = fs.ErrNotExist
			}
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Take locks an open file or folder for as long as it is open, and waits up to wait for
// another that has the lock; then the error is an ErrHeld that names the holder.
func Take(f *os.File, wait time.Duration) error {
	for begin := time.Now(); ; time.Sleep(every) {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		held := errors.Is(err, unix.EWOULDBLOCK)
		switch {
		case err == nil:
			return nil
		case held && time.Since(begin) >= wait:
			return fmt.Errorf("%s %w by %s", f.Name(), ErrHeld, Holder(f))
		case !held && !errors.Is(err, unix.EINTR):
			return &fs.PathError{Op: "flock", Path: f.Name(), Err: err}
		}
	}
}

// Holder names the process that has locked a file, "process 12 (redis-server)", or
// says that it is unknown, as in another PID namespace.
func Holder(f *os.File) string {
	const unknown = "an unknown process"
	info, err := f.Stat()
	if err != nil {
		return unknown
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	locks, err := os.ReadFile("/proc/locks")
	if !ok || err != nil {
		return unknown
	}
	inode := strconv.FormatUint(st.Ino, 10)
	for line := range strings.Lines(string(locks)) {
		// 1: FLOCK ADVISORY WRITE 1234 00:19:5678 0 EOF
		word := strings.Fields(line)
		if len(word) < 6 || word[1] != "FLOCK" || word[5][strings.LastIndexByte(word[5], ':')+1:] != inode || word[4] == "0" {
			continue
		}
		name, err := os.ReadFile(filepath.Join("/proc", word[4], "comm"))
		if err != nil {
			return "process " + word[4]
		}
		return fmt.Sprintf("process %s (%s)", word[4], strings.TrimSpace(string(name)))
	}
	return unknown
}
