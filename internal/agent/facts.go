//go:build linux

package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/probe"
)

// sysctls lists the settings that change what a network costs. One that this
// kernel or namespace does not have is left out of the facts.
func sysctls() []string {
	return []string{
		"net.core.rmem_max", "net.core.rmem_default", "net.core.wmem_max", "net.core.wmem_default", "net.core.optmem_max",
		"net.core.netdev_budget", "net.core.netdev_budget_usecs", "net.core.netdev_max_backlog", "net.core.dev_weight",
		"net.core.busy_poll", "net.core.busy_read", "net.core.somaxconn", "net.core.default_qdisc",
		"net.core.rps_sock_flow_entries", "net.core.bpf_jit_enable", "net.core.gro_normal_batch",
		"net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem", "net.ipv4.tcp_mem", "net.ipv4.udp_mem", "net.ipv4.udp_rmem_min", "net.ipv4.udp_wmem_min",
		"net.ipv4.tcp_congestion_control", "net.ipv4.tcp_sack", "net.ipv4.tcp_timestamps", "net.ipv4.tcp_window_scaling",
		"net.ipv4.tcp_mtu_probing", "net.ipv4.tcp_ecn", "net.ipv4.tcp_fastopen", "net.ipv4.tcp_low_latency",
		"net.ipv4.tcp_slow_start_after_idle", "net.ipv4.tcp_limit_output_bytes", "net.ipv4.tcp_notsent_lowat", "net.ipv4.tcp_moderate_rcvbuf",
		"net.ipv4.tcp_autocorking", "net.ipv4.tcp_max_syn_backlog", "net.ipv4.tcp_no_metrics_save", "net.ipv4.tcp_tw_reuse", "net.ipv4.tcp_max_tw_buckets", "net.ipv4.ip_local_port_range",
		"net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding", "net.ipv4.conf.all.rp_filter", "net.ipv4.ip_early_demux", "net.ipv4.udp_early_demux", "net.ipv4.tcp_early_demux",
		"net.bridge.bridge-nf-call-iptables", "net.bridge.bridge-nf-call-ip6tables",
		"net.netfilter.nf_conntrack_max", "net.netfilter.nf_conntrack_buckets",
		"kernel.sched_autogroup_enabled", "kernel.numa_balancing", "kernel.timer_migration", "vm.swappiness",
	}
}

// facts describes this place.
func facts(roots probe.Roots) (Facts, error) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return Facts{}, fmt.Errorf("uname: %w", err)
	}
	f := Facts{Kernel: unix.ByteSliceToString(u.Release[:]), Hostname: unix.ByteSliceToString(u.Nodename[:]), MTUs: map[string]int{}, Offloads: map[string]string{}, Addresses: map[string]string{}, Drivers: map[string]string{}}
	devices, err := net.Interfaces()
	if err != nil {
		return Facts{}, fmt.Errorf("list devices: %w", err)
	}
	for _, d := range devices {
		device := alike(d.Name)
		if mtu, twice := f.MTUs[device]; twice && mtu != d.MTU {
			device = fmt.Sprintf("%s of MTU %d", device, d.MTU)
		}
		f.MTUs[device] = d.MTU
		if err := addresses(d, device, f.Addresses); err != nil {
			return Facts{}, err
		}
		if name, err := driver(d.Name); err == nil { // a device without one has none to report
			f.Drivers[device] = name
		}
		features, err := offloads(d.Name)
		if err != nil {
			continue // a device without ethtool features has none to report
		}
		for name, state := range features {
			key := device + " " + name
			if other, twice := f.Offloads[key]; twice && other != state {
				state = "mixed"
			}
			f.Offloads[key] = state
		}
	}
	f.Sysctls, err = readSysctls(roots.Proc)
	if err != nil {
		return f, err
	}
	f.Routes, err = routes(filepath.Join(roots.Proc, "self/net/route"))
	return f, err
}

// addresses notes those of a device; one that has just gone has none.
func addresses(d net.Interface, name string, of map[string]string) error {
	all, err := d.Addrs()
	if err != nil {
		if _, gone := net.InterfaceByIndex(d.Index); gone != nil {
			return nil
		}
		return fmt.Errorf("addresses of %s: %w", d.Name, err)
	}
	for _, a := range all {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			of[p.Addr().String()] = name
		}
	}
	return nil
}

// alike gives the host ends of pods, whose names are drawn at random, one name:
// two places would otherwise never be alike.
func alike(device string) string {
	for _, prefix := range []string{"veth", "cali", "lxc"} {
		if rest, ok := strings.CutPrefix(device, prefix); ok && len(rest) >= 6 && strings.Trim(rest, "0123456789abcdef") == "" {
			return prefix + "*"
		}
	}
	return device
}

func readSysctls(proc string) (map[string]string, error) {
	values := map[string]string{}
	var errs error
	for _, name := range sysctls() {
		raw, err := os.ReadFile(filepath.Join(proc, "sys", strings.ReplaceAll(name, ".", "/")))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			continue
		}
		if err != nil {
			errs = errors.Join(errs, fmt.Errorf("sysctl %s: %w", name, err))
			continue
		}
		values[name] = strings.Join(strings.Fields(string(raw)), " ")
	}
	return values, errs
}
