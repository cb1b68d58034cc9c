package lab

import (
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/catalog"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/traffic"
)

// netkitNetworks are those whose pods have a netkit.
func netkitNetworks() []string { return []string{"cilium/native+netkit", "cilium/vxlan+netkit"} }

// TestNetkit: pods have a netkit in mode L3 with its program, which samples verify; a sample on
// a pod without the program fails, and nothing carries what that pod sends.
func TestNetkit(t *testing.T) {
	needLab(t)
	for _, name := range netkitNetworks() {
		t.Run(name, func(t *testing.T) {
			n := findNetwork(t, name)
			for _, need := range n.Needs {
				labtest.Feature(t, name, need.Probe())
			}
			l := New(options(newRunner(t), stateDir(t)))
			all := cells(name)
			buildLab(t, l, all)
			c := l.clusters[keyOf(all[0])]
			for _, cell := range all {
				if cell.Placement == result.InterHost { // agents take their time in a virtual machine
					cell.Workload, cell.MessageBytes = traffic.TCPStream, 1<<16
				}
				from, to, err := sites(cell, false)
				if err != nil {
					t.Fatal(err)
				}
				verify := l.WatchPath(t.Context(), cell)
				if cell.Workload == traffic.TCPStream {
					transmit(t, l, cell, cell.Workload)
				} else {
					exchange(t, c.ns(from), echo(t, c.ns(to), c.address(to)), 20)
				}
				if err := verify(t.Context()); err != nil {
					t.Errorf("%s: %v", cell.Placement, err)
				}
			}
			withoutProgram(t, c, l, all[0])
		})
	}
}

// withoutProgram takes the program away from the client's pod.
func withoutProgram(t *testing.T, c *cluster, l *Lab, cell result.Cell) {
	t.Helper()
	from, to, err := sites(cell, false)
	if err != nil {
		t.Fatal(err)
	}
	verify := l.WatchPath(t.Context(), cell)
	h, dev, err := netns.Port{NS: c.ns(from), Device: device}.Open()
	if err != nil {
		t.Fatal(err)
	}
	h.Close()
	err = netns.Do(c.nodes[from.node-1].NS, func() error { return detachNetkit(dev.Attrs().ParentIndex) })
	if err != nil {
		t.Fatal(err)
	}
	if err := verify(t.Context()); err == nil || !strings.Contains(err.Error(), "not netkit: netkit lxc") {
		t.Errorf("without its program: %v", err)
	}
	if err := ask(c.ns(from), echo(t, c.ns(to), c.address(to)), 100); err == nil {
		t.Error("a pod without its program reaches another one")
	}
}

// detachNetkit detaches the program from what the pod's side of a netkit sends.
func detachNetkit(primary int) error {
	at, err := link.QueryPrograms(link.QueryOptions{Target: primary, Attach: ebpf.AttachNetkitPeer})
	if err != nil {
		return err
	}
	for _, one := range at.Programs {
		p, err := ebpf.NewProgramFromID(one.ID)
		if err != nil {
			return err
		}
		defer p.Close()
		if err := link.RawDetachProgram(link.RawDetachProgramOptions{Target: primary, Program: p, Attach: ebpf.AttachNetkitPeer}); err != nil {
			return err
		}
	}
	return nil
}

// TestOtherDevicesAreNoNetkit: where pods have veths, a network with netkit says so, before and
// after a sample. The kernel need not have netkit for that.
func TestOtherDevicesAreNoNetkit(t *testing.T) {
	needLab(t)
	const below = "cilium/native"
	l := New(options(newRunner(t), stateDir(t)))
	cell := cells(below)[0]
	buildLab(t, l, []result.Cell{cell})
	c := l.clusters[keyOf(cell)]
	for _, name := range netkitNetworks() {
		c.network.Attached = findNetwork(t, name).Attached
		if err := l.WatchPath(t.Context(), cell)(t.Context()); err == nil || !strings.Contains(err.Error(), "is a device of kind veth") {
			t.Errorf("%s: %v", name, err)
		}
	}
	gone := []network.Pod{{ID: "cnb-not-there", Node: 1}}
	if err := c.network.Attached(c.nodes[0], gone); err == nil {
		t.Error("a pod that does not exist has a netkit")
	}
	if err := c.network.Attached(c.nodes[1], gone); err != nil {
		t.Errorf("a pod of another node: %v", err)
	}
}

// TestWatchPathWantsDevices: only networks that claim a kind of device verify it.
func TestWatchPathWantsDevices(t *testing.T) {
	for _, n := range catalog.List() {
		if want := strings.HasSuffix(n.Name, "+netkit"); want != (n.Attached != nil) {
			t.Errorf("%s verifies its pods' devices: %v", n.Name, !want)
		}
	}
}

func findNetwork(t *testing.T, name string) network.Network {
	t.Helper()
	n, err := catalog.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
