package lab

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/traffic"
)

// algorithmSysctl is the congestion control of new sockets of a namespace.
const algorithmSysctl = "net/ipv4/tcp_congestion_control"

// restartSysctl has a connection begin again after a pause, with a small window.
// Slices are pauses, so where congestion control is chosen it is noRestart.
const (
	restartSysctl = "net/ipv4/tcp_slow_start_after_idle"
	noRestart     = "0"
)

// windowSysctl is the least, the first and the greatest receive buffer of a connection,
// bytes. The first decides more than it says: where it is kernelWindow, the kernel widens it
// only while the receiver keeps up, and a stream whose window closed too early stays at half
// its speed for as long as it lasts. On one CPU every second stream of iperf3 did.
const (
	windowSysctl = "net/ipv4/tcp_rmem"
	kernelWindow = "131072"
	wideWindow   = 8 << 20
)

// waitingSysctl is how many closed connections may be in TIME_WAIT at an end. A server closes
// first, and keeps each connection for a minute. Where addresses are translated on the way, as
// to a NodePort, a new connection may come with the port of one that is kept, and its SYN is
// refused (PAWS, RFC 7323) and comes again after a second. How many do depends on what was
// measured in the minute before: tcp_crr to a NodePort fell from 7,500 to 1,300 connections a
// second within three blocks. So nothing is kept. A lab loses no late segment to a new
// connection.
const (
	waitingSysctl = "net/ipv4/tcp_max_tw_buckets"
	noneWaits     = "0"
)

// algorithm is a congestion control that a node's cgroup gives to its programs.
type algorithm struct {
	name string
	held io.Closer
}

// algorithmFor is the congestion control that the lab gives to a cell's traffic, as that
// has no way to set it; "" where it sets it itself, or has none.
func (p *planner) algorithmFor(cell result.Cell) string {
	if p.setsAlgorithm != nil && p.setsAlgorithm(cell.Workload) {
		return ""
	}
	return cell.CongestionControl
}

// algorithmNeeded is the congestion control that a cell's programs must be given or allowed.
func (p *planner) algorithmNeeded(cell result.Cell) string {
	if n, err := p.find(cell.Network); err == nil && n.Unprivileged {
		return cell.CongestionControl
	}
	return p.algorithmFor(cell)
}

// bufferDoubts say that unprivileged programs have less room for datagrams than the lab's
// other programs, which are root's.
func bufferDoubts(n network.Network, cell result.Cell) ([]string, error) {
	if !n.Unprivileged || cell.Workload != traffic.UDPStream && cell.Workload != traffic.UDPRR {
		return nil, nil
	}
	text, err := os.ReadFile("/proc/sys/net/core/rmem_max") // the whole machine's
	if err != nil {
		return nil, fmt.Errorf("receive buffers: %w", err)
	}
	most, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return nil, fmt.Errorf("receive buffers: net.core.rmem_max: %w", err)
	}
	return smallerThan(traffic.DatagramBuffer, most, cell.Network), nil
}

// smallerThan says so of the receive buffers that a machine gives to programs without rights.
func smallerThan(wanted, most int, network string) []string {
	if most >= wanted {
		return nil
	}
	return []string{fmt.Sprintf("%s: its programs may ask for receive buffers of %d bytes, and those of the bare network have %d (receive_buffer_bytes): raise net.core.rmem_max, or expect more lost datagrams", network, most, wanted)}
}

// anyRestricted reports whether the machine allows one of the algorithms to its root alone.
func anyRestricted(algorithms []string) (bool, error) {
	for _, name := range algorithms {
		if ok, err := netns.AllowsCongestionControl(name); err != nil || !ok {
			return !ok, err
		}
	}
	return false, nil
}

// useAlgorithm gives both ends the cell's congestion control, for tools that have no flag
// for it: by their namespaces' setting, or where the machine does not allow that
// (net.ipv4.tcp_allowed_congestion_control) by their nodes' cgroups. Where neither can, that
// is a doubt about the sample. Where a cell leaves it to the system, the ends have what
// they were made with.
func (l *Lab) useAlgorithm(c *cluster, cell result.Cell, ends ...site) (doubts []string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	wanted := l.planner.algorithmFor(cell)
	if c.network.Published != nil { // whose connections end in their nodes, which have others
		for _, s := range ends {
			ends = append(ends, site{node: s.node})
		}
	}
	for _, s := range ends {
		if err := errors.Join(l.openTCP(c.ns(s), cell.CongestionControl != "", c.network.Published == nil), c.release(s.node, wanted)); err != nil {
			return nil, err
		}
	}
	for _, s := range ends {
		err := l.setFor(c.ns(s), algorithmSysctl, wanted)
		if errors.Is(err, fs.ErrPermission) {
			err = c.hold(s.node, wanted)
		}
		if unable := (*noAlgorithmError)(nil); errors.As(err, &unable) {
			return []string{fmt.Sprintf("congestion_control: %s cannot set %s itself, and this machine does not allow it in a namespace (%v): add it to net.ipv4.tcp_allowed_congestion_control, or read this sample as one of the machine's own congestion control", cell.Workload, cell.CongestionControl, unable.why)}, nil
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// openTCP has the connections of a namespace keep a wide window, after a pause too, and leave
// nothing behind; not chosen means as the namespace was made. What a profile chose is kept.
// Without wide, the first receive window is the kernel's own: pasta loses what a wide one lets a
// sender send at once. iperf3 had 7 to 580 Mbit/s through it, and has 600 to 1,200.
func (l *Lab) openTCP(ns netns.NS, chosen, wide bool) error {
	if !chosen {
		return errors.Join(l.setFor(ns, restartSysctl, ""), l.setFor(ns, windowSysctl, ""), l.setFor(ns, waitingSysctl, ""))
	}
	waiting := noneWaits
	kept, err := l.firstOf(ns, waitingSysctl)
	if err != nil {
		return err
	}
	machines, err := os.ReadFile("/proc/sys/" + waitingSysctl)
	if err != nil {
		return err
	}
	if strings.TrimSpace(kept) != strings.TrimSpace(string(machines)) {
		waiting = "" // somebody chose it
	}
	first, err := l.firstOf(ns, windowSysctl)
	if err != nil {
		return err
	}
	window := "" // as the namespace was made
	if f := strings.Fields(first); wide && len(f) == 3 && f[1] == kernelWindow {
		if most, err := strconv.Atoi(f[2]); err == nil {
			window = fmt.Sprintf("%s %d %s", f[0], min(wideWindow, most), f[2])
		}
	}
	return errors.Join(l.setFor(ns, restartSysctl, noRestart), l.setFor(ns, windowSysctl, window), l.setFor(ns, waitingSysctl, waiting))
}

// noAlgorithmError says why a cgroup cannot give its programs a congestion control.
type noAlgorithmError struct{ why error }

func (e *noAlgorithmError) Error() string { return "congestion control by a cgroup: " + e.why.Error() }

// release takes from a node's cgroup the congestion control that it has, if that is
// another one.
func (c *cluster) release(node int, wanted string) error {
	a, has := c.algorithms[node]
	if !has || a.name == wanted {
		return nil
	}
	delete(c.algorithms, node)
	return a.held.Close()
}

// hold gives the programs in a node's cgroup a congestion control.
func (c *cluster) hold(node int, name string) error {
	if _, has := c.algorithms[node]; has {
		return nil
	}
	dir := c.cgroup(node)
	if dir == nil {
		return &noAlgorithmError{errors.New("no cgroup2 is mounted")}
	}
	held, err := netns.UseCongestionControl(dir, name)
	if err != nil {
		return &noAlgorithmError{err}
	}
	if c.algorithms == nil {
		c.algorithms = map[int]algorithm{}
	}
	c.algorithms[node] = algorithm{name, held}
	return nil
}

// changed is a setting of a namespace: at first, and now.
type changed struct{ first, now string }

// firstOf is the setting that a namespace was made with.
func (l *Lab) firstOf(ns netns.NS, sysctl string) (string, error) {
	if a, known := l.changed[ns.Name+" "+sysctl]; known {
		return a.first, nil
	}
	return netns.Sysctl(ns, sysctl)
}

// setFor gives a namespace a setting; "" is what it was made with.
func (l *Lab) setFor(ns netns.NS, sysctl, wanted string) error {
	id := ns.Name + " " + sysctl
	a, known := l.changed[id]
	if !known {
		if wanted == "" {
			return nil
		}
		now, err := netns.Sysctl(ns, sysctl)
		if err != nil {
			return err
		}
		a = changed{now, now}
	}
	if wanted == "" {
		wanted = a.first
	}
	if a.now == wanted {
		return nil
	}
	if err := netns.SetSysctls(ns, netns.Setting{Path: sysctl, Value: wanted}); err != nil {
		return err
	}
	a.now = wanted
	l.changed[id] = a
	return nil
}

// unchanged gives all namespaces the settings that they were made with: settings are
// compared from the beginning of a campaign to its end.
func (l *Lab) unchanged() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	for _, c := range l.ordered {
		for _, s := range c.sites() {
			errs = append(errs, l.setFor(c.ns(s), algorithmSysctl, ""), l.openTCP(c.ns(s), false, false))
		}
	}
	return errors.Join(errs...)
}
