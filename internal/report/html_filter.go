package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/result"
)

// choice is a factor that readers can filter by. Of a cell that says nothing of
// it, value is "".
type choice struct {
	name  string
	value func(result.Cell) string
}

// choices are the factors, in the order in which the filter has them. Those of
// the traffic are unsaid in a cell without a workload.
func choices() []choice {
	traffic := func(of func(result.Cell) string, without string) func(result.Cell) string {
		return func(c result.Cell) string {
			if c.Workload == "" {
				return ""
			}
			return cmp.Or(of(c), without)
		}
	}
	amount := func(n int, unit string) string {
		if n == 0 {
			return ""
		}
		return strings.TrimSpace(fmt.Sprintf("%d %s", n, unit))
	}
	return []choice{
		{"network", func(c result.Cell) string { return c.Network }},
		{"cluster", func(c result.Cell) string { return c.Cluster }},
		{"path", func(c result.Cell) string { return c.Path }},
		{"placement", func(c result.Cell) string { return c.Placement }},
		{"link", func(c result.Cell) string { return c.Link }},
		{"profile", func(c result.Cell) string { return c.Profile }},
		{"MTU", func(c result.Cell) string { return amount(c.MTU, "") }},
		{"services", traffic(func(c result.Cell) string { return joined(amount(c.Services, ""), c.ServiceProxy) }, "none")},
		{"policies", traffic(func(c result.Cell) string { return amount(c.Policies, "") }, "none")},
		{"workload", traffic(func(c result.Cell) string { return joined(c.Workload, c.Test, c.Protocol) }, "none")},
		{"direction", traffic(func(c result.Cell) string { return c.Direction }, "client to server")},
		{"message", traffic(func(c result.Cell) string { return amount(c.MessageBytes, "B") }, "unnamed")},
		{"streams", traffic(func(c result.Cell) string { return amount(c.Streams, "") }, "unnamed")},
		{"rate", traffic(rateName, "flat out")},
		{"burst", traffic(func(c result.Cell) string { return amount(c.Burst, "") }, "1")},
		{"background", traffic(func(c result.Cell) string { return amount(c.BackgroundStreams, "streams") }, "none")},
		{"family", traffic(func(c result.Cell) string { return c.Family }, "ipv4")},
		{"options", traffic(optionNames, "none")},
		{"CPUs", traffic(func(c result.Cell) string { return c.CPUs }, "free")},
		{"congestion control", traffic(func(c result.Cell) string { return c.CongestionControl }, "as-is")},
	}
}

func joined(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), " ")
}

func rateName(c result.Cell) string {
	switch {
	case c.RateBitsPerSecond > 0:
		return fmt.Sprintf("%g Mbit/s", c.RateBitsPerSecond/1e6)
	case c.RatePerSecond > 0:
		return fmt.Sprintf("%g/s", c.RatePerSecond)
	}
	return ""
}

func optionNames(c result.Cell) string {
	var on []string
	for _, o := range []struct {
		on   bool
		name string
	}{{c.UDPGSO, "udp_gso"}, {c.ZeroCopy, "zero_copy"}, {c.PinCPUs, "pin_cpus"}} {
		if o.on {
			on = append(on, o.name)
		}
	}
	return strings.Join(on, " ")
}

// factor is a choice with more than one value in the report.
type factor struct {
	choice
	Values []string
}

// filter tells what everything in a report is about, as places in lists.
type filter struct {
	factors []factor
	// abouts are factor and value in turns, each combination once.
	abouts [][]int
	known  map[result.Cell]int
	places map[string]int // of what is said in abouts
}

// newFilter gathers the factors that differ between the cells of a report.
func newFilter(d *document) *filter {
	f := &filter{known: map[result.Cell]int{}, places: map[string]int{}, abouts: [][]int{}}
	for _, c := range choices() {
		x := factor{choice: c}
		add := func(cell result.Cell) {
			if v := clean(c.value(cell)); v != "" && !slices.Contains(x.Values, v) {
				x.Values = append(x.Values, v)
			}
		}
		for _, g := range d.groups {
			add(g.at("", result.Cell{}))
			for _, t := range g.traffics {
				add(*g.of(t))
			}
			for _, cluster := range g.baseClusters() {
				add(ofNetwork(result.HostNetwork, cluster))
			}
			for _, n := range g.networks {
				add(ofNetwork(n, g.clusters[n]))
			}
		}
		if len(x.Values) > 1 {
			f.factors = append(f.factors, x)
		}
	}
	return f
}

// about is the place of what a cell says in the list of abouts; -1 where it says
// nothing that can be filtered by.
func (f *filter) about(c *result.Cell) int {
	if c == nil {
		return -1
	}
	if i, ok := f.known[*c]; ok {
		return i
	}
	var said []int
	for i, x := range f.factors {
		if v := slices.Index(x.Values, clean(x.value(*c))); v >= 0 {
			said = append(said, i, v)
		}
	}
	at := -1
	if len(said) > 0 {
		key, found := fmt.Sprint(said), false
		if at, found = f.places[key]; !found {
			at = len(f.abouts)
			f.abouts, f.places[key] = append(f.abouts, said), at
		}
	}
	f.known[*c] = at
	return at
}

// networks are those of the report in the order of their colours.
func (d *document) networks() []string {
	out := []string{result.HostNetwork}
	for _, g := range d.groups {
		for _, n := range g.networks {
			if !slices.Contains(out, n) {
				out = append(out, n)
			}
		}
	}
	return out
}
