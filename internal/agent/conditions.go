//go:build linux

package agent

import (
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/cnibench/cnibench/internal/netns"
)

// tcpConditions are the settings of TCP that decide what a stream does after a
// pause, and how much may be under way.
func tcpConditions() []string {
	return []string{"net.ipv4.tcp_slow_start_after_idle", "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"}
}

// conditions are those in force at this place. peer is where the end sends to; a
// server does not know it, and has the device that it must use where there is but
// one. What cannot be read is absent.
func (s *server) conditions(peer netip.Addr) map[string]string {
	out := map[string]string{}
	for _, name := range tcpConditions() {
		raw, err := os.ReadFile(filepath.Join(s.roots.Proc, "sys", strings.ReplaceAll(name, ".", "/")))
		if err == nil {
			out[name] = strings.Join(strings.Fields(string(raw)), " ")
		}
	}
	if qdisc, err := netns.Qdisc(peer, onlyDevice()); err == nil && qdisc != "" {
		out[ConditionQdisc] = qdisc
	}
	return out
}

// onlyDevice is the name of the one device that is up, except loopback; "" where
// there are more, or none.
func onlyDevice() string {
	devices, err := net.Interfaces()
	if err != nil {
		return ""
	}
	only := ""
	for _, d := range devices {
		if d.Flags&net.FlagLoopback != 0 || d.Flags&net.FlagUp == 0 {
			continue
		}
		if only != "" {
			return ""
		}
		only = d.Name
	}
	return only
}
