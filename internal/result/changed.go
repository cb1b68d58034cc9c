package result

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ChangedSettings lists what differs between two readings of an environment,
// "sysctl net.core.rmem_max: 212992 → 4194304", sorted.
func ChangedSettings(before, after Environment) []string {
	var out []string
	diff := func(what, a, b string) {
		if a != b {
			out = append(out, fmt.Sprintf("%s: %s → %s", what, orAbsent(a), orAbsent(b)))
		}
	}
	each := func(what string, a, b map[string]string) {
		for k := range union(a, b) {
			diff(what+k, a[k], b[k])
		}
	}
	diff("cnibench", before.Version, after.Version)
	diff("kernel", before.Host.Kernel, after.Host.Kernel)
	diff("CPU", before.Host.CPUModel, after.Host.CPUModel)
	diff("CPUs", fmt.Sprint(before.Host.CPUs), fmt.Sprint(after.Host.CPUs))
	each("sysctl ", before.Host.Sysctls, after.Host.Sysctls)
	each("version of ", before.Tools, after.Tools)
	for name := range union(before.Clusters, after.Clusters) {
		a, inA := before.Clusters[name]
		b, inB := after.Clusters[name]
		if inA && inB {
			diff("cluster "+name+": Kubernetes", a.Kubernetes, b.Kubernetes)
			diff("cluster "+name+": network", a.Network, b.Network)
			diff("cluster "+name+": version of its network", a.NetworkVersion, b.NetworkVersion)
			diff("cluster "+name+": nodes", names(a.Nodes), names(b.Nodes))
		}
	}
	for name := range union(before.Places, after.Places) {
		a, inA := before.Places[name]
		b, inB := after.Places[name]
		if inA != inB { // one line, not one for each of its settings
			diff(name, place(inA), place(inB))
			continue
		}
		diff(name+": kernel", a.Kernel, b.Kernel)
		each(name+": sysctl ", a.Sysctls, b.Sysctls)
		each(name+": offload ", a.Offloads, b.Offloads)
		for dev := range union(a.MTUs, b.MTUs) {
			diff(name+": MTU of "+dev, mtu(a.MTUs, dev), mtu(b.MTUs, dev))
		}
	}
	slices.Sort(out)
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
			continue // it does not stand yet
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
