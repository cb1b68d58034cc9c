package probe

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/labtest/fuzzed"
	"github.com/cnibench/cnibench/internal/unit"
)

// sampleRecord is a sample as the kernel writes it.
func sampleRecord(pid uint32, period uint64, ips ...uint64) []byte {
	b := binary.NativeEndian.AppendUint32(nil, unix.PERF_RECORD_SAMPLE)
	b = binary.NativeEndian.AppendUint16(b, 1)
	b = binary.NativeEndian.AppendUint16(b, uint16(8+32+8*len(ips)))
	b = binary.NativeEndian.AppendUint64(b, 0)
	b = binary.NativeEndian.AppendUint32(b, pid)
	b = binary.NativeEndian.AppendUint32(b, pid+1)
	b = binary.NativeEndian.AppendUint64(b, period)
	b = binary.NativeEndian.AppendUint64(b, uint64(len(ips)))
	for _, ip := range ips {
		b = binary.NativeEndian.AppendUint64(b, ip)
	}
	return b
}

func lostRecord(n uint64) []byte {
	b := binary.NativeEndian.AppendUint32(nil, unix.PERF_RECORD_LOST)
	b = binary.NativeEndian.AppendUint16(b, 0)
	b = binary.NativeEndian.AppendUint16(b, 24)
	b = binary.NativeEndian.AppendUint64(b, 7)
	return binary.NativeEndian.AppendUint64(b, n)
}

func forkRecord(child, parent uint32) []byte {
	b := binary.NativeEndian.AppendUint32(nil, unix.PERF_RECORD_FORK)
	b = binary.NativeEndian.AppendUint16(b, 0)
	b = binary.NativeEndian.AppendUint16(b, 32)
	for _, id := range []uint32{child, parent, child, parent, 0, 0} { // processes, threads, time
		b = binary.NativeEndian.AppendUint32(b, id)
	}
	return b
}

// A task that began and ended inside the window is whose that started it was, in
// whatever the order in which the CPUs reported them.
func TestForksAreOwn(t *testing.T) {
	s := &Stacks{roots: Roots{Proc: "/proc"}, own: map[uint32]bool{7: true}, forks: map[uint32]uint32{}}
	for _, r := range [][]byte{forkRecord(12, 11), forkRecord(11, 7), forkRecord(13, 8), forkRecord(7, 7)} {
		child, parent, ok := parseFork(r)
		if !ok {
			t.Fatal("no fork")
		}
		if _, _, sample, err := parseRecord(r); sample || err != nil {
			t.Fatalf("a fork is a sample: %v", err)
		}
		s.forks[child] = parent
	}
	if _, _, ok := parseFork(sampleRecord(5, 100)); ok {
		t.Error("a sample is a fork")
	}
	s.learnOwn()
	if s.own != nil && (!s.own[11] || !s.own[12] || s.own[13]) {
		t.Errorf("own: %v", s.own)
	}
}

// Reading who belongs to the measurement takes long in a large lab: sampling
// begins with the window all the same.
func TestSamplingBeginsBeforeItLearns(t *testing.T) {
	labtest.Root(t)
	s := OpenStacks(Roots{Proc: "/proc", Sys: "/sys"})
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	s.roots.Proc = t.TempDir() // in which nothing can be learnt
	if err := s.Start(); err != nil {
		labtest.Feature(t, "sampling of kernel stacks", err)
	}
	if s.own == nil || !s.own[uint32(os.Getpid())] {
		t.Errorf("own was read anew: %v", s.own)
	}
}

const kernelMark = ^uint64(127) // PERF_CONTEXT_KERNEL, -128

// A record that goes over the end of the ring is read whole.
func TestRecords(t *testing.T) {
	stream := append(append(sampleRecord(5, 100, kernelMark, 0x10, 0x20), lostRecord(3)...), sampleRecord(6, 200)...)
	for start := uint64(0); start < 256; start += 8 {
		ring := make([]byte, 256)
		for i, b := range stream {
			ring[(start+uint64(i))%256] = b
		}
		var got []taken
		var lost uint64
		err := records(ring, start, start+uint64(len(stream)), func(r []byte) {
			s, n, ok, err := parseRecord(r)
			if err != nil {
				t.Fatal(err)
			}
			lost += n
			if ok {
				got = append(got, s)
			}
		})
		if err != nil || len(got) != 2 || lost != 3 || got[0].pid != 5 || got[0].weight != 100 || got[1].pid != 6 || len(got[1].stack) != 0 {
			t.Fatalf("from %d: %v, %d lost (%v)", start, got, lost, err)
		}
		if a := addresses(got[0].stack); len(a) != 2 || a[0] != 0x10 || a[1] != 0x20 {
			t.Fatalf("addresses: %x", a)
		}
	}
}

func FuzzRecords(f *testing.F) {
	f.Add(sampleRecord(5, 100, kernelMark, 0x10), uint16(0))
	f.Add(lostRecord(1), uint16(8))
	f.Add([]byte{9, 0, 0, 0, 0, 0, 0, 0}, uint16(0))
	f.Fuzz(func(t *testing.T, data []byte, from uint16) {
		defer fuzzed.Within(t)()
		if len(data) == 0 {
			return
		}
		_ = records(data, uint64(from), uint64(from)+uint64(len(data)), func(r []byte) {
			s, _, _, _ := parseRecord(r) // it must not fail in any other way than by an error
			addresses(s.stack)
		})
	})
}

// kallsyms is a /proc with these symbols and no processes.
func kallsyms(t *testing.T, text string) Roots {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "kallsyms"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return Roots{Proc: dir, Sys: "/sys"}
}

func TestSymbols(t *testing.T) {
	roots := kallsyms(t, `ffff000000001000 T ip_rcv
ffff000000001000 T __pfx_alias
ffff000000002000 t br_forward	[bridge]
ffff000000001800 D some_data
ffff000000003000 t bpf_prog_1234_cil_from_container	[bpf]
`)
	s := NewSymbols(roots)
	got, err := s.Resolve([]uint64{0xffff000000001000, 0xffff000000001fff, 0xffff000000002001, 0xffff000000003004, 0xfff, 0xffff000009000000})
	want := []string{"ip_rcv", "ip_rcv", "br_forward [bridge]", "bpf_prog_1234_cil_from_container", "", ""}
	if err != nil || strings.Join(got, ",") != strings.Join(want, ",") {
		t.Errorf("%q (%v)", got, err)
	}
	// A program that was loaded meanwhile is found.
	if err := os.WriteFile(filepath.Join(roots.Proc, "kallsyms"), []byte("ffff000009000000 t bpf_prog_5678_new [bpf]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Resolve([]uint64{0xffff000009000004}); err != nil || got[0] != "bpf_prog_5678_new" {
		t.Errorf("%q (%v)", got, err)
	}
}

// Agents open the probe for each sample. The kernel's table is read for the first, and again
// where other code is loaded or nobody can say whether it is: a new program's address would else
// have the name of the old one before it.
func TestSymbolsAreReadAgainForOtherCode(t *testing.T) {
	roots := withSymbols(kallsyms(t, "ffff000000001000 t bpf_prog_1\t[bpf]\n"))
	for i, step := range []struct {
		code  string
		known bool
		want  string
	}{{"1", true, "bpf_prog_1"}, {"1", true, "bpf_prog_1"}, {"1,2", true, "bpf_prog_3"}, {"1,2", false, "bpf_prog_4"}} {
		roots.Symbols.loaded = func() ([]string, bool) { return strings.Split(step.code, ","), step.known }
		s := OpenStacks(roots)
		got, err := roots.Symbols.Resolve([]uint64{0xffff000000001100})
		if err := errors.Join(err, s.Close()); err != nil {
			t.Fatal(err)
		}
		if got[0] != step.want {
			t.Errorf("step %d: %s, want %s", i, got[0], step.want)
		}
		next := fmt.Sprintf("ffff000000001000 t bpf_prog_1\t[bpf]\nffff000000001100 t bpf_prog_%d\t[bpf]\n", i+2)
		if err := os.WriteFile(filepath.Join(roots.Proc, "kallsyms"), []byte(next), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLoadedCode: a module that is at another address is other code.
func TestLoadedCode(t *testing.T) {
	roots := Roots{Proc: t.TempDir()}
	if err := os.WriteFile(filepath.Join(roots.Proc, "modules"), []byte("vxlan 155648 2 geneve, Live 0xffffffffc0a10000\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if code, _ := loadedCode(roots); len(code) == 0 || code[0] != "vxlan 0xffffffffc0a10000" {
		t.Errorf("%q", code)
	}
}

// Whatever is missing, there is a reason of this machine and no value.
func TestStacksAreAbsentForAReason(t *testing.T) {
	fine := "ffff000000001000 T ip_rcv\n"
	for name, tc := range map[string]struct {
		stacks func(t *testing.T) *Stacks
		want   string
	}{
		"hidden addresses": {func(t *testing.T) *Stacks {
			return OpenStacks(kallsyms(t, "0000000000000000 T ip_rcv\n"))
		}, "kernel.kptr_restrict=0"},
		"no kallsyms": {func(t *testing.T) *Stacks {
			return OpenStacks(Roots{Proc: t.TempDir(), Sys: "/sys"})
		}, "names of kernel functions"},
		"paranoid": {func(t *testing.T) *Stacks {
			return &Stacks{roots: withSymbols(kallsyms(t, fine)), err: absentf("kernel stacks: %w%s", unix.EACCES, cure(unix.EACCES))}
		}, "perf_event_paranoid"},
		"no list of CPUs": {func(t *testing.T) *Stacks {
			roots := kallsyms(t, fine)
			roots.Sys = t.TempDir()
			return OpenStacks(roots)
		}, "CPUs"},
	} {
		t.Run(name, func(t *testing.T) {
			s := tc.stacks(t)
			err := s.Start()
			missing, wrong := Reasons(err)
			if len(missing) == 0 || len(wrong) > 0 || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("missing %v, wrong %v, want %q", missing, wrong, tc.want)
			}
			if values, err := s.Stop(); len(values) > 0 || err == nil {
				t.Errorf("values without a start: %v (%v)", values, err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func withSymbols(r Roots) Roots {
	r.Symbols = NewSymbols(r)
	return r
}

// seen makes a Stacks that has taken samples already.
func seen(t *testing.T, samples map[key]uint64) *Stacks {
	t.Helper()
	roots := withSymbols(kallsyms(t, `ffff000000001000 T do_syscall_64
ffff000000002000 t br_forward
ffff000000003000 t handle_softirqs
ffff000000004000 t cpu_startup_entry
ffff000000005000 t default_idle
ffff000000006000 t mystery
ffff000000007000 t sysvec_apic_timer_interrupt
ffff000000008000 t kthread
`))
	s := &Stacks{roots: roots, seen: samples, own: map[uint32]bool{7: true}}
	for range samples {
		s.taken++
	}
	return s
}

func chain(ips ...uint64) string {
	var b []byte
	for _, ip := range append([]uint64{kernelMark}, ips...) {
		b = binary.NativeEndian.AppendUint64(b, 0xffff000000000000|ip)
	}
	return string(b)
}

func TestAttributeTimes(t *testing.T) {
	s := seen(t, map[key]uint64{
		{7, ""}:            1e9, // user space of an end
		{8, ""}:            2e9, // of another
		{7, chain(0x1004)}: 3e9, // a system call of an end
		{8, chain(0x1004)}: 4e9, // of another
		{8, chain(0x2004, 0x3004, 0x7004, 0x1004)}: 5e9, // a packet that interrupts another
		{8, chain(0x2004, 0x3004, 0x1004)}:         5e9, // a packet that another sends
		{8, chain(0x2004, 0x1004)}:                 2e9, // and before its softirq
		{7, chain(0x2004, 0x3004, 0x1004)}:         1e9, // one that an end sends
		{0, chain(0x2004, 0x3004, 0x4004)}:         6e9, // and an idle processor
		{0, chain(0x5004, 0x4004)}:                 7e9,
		{7, chain(0x6004)}:                         8e9,
		{8, chain(0x6004)}:                         9e9,
		{99, chain(0x2004, 0x8004)}:                1e9, // the network's work in a thread of the kernel
	})
	// Of 54 seconds of samples 7 are idle; the others share out 16.
	got, err := s.attribute(16)
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for name, want := range map[string]float64{
		"user": 1, "socket": 3, "bridge": 13, "other": 8, "elsewhere": 2 + 4 + 5 + 2 + 9, "netfilter": 0,
	} {
		v, ok := got[unit.ComponentSeconds(name)]
		if want *= 16.0 / 47; !ok || math.Abs(v-want) > 1e-9 {
			t.Errorf("%s: %v (%v), want %v", name, v, ok, want)
		}
	}
	for _, c := range unit.Components() {
		sum += got[unit.ComponentSeconds(c.Name)]
	}
	if math.Abs(sum-16) > 1e-9 {
		t.Errorf("components add up to %v of 16 s", sum)
	}
	if _, there := got[unit.ComponentSeconds("idle")]; there || !strings.Contains(s.Folded(), "do_syscall_64;sysvec_apic_timer_interrupt;handle_softirqs;br_forward 1702128\n") || strings.Contains(s.Folded(), "default_idle") {
		t.Errorf("folded:\n%s", s.Folded())
	}
	if got, err := s.attribute(0); err == nil {
		t.Errorf("no time was shared out as %v", got)
	}
}

// Where it is not known whose a task is, nothing is charged to elsewhere.
func TestAttributeWithoutOwners(t *testing.T) {
	s := seen(t, map[key]uint64{{8, chain(0x1004)}: 3e9, {0, chain(0x5004, 0x4004)}: 1e9})
	s.own = nil
	got, err := s.attribute(1)
	if err != nil {
		t.Fatal(err)
	}
	if v, there := got[unit.ComponentSeconds(unit.ElsewhereComponent)]; there || got[unit.ComponentSeconds("socket")] != 1 {
		t.Errorf("elsewhere %v, socket %v", v, got[unit.ComponentSeconds("socket")])
	}
	s = seen(t, map[key]uint64{{0, chain(0x5004, 0x4004)}: 1e9})
	if got, err := s.attribute(1); err == nil {
		t.Errorf("an idle machine's time was shared out as %v", got)
	}
}

// The kernel's own stacks: what the components add up to is the time of all
// CPUs, and a thread that only makes system calls is seen there.
func TestStacksOfTheKernel(t *testing.T) {
	labtest.Root(t)
	s := OpenStacks(Roots{Proc: "/proc", Sys: "/sys"})
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := s.Start(); err != nil {
		labtest.Feature(t, "sampling of kernel stacks", err)
	}
	begin := time.Now()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	self, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	var buf [64]byte
	for time.Since(begin) < time.Second {
		for range 100 {
			if err := unix.Sendto(fd, buf[:], 0, self); err != nil {
				t.Fatal(err)
			}
			if _, err := unix.Read(fd, buf[:]); err != nil {
				t.Fatal(err)
			}
		}
	}
	cpu := NewCPU(Roots{Proc: "/proc"})
	cpu.first = s.cpu.first
	got, err := s.Stop()
	if err != nil {
		t.Fatal(err)
	}
	after, err := cpu.Stop()
	if err != nil {
		t.Fatal(err)
	}
	var sum float64
	for _, c := range unit.Components() {
		sum += got[unit.ComponentSeconds(c.Name)]
	}
	// Between the two readings of /proc/stat are some milliseconds.
	if total := busySeconds(after); math.Abs(sum-total) > 0.02*total+0.05 {
		t.Errorf("components add up to %.3f s of %.3f s", sum, total)
	}
	if got[unit.ComponentSeconds("transport")] == 0 || got[unit.ComponentSeconds("socket")] == 0 || !strings.Contains(s.Folded(), "udp_sendmsg") {
		t.Errorf("a second of datagrams left no trace: %v", got)
	}
	for line := range strings.Lines(s.Folded()) {
		at := strings.LastIndexByte(line, ' ')
		if _, err := strconv.ParseInt(strings.TrimSpace(line[at+1:]), 10, 64); at <= 0 || err != nil {
			t.Fatalf("line %q", line)
		}
	}
	if _, err := s.Stop(); err == nil || errors.Is(err, ErrAbsent) {
		t.Errorf("a second stop: %v", err)
	}
}

// BenchmarkSymbols is what reading the kernel's table costs an end, once.
func BenchmarkSymbols(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if err := NewSymbols(Roots{Proc: "/proc"}).Load(); err != nil {
			b.Skip(err)
		}
	}
}

// BenchmarkResolve is what attributing a window's stacks costs, after it.
func BenchmarkResolve(b *testing.B) {
	roots := withSymbols(Roots{Proc: "/proc"})
	if err := roots.Symbols.Load(); err != nil {
		b.Skip(err)
	}
	some := make([]uint64, 35)
	for i := range some {
		some[i] = roots.Symbols.functions[i*len(roots.Symbols.functions)/len(some)].start + 4
	}
	for b.Loop() {
		if _, err := roots.Symbols.Resolve(some); err != nil {
			b.Fatal(err)
		}
	}
}
