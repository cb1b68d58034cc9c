//go:build linux

package agent

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

const readyPoll = 5 * time.Millisecond

// ready waits until a serving tool serves on port. It looks into /proc/net
// instead of connecting: a tool that serves one client (iperf3 -1) would take
// that connection for the sample's.
func (t *tool) ready(ctx context.Context, proc, how string, port uint16) error {
	if how == "" {
		return nil
	}
	if how != "tcp" && how != "udp" {
		return fmt.Errorf("unknown ready check %q (known: tcp, udp)", how)
	}
	if port == 0 {
		return fmt.Errorf("ready check %q: the program has no port", how)
	}
	deadline := time.After(readyWait)
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for {
		bound, err := bound(proc, how, port, t.process.PID())
		if bound || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-t.exited:
			if t.err != nil {
				return fmt.Errorf("it ended before it served: %w%s", t.err, t.said())
			}
			return fmt.Errorf("%s ended before it served%s", strings.Join(t.argv, " "), t.said())
		case <-deadline:
			return fmt.Errorf("%s does not serve on %s port %d after %v", strings.Join(t.argv, " "), how, port, readyWait)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// said is what a tool that ended early wrote to stdout, where many write
// their errors.
func (t *tool) said() string {
	if s := strings.TrimSpace(t.stdout.String()); s != "" {
		return fmt.Sprintf(": %.500s", s)
	}
	return ""
}

// bound reports whether a process listens on a port (tcp) or is bound to it
// (udp), after /proc/net/{tcp,udp}{,6} (proc_pid_net(5)). A port that somebody
// else took first does not count: the tool will say so itself.
func bound(proc, protocol string, port uint16, pid int) (bool, error) {
	for _, name := range []string{protocol, protocol + "6"} {
		sockets, err := boundIn(filepath.Join(proc, "self/net", name), protocol, port)
		if errors.Is(err, fs.ErrNotExist) && strings.HasSuffix(name, "6") {
			continue // a kernel without IPv6
		}
		if err != nil {
			return false, err
		}
		if len(sockets) > 0 && owns(proc, pid, sockets) {
			return true, nil
		}
	}
	return false, nil
}

// boundIn gives the inodes of the sockets at a port, as /proc names them.
func boundIn(path, protocol string, port uint16) ([]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var sockets []string
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		// sl local_address rem_address st tx_queue:rx_queue tr:when retrnsmt uid
		// timeout inode …: "0: 00000000:1451 00000000:0000 0A …"
		fields := strings.Fields(lines.Text())
		if len(fields) < 10 {
			continue
		}
		_, hex, ok := strings.Cut(fields[1], ":")
		if !ok {
			continue
		}
		local, err := strconv.ParseUint(hex, 16, 16)
		if err != nil || uint16(local) != port {
			continue
		}
		if protocol == "udp" || fields[3] == "0A" { // TCP_LISTEN
			sockets = append(sockets, "socket:["+fields[9]+"]")
		}
	}
	return sockets, lines.Err()
}

// owns reports whether a process has one of the sockets open. Where it cannot be
// looked at, as one of another user, it is taken to.
func owns(proc string, pid int, sockets []string) bool {
	dir := filepath.Join(proc, strconv.Itoa(pid), "fd")
	open, err := os.ReadDir(dir)
	if err != nil {
		return errors.Is(err, fs.ErrPermission)
	}
	for _, fd := range open {
		if target, err := os.Readlink(filepath.Join(dir, fd.Name())); err == nil && slices.Contains(sockets, target) {
			return true
		}
	}
	return false
}
