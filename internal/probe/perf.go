//go:build linux

package probe

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// perfPair is two counters of one CPU that the kernel counts together, as a
// group: both or neither.
type perfPair struct{ user, kernel int }

// openPair opens an event on a CPU for everything that runs there.
func openPair(h hardware, cpu int) (pair, error) {
	user, err := openPerf(h, cpu, -1, unix.PerfBitExcludeKernel|unix.PerfBitExcludeHv)
	if err != nil {
		return nil, err
	}
	kernel, err := openPerf(h, cpu, user, unix.PerfBitExcludeUser|unix.PerfBitExcludeHv)
	if err != nil {
		return nil, errors.Join(err, unix.Close(user))
	}
	return perfPair{user, kernel}, nil
}

// openPerf leaves out what virtual machines on this one run: they are no part
// of it.
func openPerf(h hardware, cpu, group int, bits uint64) (int, error) {
	attr := unix.PerfEventAttr{
		Type: h.kind, Config: h.config, Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
		Bits:        bits | unix.PerfBitExcludeGuest,
		Read_format: unix.PERF_FORMAT_GROUP | unix.PERF_FORMAT_TOTAL_TIME_ENABLED | unix.PERF_FORMAT_TOTAL_TIME_RUNNING,
	}
	fd, err := unix.PerfEventOpen(&attr, -1, cpu, group, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("perf_event_open: %w", err)
	}
	return fd, nil
}

// Read reads both in one system call: the number of counters, the two times,
// the values (perf_event_open(2), "Reading results").
func (p perfPair) Read() (reading, error) {
	var buf [5 * 8]byte
	n, err := unix.Read(p.user, buf[:])
	if err != nil {
		return reading{}, fmt.Errorf("read the counter: %w", err)
	}
	at := func(i int) uint64 { return binary.NativeEndian.Uint64(buf[8*i:]) }
	if n != len(buf) || at(0) != 2 {
		return reading{}, fmt.Errorf("read the counter: %d bytes with %d values instead of 2", n, at(0))
	}
	return reading{enabled: at(1), running: at(2), user: at(3), kernel: at(4)}, nil
}

// Close ends both.
func (p perfPair) Close() error { return errors.Join(unix.Close(p.kernel), unix.Close(p.user)) }
