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

// useAlgorithm gives both ends' namespaces the cell's congestion control, for
// tools that have no flag for it. Where a cell leaves it to the system, they have
// what they were made with. A namespace takes what the machine allows to all users
// alone (net.ipv4.tcp_allowed_congestion_control): where it does not allow this one,
// that is a doubt about the sample.
func (l *Lab) useAlgorithm(c *cluster, cell result.Cell, ends ...site) (doubts []string, err error) {
	if w, err := workload.Find(cell.Workload); err != nil || w.Spec().SetsCongestionControl {
		return nil, nil // the traffic sets it, or there is none
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range ends {
		err := l.setAlgorithm(c.ns(s), cell.CongestionControl)
		if errors.Is(err, fs.ErrPermission) {
			return []string{fmt.Sprintf("congestion_control: %s cannot set %s itself, and this machine does not allow it in a namespace: add it to net.ipv4.tcp_allowed_congestion_control, or read this sample as one of the machine's own congestion control", cell.Workload, cell.CongestionControl)}, nil
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// algorithm is the congestion control of a namespace: at first, and now.
type algorithm struct{ first, now string }

func (l *Lab) setAlgorithm(ns netns.NS, wanted string) error {
	a, known := l.algorithms[ns.Name]
	if !known {
		if wanted == "" {
			return nil
		}
		now, err := netns.Sysctl(ns, algorithmSysctl)
		if err != nil {
			return err
		}
		a = algorithm{now, now}
	}
	if wanted == "" {
		wanted = a.first
	}
	if a.now == wanted {
		return nil
	}
	if err := netns.SetSysctls(ns, netns.Setting{Path: algorithmSysctl, Value: wanted}); err != nil {
		return err
	}
	a.now = wanted
	l.algorithms[ns.Name] = a
	return nil
}

// firstAlgorithms gives all namespaces the congestion control that they were made
// with: settings are compared from the begin of a campaign to its end.
func (l *Lab) firstAlgorithms() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	for _, c := range l.ordered {
		for _, s := range c.sites() {
			errs = append(errs, l.setAlgorithm(c.ns(s), ""))
		}
	}
	return errors.Join(errs...)
}
