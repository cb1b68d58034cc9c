package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/unit"
)

// modelMark follows the name of a network that is a model.
const modelMark = "*"

// name is a network's name as tables show it.
func (d *document) name(network string) string {
	if d.rebuilt(network) {
		return network + modelMark
	}
	return network
}

func (d *document) names(networks []string) []string {
	var out []string
	for _, n := range networks {
		out = append(out, d.name(n))
	}
	return out
}

// model is what a network was modelled on; "" for one that is what it says.
func (d *document) model(network string) string {
	if d.Environment == nil {
		return ""
	}
	return d.Environment.Networks[network].Model
}

// rebuilt reports whether cnibench rebuilt a network's datapath.
func (d *document) rebuilt(network string) bool {
	return d.Environment != nil && d.Environment.Networks[network].Rebuilt()
}

// models says, once for each model in the report, what it is.
func (d *document) models() []string {
	if d.Environment == nil {
		return nil
	}
	seen := map[string]bool{}
	for _, g := range d.groups {
		for _, n := range g.networks {
			seen[n] = true
		}
	}
	var out []string
	for _, n := range sortedKeys(d.Environment.Networks) {
		if f := d.Environment.Networks[n]; f.Rebuilt() && seen[n] {
			out = append(out, after(n, f))
		}
	}
	for _, p := range sortedKeys(d.Environment.ServiceProxies) {
		out = append(out, after("services by "+p, d.Environment.ServiceProxies[p]))
	}
	return out
}

// after says what a model is of.
func after(name string, f result.NetworkFacts) string {
	s := name + " after " + f.Model
	if f.Datapath != "" {
		s += ", carried by " + f.Datapath
	}
	if f.LeavesOut != "" {
		s += " (without " + f.LeavesOut + ")"
	}
	return s
}

// title says where a group's traffic went.
func (g *group) title() string { return g.place.String() }

// String says the place in words.
func (p place) String() string {
	var parts []string
	if s := strings.TrimSpace(p.path + " " + p.placement); s != "" {
		parts = append(parts, s)
	}
	if s := p.rules.String(); s != "" {
		parts = append(parts, s)
	}
	if p.link != "" {
		parts = append(parts, "link "+p.link)
	}
	if p.profile != "" {
		parts = append(parts, "profile "+p.profile)
	}
	if p.mtu > 0 {
		parts = append(parts, fmt.Sprintf("MTU %d", p.mtu))
	}
	return strings.Join(parts, ", ")
}

// String says the rules in the words of a cell.
func (r rules) String() string {
	return result.Cell{Services: r.services, ServiceProxy: r.serviceProxy, Policies: r.policies, Encryption: r.encryption}.Rules()
}

// short says of a place only what differs between the places of the report. A
// baseline's own path is not a difference.
func (d *document) short(p place) string {
	var own place
	for _, g := range d.groups {
		if g.place.path != p.path && p.path != result.PathHostToHost {
			own.path = p.path
		}
		if g.place.placement != p.placement {
			own.placement = p.placement
		}
		if g.place.link != p.link {
			own.link = p.link
		}
		if g.place.profile != p.profile {
			own.profile = p.profile
		}
		if g.place.mtu != p.mtu {
			own.mtu = p.mtu
		}
		if g.place.rules != p.rules {
			own.rules = p.rules
		}
	}
	return own.String()
}

// label names a traffic and what it is judged by.
func (g *group) label(t result.Cell) string {
	if m, ok := g.primary(t); ok {
		return t.Traffic() + ", " + m.Label
	}
	return t.Traffic()
}

// ratio says an efficiency.
func ratio(e stat.Estimate) string { return unit.Percent(e.Value, halfwidth(e)) }

// places says the places that a ranked network may hold: "2", "2–4".
func places(r stat.Ranked) string {
	if r.RankTo > r.Rank {
		return fmt.Sprintf("%d–%d", r.Rank, r.RankTo)
	}
	return fmt.Sprint(r.Rank)
}

// and joins names: "a, b and c".
func and(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// count says a number of things.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// ties lists the sets of networks that cannot be told apart, the best first:
// the longest runs of the ranking in which no pair was told apart, then the
// pairs that no run holds.
func ties(r stat.Ranking) [][]string {
	apart := map[[2]string]bool{}
	for _, p := range r.Pairs {
		if p.ToldApart {
			apart[[2]string{p.Better, p.Worse}], apart[[2]string{p.Worse, p.Better}] = true, true
		}
	}
	var names []string
	for _, n := range r.Ranked {
		names = append(names, n.Network)
	}
	var out [][]string
	end := 0
	for i := range names {
		j := i + 1
		for j < len(names) && !slices.ContainsFunc(names[i:j], func(n string) bool { return apart[[2]string{n, names[j]}] }) {
			j++
		}
		if j > end && j-i > 1 {
			out = append(out, names[i:j])
		}
		end = max(end, j)
	}
	for _, p := range r.Pairs {
		held := slices.ContainsFunc(out, func(set []string) bool {
			return slices.Contains(set, p.Better) && slices.Contains(set, p.Worse)
		})
		if !p.ToldApart && !held {
			out = append(out, []string{p.Better, p.Worse})
		}
	}
	return out
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
