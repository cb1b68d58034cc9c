package dataplane

import (
	"fmt"
	"io"
	"os"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// AllowMulti is BPF_F_ALLOW_MULTI of linux/bpf.h: what the machine has attached
// above stays in force.
const AllowMulti = 2

// HoldEBPF keeps programs and maps until it is closed.
func HoldEBPF(coll *ebpf.Collection) io.Closer { return heldEBPF{coll} }

// heldEBPF closes file descriptors alone, which cannot fail.
type heldEBPF struct{ *ebpf.Collection }

func (h heldEBPF) Close() error {
	h.Collection.Close()
	return nil
}

// CgroupCounters reads the maps of counters of our programs of a type at a
// cgroup, all together.
func CgroupCounters(cgroup *os.File, attach ebpf.AttachType, name string, counters ...string) (map[string]uint64, error) {
	at, err := link.QueryPrograms(link.QueryOptions{Target: int(cgroup.Fd()), Attach: attach})
	if err != nil {
		return nil, fmt.Errorf("eBPF programs at %s: %w", cgroup.Name(), err)
	}
	var into map[string]uint64
	for _, p := range at.Programs {
		maps, err := mapsOf(p.ID)
		if err != nil {
			return nil, err
		}
		if maps == nil {
			continue
		}
		defer maps.Close()
		counts, err := maps.Need(name)
		if err != nil {
			return nil, err
		}
		if into == nil {
			into = map[string]uint64{}
		}
		if err := readCounters(counts, counters, into); err != nil {
			return nil, err
		}
	}
	if into == nil {
		return nil, fmt.Errorf("cgroup %s: %w", cgroup.Name(), ErrNoEBPF)
	}
	return into, nil
}
