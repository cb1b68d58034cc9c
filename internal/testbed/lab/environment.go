package lab

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/cni"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/result"
)

// Environment describes the machine, the networks and every place of the lab.
// It starts agents where there are none yet.
func (l *Lab) Environment(ctx context.Context) (result.Environment, error) {
	if err := l.asMeasured(ctx); err != nil {
		return result.Environment{}, err
	}
	env := result.Environment{
		Schema: result.Schema, Testbed: "lab", Host: readHost("/proc", "/etc/os-release"),
		Tools: map[string]string{}, Places: map[string]result.PlaceFacts{}, Networks: map[string]result.NetworkFacts{},
		ServiceProxies: map[string]result.NetworkFacts{},
	}
	if l.options.Machine != nil {
		env.Profiles = l.options.Machine.Made()
	}
	var errs []error
	plugins := map[string]bool{}
	for _, c := range l.ordered {
		facts, err := l.facts(ctx, c.network)
		errs = append(errs, err)
		env.Networks[c.spec.Network] = facts
		if c.proxy.Name != "" {
			of := result.NetworkFacts{Model: c.proxy.Model, LeavesOut: c.proxy.LeavesOut}
			if c.proxy.Datapath != nil {
				of.Datapath, err = c.proxy.Datapath(ctx)
				errs = append(errs, err)
			}
			env.ServiceProxies[c.proxy.Name] = of
		}
		for _, list := range c.conflists {
			for _, p := range list.Plugins() {
				plugins[p] = true
			}
		}
		for _, s := range c.sites() {
			errs = append(errs, l.placeFacts(ctx, c, s, env.Places))
		}
	}
	for _, p := range slices.Sorted(maps.Keys(plugins)) {
		if isOwnPlugin(p) {
			continue // of this program's version
		}
		v, err := cni.Version(ctx, l.options.Runner, p, l.options.CNIPath)
		errs = append(errs, err)
		env.Tools["cni/"+p] = v
	}
	return env, errors.Join(errs...)
}

// asMeasured brings settings to where they are read at begin and end alike, so
// that they can be compared: the machine's as they were found, and namespaces
// as their cluster's profile has them, also one that tuned knows.
func (l *Lab) asMeasured(ctx context.Context) error {
	if err := l.unchanged(); err != nil {
		return err
	}
	if l.options.Machine == nil {
		return nil
	}
	for _, c := range l.ordered {
		if c.profile.Tuned != "" && !c.tunedToo {
			if err := l.useProfile(ctx, c); err != nil {
				return err
			}
		}
	}
	_, err := l.options.Machine.Use(ctx, profile.Profile{Name: DefaultProfile})
	return err
}

func (l *Lab) placeFacts(ctx context.Context, c *cluster, s site, into map[string]result.PlaceFacts) error {
	name, node := l.names(c, s)
	f, err := l.askFacts(ctx, c, s)
	if err != nil {
		return fmt.Errorf("%s: facts: %w", name, err)
	}
	facts := result.PlaceFacts{Node: node, MTUs: f.MTUs, Sysctls: f.Sysctls, Offloads: f.Offloads, Settings: c.settings[s]}
	if c.profile.Name != DefaultProfile {
		facts.Profile = c.profile.Name
	}
	into[name] = facts
	return nil
}

// askFacts asks the agent of a site. One that does not answer, as a stopped process would
// not, is replaced once.
func (l *Lab) askFacts(ctx context.Context, c *cluster, s site) (agent.Facts, error) {
	a, err := l.agent(ctx, c, s, roleClient)
	if err != nil {
		return agent.Facts{}, err
	}
	f, err := a.Facts(ctx)
	if err == nil || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) && a.Alive() {
		return f, err
	}
	a.Abandon()
	_ = a.Close() // why it did not answer is known to whoever stopped it
	if a, err = l.agent(ctx, c, s, roleClient); err != nil {
		return agent.Facts{}, err
	}
	return a.Facts(ctx)
}

// facts describes a network, with what its nodes lack here.
func (l *Lab) facts(ctx context.Context, n network.Network) (result.NetworkFacts, error) {
	out := n.LeavesOut
	for _, f := range n.Wants {
		if err := l.planner.probe(f); err != nil {
			out = strings.TrimPrefix(out+fmt.Sprintf("; %s (%v: %s)", f.Doc, err, f.Cure), "; ")
		}
	}
	facts := result.NetworkFacts{Kind: n.Kind, Model: n.Model, LeavesOut: out, Distance: n.Distance, Encapsulation: n.Encapsulation}
	if n.Datapath == nil {
		return facts, nil
	}
	var err error
	if facts.Datapath, err = n.Datapath(ctx); err != nil {
		err = fmt.Errorf("network %s: %w", n.Name, err)
	}
	return facts, err
}

// readHost reads what /proc says about the machine. What it lacks is absent.
func readHost(proc, osRelease string) result.Host {
	h := result.Host{CPUs: runtime.NumCPU(), Kernel: firstLine(filepath.Join(proc, "sys/kernel/osrelease"))}
	h.OS = strings.Trim(field(osRelease, "PRETTY_NAME", "="), `"`)
	h.CPUModel = field(filepath.Join(proc, "cpuinfo"), "model name", ":")
	if kib, ok := strings.CutSuffix(field(filepath.Join(proc, "meminfo"), "MemTotal", ":"), " kB"); ok {
		if n, err := strconv.ParseUint(strings.TrimSpace(kib), 10, 52); err == nil { // more is no memory
			h.MemoryBytes = int64(n) * 1024
		}
	}
	for _, name := range hostSysctls() {
		if v := firstLine(filepath.Join(proc, "sys", strings.ReplaceAll(name, ".", "/"))); v != "" {
			if h.Sysctls == nil {
				h.Sysctls = map[string]string{}
			}
			h.Sysctls[name] = strings.Join(strings.Fields(v), " ")
		}
	}
	return h
}

// hostSysctls are settings of the whole machine that results depend on; those
// of a namespace are reported by its agent.
func hostSysctls() []string {
	return []string{
		"kernel.sched_autogroup_enabled", "kernel.sched_rt_runtime_us", "kernel.timer_migration",
		"net.core.busy_poll", "net.core.busy_read", "net.core.default_qdisc", "net.core.dev_weight",
		"net.core.netdev_budget", "net.core.netdev_budget_usecs", "net.core.netdev_max_backlog",
		"net.core.rmem_default", "net.core.rmem_max", "net.core.rps_sock_flow_entries",
		"net.core.wmem_default", "net.core.wmem_max", "net.ipv4.tcp_mem", "net.ipv4.udp_mem",
	}
}

func firstLine(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(b), "\n")
	return strings.TrimSpace(line)
}

// field is the value of the first line "key SEPARATOR value" of a file.
func field(path, key, separator string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(b)) {
		k, v, ok := strings.Cut(line, separator)
		if ok && strings.TrimSpace(k) == key {
			return strings.TrimSpace(v)
		}
	}
	return ""
}
