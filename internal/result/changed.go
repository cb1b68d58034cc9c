package result

import (
	"fmt"
	"slices"
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
	maps := func(what string, a, b map[string]string) {
		for k := range union(a, b) {
			diff(what+k, a[k], b[k])
		}
	}
	diff("cnibench", before.Version, after.Version)
	diff("kernel", before.Host.Kernel, after.Host.Kernel)
	diff("CPUs", fmt.Sprint(before.Host.CPUs), fmt.Sprint(after.Host.CPUs))
	maps("sysctl ", before.Host.Sysctls, after.Host.Sysctls)
	maps("version of ", before.Tools, after.Tools)
	for name := range union(before.Places, after.Places) {
		a, inA := before.Places[name]
		b, inB := after.Places[name]
		if inA != inB { // one line, not one for each of its settings
			diff(name, place(inA), place(inB))
			continue
		}
		diff(name+": kernel", a.Kernel, b.Kernel)
		maps(name+": sysctl ", a.Sysctls, b.Sysctls)
		maps(name+": offload ", a.Offloads, b.Offloads)
		for dev := range union(a.MTUs, b.MTUs) {
			diff(name+": MTU of "+dev, mtu(a.MTUs, dev), mtu(b.MTUs, dev))
		}
	}
	slices.Sort(out)
	return out
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
