package inspect

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network/dataplane"
)

// EBPFMapBytes is the memory of the maps of the programs at a node's devices, as
// the kernel reports it (memlock of their fdinfo), each map once; 0 where no program
// is there. A map whose size the kernel does not report is an error.
func EBPFMapBytes(node netns.NS) (uint64, error) {
	_, ids, err := dataplane.EBPFObjects(node)
	if err != nil {
		return 0, err
	}
	seen := map[ebpf.MapID]bool{}
	var bytes uint64
	for _, id := range ids {
		if seen[id] {
			continue
		}
		seen[id] = true
		n, err := ebpfMapBytes(id)
		if err != nil {
			return 0, fmt.Errorf("eBPF maps of %s: %w", node.Name, err)
		}
		bytes += n
	}
	return bytes, nil
}

// ebpfMapBytes reads the line memlock of a map's fdinfo (proc_pid_fdinfo(5)). The
// library's Info cannot distinguish an empty one from one without the line.
func ebpfMapBytes(id ebpf.MapID) (bytes uint64, err error) {
	m, err := ebpf.NewMapFromID(id)
	if err != nil {
		return 0, err
	}
	raw, err := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", m.FD()))
	if err := errors.Join(err, m.Close()); err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(raw)) {
		if value, ok := strings.CutPrefix(line, "memlock:"); ok {
			return strconv.ParseUint(strings.TrimSpace(value), 10, 64)
		}
	}
	return 0, fmt.Errorf("map %d: the kernel does not report its size", id)
}

// IPSetBytes is the memory of a node's sets of addresses with their members, as
// the kernel reports it; 0 where there is none.
func IPSetBytes(node netns.NS) (uint64, error) {
	var sets []netlink.IPSetResult
	err := netns.Do(node, func() error {
		h, err := netlink.NewHandle(unix.NETLINK_NETFILTER)
		if err != nil {
			return err
		}
		defer h.Close()
		sets, err = netns.Dump(h.IpsetListAll)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("sets of addresses of %s: %w", node.Name, err)
	}
	var bytes uint64
	for _, s := range sets {
		bytes += uint64(s.SizeInMemory)
	}
	return bytes, nil
}
