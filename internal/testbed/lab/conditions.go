package lab

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/workload"
)

// algorithmSysctl is the congestion control of new sockets of a namespace.
const algorithmSysctl = "net/ipv4/tcp_congestion_control"

// restartSysctl has a connection begin anew after a pause, with a small window.
// Slices are pauses, so where congestion control is chosen it is noRestart.
const (
	restartSysctl = "net/ipv4/tcp_slow_start_after_idle"
	noRestart     = "0"
)

// useAlgorithm gives both ends' namespaces the cell's congestion control, for
// tools that have no flag for it. Where a cell leaves it to the system, they have
// what they were made with. A namespace takes what the machine allows to all users
// alone (net.ipv4.tcp_allowed_congestion_control): where it does not allow this one,
// that is a doubt about the sample.
func (l *Lab) useAlgorithm(c *cluster, cell result.Cell, ends ...site) (doubts []string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	restart := "" // as the namespace was made
	if cell.CongestionControl != "" {
		restart = noRestart
	}
	for _, s := range ends {
		if err := l.setFor(c.ns(s), restartSysctl, restart); err != nil {
			return nil, err
		}
	}
	if w, err := workload.Find(cell.Workload); err != nil || w.Spec().SetsCongestionControl {
		return nil, nil // the traffic sets it, or there is none
	}
	for _, s := range ends {
		err := l.setFor(c.ns(s), algorithmSysctl, cell.CongestionControl)
		if errors.Is(err, fs.ErrPermission) {
			return []string{fmt.Sprintf("congestion_control: %s cannot set %s itself, and this machine does not allow it in a namespace: add it to net.ipv4.tcp_allowed_congestion_control, or read this sample as one of the machine's own congestion control", cell.Workload, cell.CongestionControl)}, nil
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// changed is a setting of a namespace: at first, and now.
type changed struct{ first, now string }

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
			errs = append(errs, l.setFor(c.ns(s), algorithmSysctl, ""), l.setFor(c.ns(s), restartSysctl, ""))
		}
	}
	return errors.Join(errs...)
}
