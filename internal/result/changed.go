package result

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Change is one difference between two readings of an environment.
type Change struct {
	// Cluster, Tool and Place name what the difference belongs to: a cluster of the
	// campaign, a tool or CNI plugin ("iperf3", "cni/bridge"), a place. All are empty
	// for the machine and for cnibench itself.
	Cluster, Tool, Place string
	// What names the difference: "kernel", "cluster a: nodes".
	What string
	// Before and After are the two values; empty: absent.
	Before, After string
}

// String is the change as people read it: "kernel: 6.1 → 6.18".
func (c Change) String() string {
	return fmt.Sprintf("%s: %s → %s", c.What, orAbsent(c.Before), orAbsent(c.After))
}

// ChangedSettings lists what differs between two readings of an environment,
// "sysctl net.core.rmem_max: 212992 → 4194304", sorted.
func ChangedSettings(before, after Environment) []string {
	var out []string
	for _, c := range Changes(before, after) {
		out = append(out, c.String())
	}
	return out
}

// Changes lists what differs between two readings of an environment, sorted by the
// words of String.
func Changes(before, after Environment) []Change {
	var out []Change
	diff := func(of Change, what, a, b string) {
		if a != b {
			of.What, of.Before, of.After = what, a, b
			out = append(out, of)
		}
	}
	machine := Change{}
	diff(machine, "cnibench", before.Version, after.Version)
	diff(machine, "kernel", before.Host.Kernel, after.Host.Kernel)
	diff(machine, "CPU", before.Host.CPUModel, after.Host.CPUModel)
	diff(machine, "CPUs", fmt.Sprint(before.Host.CPUs), fmt.Sprint(after.Host.CPUs))
	for k := range union(before.Host.Sysctls, after.Host.Sysctls) {
		diff(machine, "sysctl "+k, before.Host.Sysctls[k], after.Host.Sysctls[k])
	}
	for k := range union(before.Tools, after.Tools) {
		diff(Change{Tool: k}, "version of "+k, before.Tools[k], after.Tools[k])
	}
	for name := range union(before.Clusters, after.Clusters) {
		a, inA := before.Clusters[name]
		b, inB := after.Clusters[name]
		if inA && inB {
			of := Change{Cluster: name}
			diff(of, "cluster "+name+": Kubernetes", a.Kubernetes, b.Kubernetes)
			diff(of, "cluster "+name+": network", a.Network, b.Network)
			diff(of, "cluster "+name+": version of its network", a.NetworkVersion, b.NetworkVersion)
			diff(of, "cluster "+name+": nodes", names(a.Nodes), names(b.Nodes))
		}
	}
	for name := range union(before.Places, after.Places) {
		a, inA := before.Places[name]
		b, inB := after.Places[name]
		of := Change{Place: name}
		if inA != inB { // one line, not one for each of its settings
			diff(of, name, place(inA), place(inB))
			continue
		}
		diff(of, name+": kernel", a.Kernel, b.Kernel)
		for k := range union(a.Sysctls, b.Sysctls) {
			diff(of, name+": sysctl "+k, a.Sysctls[k], b.Sysctls[k])
		}
		for k := range union(a.Offloads, b.Offloads) {
			diff(of, name+": offload "+k, a.Offloads[k], b.Offloads[k])
		}
		for dev := range union(a.MTUs, b.MTUs) {
			diff(of, name+": MTU of "+dev, mtu(a.MTUs, dev), mtu(b.MTUs, dev))
		}
	}
	slices.SortFunc(out, func(a, b Change) int { return strings.Compare(a.String(), b.String()) })
	return out
}

// Elsewhere lists what makes the environment of a resumed run another one than that
// of the run before, "CPU: A → B", sorted: this program, kernel, processors and
// clusters. Samples from both cannot be compared. What one side does not know is no
// difference.
func Elsewhere(before, after Environment) []string {
	var out []string
	diff := func(what, a, b string) {
		if a != b && a != "" && b != "" {
			out = append(out, fmt.Sprintf("%s: %s → %s", what, a, b))
		}
	}
	diff("cnibench", before.Version, after.Version)
	diff("testbed", before.Testbed, after.Testbed)
	diff("kernel", before.Host.Kernel, after.Host.Kernel)
	diff("CPU", before.Host.CPUModel, after.Host.CPUModel)
	diff("CPUs", orUnknown(before.Host.CPUs), orUnknown(after.Host.CPUs))
	for name, a := range before.Clusters {
		b, ok := after.Clusters[name]
		if !ok {
			continue // it does not exist yet
		}
		what := "cluster " + name + ": "
		diff(what+"Kubernetes", a.Kubernetes, b.Kubernetes)
		diff(what+"network", a.Network, b.Network)
		diff(what+"version of its network", a.NetworkVersion, b.NetworkVersion)
		diff(what+"nodes", names(a.Nodes), names(b.Nodes))
	}
	slices.Sort(out)
	return out
}

func orUnknown(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

func names(nodes map[string]NodeFacts) string {
	return strings.Join(slices.Sorted(maps.Keys(nodes)), " ")
}

func orAbsent(s string) string {
	if s == "" {
		return "(absent)"
	}
	return s
}

func place(there bool) string {
	if there {
		return "a place of the campaign"
	}
	return ""
}

func mtu(m map[string]int, dev string) string {
	if v, ok := m[dev]; ok {
		return fmt.Sprint(v)
	}
	return ""
}

func union[V any](a, b map[string]V) map[string]bool {
	keys := map[string]bool{}
	for k := range a {
		keys[k] = true
	}
	for k := range b {
		keys[k] = true
	}
	return keys
}
