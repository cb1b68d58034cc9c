//go:build linux

package agent

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/traffic"
	"github.com/cnibench/cnibench/internal/workload"
)

// launchPoll is how often the output of a launcher is looked at until its job has begun.
const launchPoll = 20 * time.Millisecond

// placed chooses the CPUs of a tool.
func placed(p workload.Program) ([]int, error) {
	if len(p.LocalRanks) > 0 {
		return traffic.ChooseRankCPUs(p.Placement, p.LocalRanks)
	}
	return traffic.ChooseCPUs(p.Placement, p.Ready != "")
}

// mayOwnPIDs reports whether this agent can give a program a PID namespace.
func mayOwnPIDs() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var caps [2]unix.CapUserData
	if err := unix.Capget(&header, &caps[0]); err != nil {
		return false
	}
	return caps[0].Effective&(1<<unix.CAP_SYS_ADMIN) != 0
}

// commands waits until a launcher has printed all its launch commands, and returns them.
func (t *tool) commands(ctx context.Context, l workload.Launch) ([]string, error) {
	t.deadline = time.Now().Add(l.Within)
	late := time.After(l.Within)
	tick := time.NewTicker(launchPoll)
	defer tick.Stop()
	for over := false; ; {
		found := after(l.Prefix, t.stdout.String())
		switch {
		case len(found) >= l.Commands:
			return found, nil
		case over:
			return nil, fmt.Errorf("%s ended after %d of %d launch commands%s", t.argv[0], len(found), l.Commands, t.words())
		}
		select {
		case <-tick.C:
		case <-t.exited:
			over = true // what it printed last is read once more
		case <-late:
			return nil, fmt.Errorf("%s printed %d of %d launch commands within %v%s", t.argv[0], len(found), l.Commands, l.Within, t.words())
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// after gives what follows a prefix in each complete line that begins with it.
func after(prefix, text string) []string {
	var found []string
	for line := range strings.Lines(text) {
		if rest, is := strings.CutPrefix(line, prefix); is && strings.HasSuffix(rest, "\n") {
			found = append(found, strings.TrimSpace(rest))
		}
	}
	return found
}

// begins ends a launcher whose job has not begun in time.
func (t *tool) begins(l workload.Launch) {
	late := time.After(time.Until(t.deadline))
	tick := time.NewTicker(launchPoll)
	defer tick.Stop()
	for !strings.Contains(t.stdout.String(), l.Begun) && !strings.Contains(string(t.process.Stderr()), l.Begun) {
		select {
		case <-tick.C:
		case <-t.exited:
			return
		case <-late:
			t.hung.Store(true)
			t.kill()
			return
		}
	}
}

// words are the last lines that a launcher printed, in an error.
func (t *tool) words() string {
	out := workload.Output{Stdout: t.stdout.String(), Stderr: string(t.process.Stderr())}
	if said := workload.LastLines(out); said != "" {
		return ": " + said
	}
	return ""
}

// deviceBytes are the counters of a device at a tool's start.
type deviceBytes struct {
	proc, name     string
	sent, received uint64
}

// count reads the counters of the device that has an address, and adds {device} to what
// placeholders are filled with, and {rdma}, the ports of this place's RDMA devices as UCX
// names them, each behind a comma; "" counts nothing.
func (s *server) count(t *tool, address string, fill []string) ([]string, error) {
	if address == "" {
		return fill, nil
	}
	name, err := deviceWith(address)
	if err != nil {
		return fill, err
	}
	d := &deviceBytes{proc: s.roots.Proc, name: name}
	if d.sent, d.received, err = bytesOf(d.proc, name); err != nil {
		return fill, err
	}
	t.device = d
	return append(fill, "{device}", name, "{rdma}", rdmaPorts(s.roots.Sys)), nil
}

// mostRDMAPorts bounds how many ports are named.
const mostRDMAPorts = 16

// rdmaPorts are the ports of the RDMA devices (sysfs-class-infiniband), ",mlx5_0:1,mlx5_0:2";
// "" where there are none.
func rdmaPorts(sys string) string {
	ports, err := filepath.Glob(filepath.Join(sys, "class", "infiniband", "*", "ports", "*"))
	if err != nil {
		return ""
	}
	text := ""
	for _, p := range ports[:min(len(ports), mostRDMAPorts)] {
		device := filepath.Base(filepath.Dir(filepath.Dir(p)))
		text += "," + device + ":" + filepath.Base(p)
	}
	return text
}

// counted adds what the device has carried since the tool's start.
func (t *tool) counted(out *workload.Output) {
	d := t.device
	if d == nil {
		return
	}
	sent, received, err := bytesOf(d.proc, d.name)
	if err != nil {
		out.Doubts = append(out.Doubts, err.Error())
		return
	}
	out.Device = &workload.Device{Name: d.name, SentBytes: float64(sent - d.sent), ReceivedBytes: float64(received - d.received)}
}

// deviceWith is the name of the device of this place that has an address.
func deviceWith(address string) (string, error) {
	wanted, err := netip.ParseAddr(address)
	if err != nil {
		return "", fmt.Errorf("the measured address: %w", err)
	}
	devices, err := net.Interfaces()
	if err != nil {
		return "", fmt.Errorf("the devices of this place: %w", err)
	}
	for _, d := range devices {
		all, err := d.Addrs()
		if err != nil {
			continue // it has gone
		}
		for _, one := range all {
			if p, err := netip.ParsePrefix(one.String()); err == nil && p.Addr().Unmap() == wanted.Unmap() {
				return d.Name, nil
			}
		}
	}
	return "", fmt.Errorf("no device of this place has the address %s", wanted)
}

// bytesOf reads how much a device has sent and received (proc_pid_net(5)).
func bytesOf(proc, device string) (sent, received uint64, err error) {
	f, err := os.Open(filepath.Join(proc, "self/net/dev"))
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		name, counters, found := strings.Cut(lines.Text(), ":")
		fields := strings.Fields(counters)
		if !found || strings.TrimSpace(name) != device || len(fields) < 9 {
			continue
		}
		received, err = strconv.ParseUint(fields[0], 10, 64)
		if err == nil {
			sent, err = strconv.ParseUint(fields[8], 10, 64)
		}
		return sent, received, err
	}
	if err := lines.Err(); err != nil {
		return 0, 0, err
	}
	return 0, 0, fmt.Errorf("%s has no device %s", f.Name(), device)
}
