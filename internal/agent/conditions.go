//go:build linux

package agent

import (
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/traffic"
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
	if limit, ok := memoryLimit(s.roots.Proc, s.roots.Sys); ok {
		out[ConditionMemoryLimit] = strconv.FormatInt(limit, 10)
	}
	return out
}

// locate adds where an end's CPUs are to its conditions.
func (s *server) locate(conditions map[string]string, cpus []int) {
	cores, nodes := traffic.Located(s.roots.Sys, cpus)
	if len(cores) > 0 {
		conditions[ConditionCores] = strings.Join(cores, ",")
	}
	if len(nodes) > 0 {
		conditions[ConditionNUMANodes] = strings.Join(nodes, ",")
	}
}

// memoryLimit is the lowest memory limit of this process's cgroups, bytes (memory.max of
// cgroups(7) version 2, memory.limit_in_bytes of version 1); false where there is none.
func memoryLimit(proc, sys string) (lowest int64, ok bool) {
	text, err := os.ReadFile(filepath.Join(proc, "self/cgroup"))
	if err != nil {
		return 0, false
	}
	look := func(root, path, file string) {
		for dir := filepath.Clean("/" + path); ; dir = filepath.Dir(dir) {
			text, err := os.ReadFile(filepath.Join(sys, "fs/cgroup", root, dir, file))
			limit, errNumber := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
			// Version 1 has a number near the highest where there is no limit.
			if err == nil && errNumber == nil && limit < 1<<60 && (!ok || limit < lowest) {
				lowest, ok = limit, true
			}
			if dir == "/" {
				return
			}
		}
	}
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case len(parts) < 3:
		case parts[0] == "0" && parts[1] == "":
			look("", parts[2], "memory.max")
			look("unified", parts[2], "memory.max")
		case slices.Contains(strings.Split(parts[1], ","), "memory"):
			look("memory", parts[2], "memory.limit_in_bytes")
		}
	}
	return lowest, ok
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
