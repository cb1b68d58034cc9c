//go:build linux

package probe

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ringPages is the size of a CPU's ring buffer: room for some 800 samples of 35
// functions, three times what comes between two drains.
const ringPages = 64

// ring is the sampling event of one CPU and the buffer that it fills
// (perf_event_open(2), "MMAP layout").
type ring struct {
	fd   int
	mem  []byte
	data []byte
}

// The fields of the buffer's first page (struct perf_event_mmap_page).
const (
	dataHeadOffset = 1024
	dataTailOffset = 1032
)

// sampling is an event that samples are taken of.
type sampling struct {
	kind   uint32
	config uint64
}

// openRing opens an event that samples the kernel's part of the stack of
// whatever runs on the CPU, frequency times a second, and records who starts whom.
// It is off until start.
func openRing(e sampling, cpu int, frequency uint64) (*ring, error) {
	attr := unix.PerfEventAttr{
		Type: e.kind, Config: e.config, Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{})), Sample: frequency,
		Sample_type: unix.PERF_SAMPLE_IP | unix.PERF_SAMPLE_TID | unix.PERF_SAMPLE_PERIOD | unix.PERF_SAMPLE_CALLCHAIN,
		Bits:        unix.PerfBitDisabled | unix.PerfBitFreq | unix.PerfBitTask | unix.PerfBitExcludeCallchainUser | unix.PerfBitExcludeGuest | unix.PerfBitExcludeHv,
	}
	fd, err := unix.PerfEventOpen(&attr, -1, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("perf_event_open: %w", err)
	}
	page := os.Getpagesize()
	mem, err := unix.Mmap(fd, 0, (1+ringPages)*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("mmap of %d pages: %w", 1+ringPages, err), unix.Close(fd))
	}
	return &ring{fd: fd, mem: mem, data: mem[page:]}, nil
}

func (r *ring) start() error { return unix.IoctlSetInt(r.fd, unix.PERF_EVENT_IOC_ENABLE, 0) }
func (r *ring) stop() error  { return unix.IoctlSetInt(r.fd, unix.PERF_EVENT_IOC_DISABLE, 0) }

func (r *ring) close() error { return errors.Join(unix.Munmap(r.mem), unix.Close(r.fd)) }

// drain hands the records that came since the last drain to f, and gives their
// room back to the kernel.
func (r *ring) drain(f func(record []byte)) error {
	head := (*uint64)(unsafe.Pointer(&r.mem[dataHeadOffset]))
	tail := (*uint64)(unsafe.Pointer(&r.mem[dataTailOffset]))
	from, to := *tail, atomic.LoadUint64(head)
	err := records(r.data, from, to, f)
	atomic.StoreUint64(tail, to)
	return err
}

// records cuts what lies between two positions of a ring into records.
func records(data []byte, from, to uint64, f func([]byte)) error {
	size := uint64(len(data))
	if to-from > size {
		return fmt.Errorf("the ring buffer holds %d bytes of %d", to-from, size)
	}
	linear := make([]byte, 0, to-from)
	if begin, end := from%size, to%size; from != to && begin >= end {
		linear = append(append(linear, data[begin:]...), data[:end]...)
	} else {
		linear = append(linear, data[begin:end]...)
	}
	for len(linear) > 0 {
		if len(linear) < 8 {
			return errTorn
		}
		n := int(binary.NativeEndian.Uint16(linear[6:]))
		if n < 8 || n > len(linear) {
			return errTorn
		}
		f(linear[:n])
		linear = linear[n:]
	}
	return nil
}

var errTorn = errors.New("the ring buffer ends inside a record")

// taken is one sample: its task, what it stands for (nanoseconds of the clock,
// or cycles) and the addresses of the kernel's functions, the innermost first;
// none in user space.
type taken struct {
	pid    uint32
	weight uint64
	stack  []byte // addresses of eight bytes, as the kernel wrote them
}

// parseFork reads who started whom, if a record reports that. Of a thread both are
// its process.
func parseFork(record []byte) (child, parent uint32, ok bool) {
	if binary.NativeEndian.Uint32(record) != unix.PERF_RECORD_FORK || len(record) < 16 { // header, pid, ppid, …
		return 0, 0, false
	}
	return binary.NativeEndian.Uint32(record[8:]), binary.NativeEndian.Uint32(record[12:]), true
}

// parseRecord reads a record: a sample, or how many samples were lost. Other
// records are neither.
func parseRecord(record []byte) (s taken, lost uint64, ok bool, err error) {
	body := record[8:]
	switch binary.NativeEndian.Uint32(record) {
	case unix.PERF_RECORD_LOST: // id, lost
		if len(body) < 16 {
			return s, 0, false, errTorn
		}
		return s, binary.NativeEndian.Uint64(body[8:]), false, nil
	case unix.PERF_RECORD_SAMPLE: // ip, pid and tid, period, nr, ips[nr]
		if len(body) < 32 {
			return s, 0, false, errTorn
		}
		n := binary.NativeEndian.Uint64(body[24:])
		if n > uint64(len(body)-32)/8 {
			return s, 0, false, errTorn
		}
		s = taken{pid: binary.NativeEndian.Uint32(body[8:]), weight: binary.NativeEndian.Uint64(body[16:]), stack: body[32 : 32+8*n]}
		return s, 0, true, nil
	}
	return s, 0, false, nil
}

// addresses are those of a stack, without the marks that separate the kernel's part
// from others (enum perf_callchain_context).
func addresses(stack []byte) []uint64 {
	const firstMark = ^uint64(0) - 4095
	var out []uint64
	for ; len(stack) >= 8; stack = stack[8:] {
		if a := binary.NativeEndian.Uint64(stack); a < firstMark {
			out = append(out, a)
		}
	}
	return out
}
