package campaign

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/workload"
)

// check is the check that no single value allows: whether the values fit together.
func (d *decoder) check(c *Campaign) {
	d.checkClusters(c)
	d.addLadders(c)
	for i, n := range c.Networks {
		d.checkNetwork(keyPath{"networks", i}, n, c.Testbed)
		c.Networks[i].Enforces = contains(d.known.Enforcing, n.Name)
	}
	if d.good(keyPath{"networks"}) && d.good(keyPath{"paths"}) {
		d.checkPaths(c)
		d.checkRules(c)
		d.checkEncryption(c)
	}
	for i := range c.Workloads {
		d.checkWorkload(keyPath{"workloads", i}, &c.Workloads[i], c.Testbed)
	}
	d.checkPlacement(c)
	d.checkRanks(c)
	if slices.Contains(c.Families, "ipv6") {
		for i, mtu := range c.MTU {
			if mtu > 0 && mtu < minIPv6MTU {
				d.fail(keyPath{"mtu", i}, "", "IPv6 needs an MTU of at least %d (RFC 8200), found %d", minIPv6MTU, mtu)
			}
		}
	}
	low, high := keyPath{"sampling", "min_blocks"}, keyPath{"sampling", "max_blocks"}
	if s := c.Sampling; d.good(low) && d.good(high) && s.MaxBlocks < s.MinBlocks {
		hint := ""
		if d.root.find("sampling").child("max_blocks") == nil {
			hint = fmt.Sprintf("set it: %d is the default", s.MaxBlocks)
		}
		d.fail(high, hint, "expected at least min_blocks (%d), found %d", s.MinBlocks, s.MaxBlocks)
	}
	if n := c.combinations(); len(d.errs) == 0 && n > maxCells {
		d.fail(keyPath{"workloads"}, "leave values out, or split the campaign", "the campaign has %.0f cells, more than %d", n, maxCells)
	}
}

// addLadders adds the networks of the ladders to those that are measured.
func (d *decoder) addLadders(c *Campaign) {
	for _, l := range d.known.Ladders {
		if !contains(c.Ladders, l.Network) {
			continue
		}
		for _, name := range l.Networks {
			if !c.hasNetwork(name) {
				c.Networks = append(c.Networks, Network{Name: name})
			}
		}
	}
}

// checkNetwork distinguishes a network of the user's own from a built-in one.
func (d *decoder) checkNetwork(where keyPath, n Network, testbed string) {
	if !d.good(where) {
		return
	}
	if found := n.Name == Detected; found || testbed == Kubernetes {
		switch {
		case n.Conflist != "" || n.Conflists != nil:
			d.fail(where, "measure it in the lab", "a conflist requires testbed lab: cnibench does not install a network on a cluster")
		case found && testbed != Kubernetes && testbed != Hosts:
			d.fail(where, "name the network, or write testbed: kubernetes", "a network is %s on a cluster, and the testbed is %s", Detected, testbed)
		case !found && n.Name != result.HostNetwork:
			d.fail(where, "write detected: reports then have the name that was found", "network %q is no choice on a cluster", n.Name)
		}
		return
	}
	own, builtIn := n.Conflist != "" || n.Conflists != nil, contains(d.known.Networks, n.Name)
	switch {
	case n.Conflist != "" && n.Conflists != nil:
		d.fail(where, "conflist is for all nodes, conflists for one each", "expected conflist or conflists, found both")
	case own && builtIn:
		d.fail(where.with("name"), "give yours another name", "network %q is built in and takes no conflist", n.Name)
	case !own && !builtIn:
		d.fail(where.with("name"), suggest("network", n.Name, d.known.Networks)+" (a network of your own needs a conflist)", "unknown network %q", n.Name)
	}
}

// checkPaths refuses what would silently measure nothing.
func (d *decoder) checkPaths(c *Campaign) {
	toPods := false
	for i, p := range c.Paths {
		onHost := p.From == "host" && p.To == "host"
		toPods = toPods || !onHost
		if onHost && !c.hasNetwork(result.HostNetwork) {
			d.fail(keyPath{"paths", i}, "add host to networks", "host-to-host is measured on network %q, which is not among the networks", result.HostNetwork)
		}
	}
	for i, n := range c.Networks {
		if !toPods && n.Name != result.HostNetwork {
			d.fail(keyPath{"networks", i}, "add {from: pod, to: pod} to paths", "network %q would not be measured: every path is host-to-host", n.Name)
		}
	}
}

// checkRules refuses numbers of services and policies that nothing would be
// measured with, and paths to services that no traffic takes.
func (d *decoder) checkRules(c *Campaign) {
	toService := false
	for i, p := range c.Paths {
		toService = toService || p.ToService()
		if p.ToService() && p.From != "pod" {
			d.fail(keyPath{"paths", i}, "write from: pod", "%s is reached from pods, not from %s", p.To, p.From)
		}
	}
	for _, name := range []string{"services", "service_proxies"} {
		if d.root.child(name) != nil && !toService {
			d.fail(keyPath{name}, "add {from: pod, to: cluster-ip} to paths", "no path leads to a service")
		}
	}
	for i, w := range c.Workloads {
		if w.Name == result.ServiceUpdateName && !toService {
			d.fail(keyPath{"workloads", i}, "add {from: pod, to: cluster-ip} to paths", "%s changes a service, and no path leads to one", w.Name)
		}
	}
	if c.Testbed == Kubernetes {
		return // whether its network enforces policies is found out
	}
	enforces := slices.ContainsFunc(c.Networks, func(n Network) bool { return n.Enforces })
	if c.withPolicies() && !enforces {
		d.fail(keyPath{"policies"}, "add one that does to networks: "+strings.Join(d.known.Enforcing, ", "), "no network enforces policies")
	}
}

// checkEncryption refuses encryption that no packet would be measured with.
func (d *decoder) checkEncryption(c *Campaign) {
	if !c.withEncryption() {
		return
	}
	where := keyPath{"encryption"}
	switch {
	case c.Testbed != "lab":
		d.fail(where, "write testbed: lab", "encryption requires testbed lab; this campaign uses %s", c.Testbed)
	case !slices.ContainsFunc(c.Paths, func(p Path) bool { return p.Placement == result.InterHost }):
		d.fail(where, "add {from: pod, to: pod, placement: inter-host} to paths", "encryption is between nodes, and every path is inside a node")
	case !slices.ContainsFunc(c.Networks, func(n Network) bool { return n.Name != result.HostNetwork }):
		d.fail(where, "add a network with pods to networks", "network %s is the baseline, which is never encrypted", result.HostNetwork)
	}
}

// checkWorkload checks the values of a workload, and fills in the
// defaults that depend on the workload.
func (d *decoder) checkWorkload(where keyPath, w *Workload, testbed string) {
	spec, ok := d.known.workload(w.Name)
	if !ok {
		return // reported, or missing
	}
	for _, e := range d.root.find(where...).entries {
		if name := e.key.text; !takes(spec, name) && contains(workloadKeyNames(), name) {
			d.failAt(e.key, where, takesWhat(spec), "workload %q takes no %s", spec.Name, name)
		}
	}
	d.checkChoice(where.with("test"), w.texts("test"), spec.Tests)
	d.checkChoice(where.with("protocol"), w.texts("protocol"), spec.Protocols)
	d.checkChoice(where.with("algorithm"), w.texts("algorithm"), spec.Algorithms)
	fillWorkload(w, spec)
	d.checkConditions(where, w, spec, testbed)
	d.checkSizes(where.with("message_bytes"), w.numbers("message_bytes"), spec)
	if mayUseUDP(spec, *w) {
		for _, factor := range []string{"message_bytes", "response_bytes"} {
			d.checkDatagrams(where.with(factor), w.Values[factor])
		}
	}
}

// checkSizes refuses messages that are larger than a workload's.
func (d *decoder) checkSizes(where keyPath, sizes []int, spec workload.Spec) {
	for i, size := range sizes {
		if most := spec.LargestMessage(); size > most {
			d.fail(where.with(i), "", "messages of %s have at most %d bytes, found %d", spec.Name, most, size)
		}
	}
}

func (d *decoder) checkDatagrams(where keyPath, sizes []any) {
	for i, size := range sizes {
		if n, ok := size.(int); ok && n > maxUDPPayload {
			d.fail(where.with(i), "for other protocols list the workload a second time", "a UDP datagram carries at most %d bytes, found %d", maxUDPPayload, n)
		}
	}
}

// checkChoice checks a workload's test or protocol.
func (d *decoder) checkChoice(where keyPath, values, allowed []string) {
	kind := where[len(where)-1].(string)
	for i, v := range values {
		if v != "" && len(allowed) > 0 && !contains(allowed, v) {
			d.fail(where.with(i), suggest(kind, v, allowed), "unknown %s %q", kind, clip(v))
		}
	}
}

func fillWorkload(w *Workload, spec workload.Spec) {
	if !w.has("test") && len(spec.Tests) > 0 {
		w.set("test", spec.Tests[0])
	}
	if !w.has("protocol") && len(spec.Protocols) > 0 {
		w.set("protocol", spec.Protocols[0])
	}
	if !w.has("message_bytes") && takes(spec, "message_bytes") && spec.DefaultMessageBytes > 0 {
		w.set("message_bytes", spec.DefaultMessageBytes)
	}
	if !w.has("streams") && takes(spec, "streams") {
		w.set("streams", max(spec.DefaultStreams, 1))
	}
	if spec.ManyEnds {
		fillRanks(w, spec)
	}
}

// takes reports whether a workload takes a key.
func takes(spec workload.Spec, name string) bool {
	switch name {
	case "name":
		return true
	case "test":
		return len(spec.Tests) > 0
	case "protocol":
		return len(spec.Protocols) > 0
	}
	return contains(spec.Factors, name)
}

func takesWhat(spec workload.Spec) string {
	var names []string
	for _, name := range workloadKeyNames() {
		if name != "name" && takes(spec, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return "it takes its name only"
	}
	return "it takes " + strings.Join(names, ", ")
}

func workloadKeyNames() []string {
	var names []string
	for _, k := range workloadKeys(Known{}) {
		names = append(names, k.name)
	}
	return names
}

// mayUseUDP reports whether any cell of the workload sends datagrams.
func mayUseUDP(spec workload.Spec, w Workload) bool {
	return isUDP(spec.Name) || slices.ContainsFunc(w.texts("protocol"), isUDP) || slices.ContainsFunc(w.texts("test"), isUDP)
}

// isUDP recognises a workload, test or protocol that sends datagrams by its name:
// udp_rr, UDP_STREAM, udp.
func isUDP(name string) bool { return strings.HasPrefix(strings.ToLower(name), "udp") }

// combinations is the number of cells before those that coincide are merged,
// in floating point so that it cannot overflow.
func (c Campaign) combinations() float64 {
	traffics := 0.0
	for _, w := range c.Workloads {
		n := 1.0
		for _, values := range w.Factors {
			n *= float64(len(values))
		}
		traffics += n
	}
	for _, values := range []int{len(c.Networks), len(c.Links), len(c.Profiles), len(c.Paths), len(c.MTU), len(c.Families),
		len(c.Services), len(c.ServiceProxies), len(c.Policies), len(c.Encryption), len(c.Clusters)} {
		traffics *= float64(max(values, 1))
	}
	return traffics
}
