package explain

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/page"
	"github.com/cnibench/cnibench/internal/report/section"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/stat/estimate"
	"github.com/cnibench/cnibench/internal/unit"
)

// nodeWords says what packets met in netfilter and what the network holds in
// memory on a node, of the traffic that met or held the most.
func nodeWords(e Explanation) []string {
	var rules, chains, memory string
	most := -1.0
	held := map[string]estimate.Estimate{}
	for _, x := range e.Traffics {
		node := x.Node
		if r, ok := node[unit.NetfilterRules]; ok {
			c := node[unit.NetfilterChains]
			per, known := node[unit.NetfilterRulesPerPacket]
			switch {
			case known && per.Value > most:
				most = per.Value
				rules = fmt.Sprintf("On a node a packet of %s passes %s of %s, in %s.", x.Traffic,
					unit.Estimate(per.Value, math.NaN(), ""), report.Count(round(r), "rule", "rules"), chainsMet(node))
			case !known && rules == "":
				chains = fmt.Sprintf("A node has %s in %s; their counters do not show how many of them a packet passes.", report.Count(round(r), "rule", "rules"), report.Count(round(c), "chain", "chains"))
			}
			if r.Value == 0 {
				rules = "A node has no netfilter rules."
			}
		}
		for _, m := range unit.NodeMetrics() {
			if v, ok := node[m.Name]; ok && (held[m.Name].N == 0 || v.Value > held[m.Name].Value) {
				held[m.Name] = v
			}
		}
	}
	if rules == "" {
		rules = chains
	}
	memory = memoryWords(held)
	return []string{rules, memory}
}

func chainsMet(node map[string]estimate.Estimate) string {
	all := report.Count(round(node[unit.NetfilterChains]), "chain", "chains")
	if met, ok := node[unit.NetfilterChainsPerPacket]; ok {
		return unit.Estimate(met.Value, math.NaN(), "") + " of " + all
	}
	return all
}

func round(e estimate.Estimate) int { return int(math.Round(e.Value)) }

// metricValue formats an estimate with its half-width where it has one.
func metricValue(e estimate.Estimate, of string) string {
	return unit.Estimate(e.Value, report.Halfwidth(e), of)
}

// memoryWords says what a node holds; "" where nothing of it was read.
func memoryWords(held map[string]estimate.Estimate) string {
	var parts []string
	has := func(name string) (estimate.Estimate, bool) { v, ok := held[name]; return v, ok && v.Value > 0 }
	if v, ok := has(unit.NetworkResidentBytes); ok {
		parts = append(parts, fmt.Sprintf("%s resident in %s", unit.Estimate(v.Value, math.NaN(), "B"), report.Count(round(held[unit.NetworkProcesses]), "process", "processes")))
	}
	if v, ok := has(unit.ConntrackBytes); ok {
		parts = append(parts, fmt.Sprintf("at least %s for %s", unit.Estimate(v.Value, math.NaN(), "B"), report.Count(round(held[unit.ConntrackEntries]), "tracked connection", "tracked connections")))
	}
	if v, ok := has(unit.EBPFMapBytes); ok {
		parts = append(parts, unit.Estimate(v.Value, math.NaN(), "B")+" of eBPF maps")
	}
	if v, ok := has(unit.IPSetBytes); ok {
		parts = append(parts, unit.Estimate(v.Value, math.NaN(), "B")+" in sets of addresses")
	}
	_, read := held[unit.NetworkProcesses]
	switch {
	case len(parts) > 0:
		return "For it a node holds " + report.And(parts) + "."
	case read:
		return "No process of its own, tracked connection, set of addresses or eBPF map was found on a node."
	}
	return ""
}

// nodeTable is what a node has and holds × traffics, without the rows that are
// nowhere more than 0; nil where nothing was read.
func nodeTable(e Explanation) *page.Table {
	tab := &page.Table{Caption: "On a node", Columns: []page.Column{{Head: "on a node"}}}
	var nodes []map[string]estimate.Estimate
	for _, x := range e.Traffics {
		if n := x.Node; len(n) > 0 {
			nodes = append(nodes, n)
			tab.Columns = append(tab.Columns, page.Column{Head: x.Traffic, Number: true})
		}
	}
	for _, m := range unit.NodeMetrics() {
		if m.Name == unit.NetfilterReadSeconds || m.Name == unit.MemoryReadSeconds {
			continue // what the probe cost, not the network
		}
		if !slices.ContainsFunc(nodes, func(n map[string]estimate.Estimate) bool { return n[m.Name].Value > 0 }) {
			continue
		}
		row := []page.Field{page.Text(m.Label)}
		for _, n := range nodes {
			v, ok := n[m.Name]
			if !ok {
				row = append(row, page.Text("not measured"))
				continue
			}
			row = append(row, page.Field{Text: unit.Estimate(v.Value, math.NaN(), m.Unit), Value: &v.Value})
		}
		tab.Rows = append(tab.Rows, row)
	}
	if len(tab.Rows) == 0 {
		return nil
	}
	return tab
}

// sweeps are those that the situation's number of policies is one of. None is where
// there is no policy: that has none to leave out.
func sweeps(d *report.Document, e Explanation) []stat.PolicySweep {
	return slices.DeleteFunc(slices.Clone(d.Analysis.PolicySweeps), func(s stat.PolicySweep) bool {
		at := report.SituationOf(s.Cell)
		at.Rules.Policies = e.situation.Rules.Policies
		return s.Cell.Network != e.Network || at != e.situation || e.situation.Rules.Policies == 0 || !slices.Contains(s.Policies, e.situation.Rules.Policies)
	})
}

// sweepWords says what each further policy and rule costs.
func sweepWords(e Explanation) []string {
	var out []string
	for _, s := range e.Sweeps {
		figures := section.FiguresAs(s.Cost, s.Cost[strings.LastIndex(s.Cost, "_")+1:])
		say := func(v estimate.Estimate) string {
			if !report.Apart(v) {
				return fmt.Sprintf("adds nothing beyond the noise (%s) to the %s", figures.Plus(v), figures.Label)
			}
			return fmt.Sprintf("adds %s to the %s", strings.TrimPrefix(figures.Plus(v), "+"), figures.Label)
		}
		text := fmt.Sprintf("fewer policies: for %s with %s policies, each further one %s", s.Cell.Traffic(), numbers(s.Policies), say(s.PerPolicy))
		switch met := s.RulesPerPacket; {
		case s.PerRule != nil:
			text += "; each further rule that its packets pass on average, on their whole path, " + say(*s.PerRule)
		case met != nil && met[1] == 0:
			text += "; no packet passes a rule of netfilter"
		case met != nil:
			text += fmt.Sprintf("; a packet passes %s netfilter rules on its path, for any number of policies", unit.Estimate(met[1], math.NaN(), ""))
			if s.Cell.Workload != "tcp_crr" {
				text += ": those of a connection that is open pass before (tcp_crr opens one for each transaction)"
			}
		}
		out = append(out, text+".")
	}
	return out
}

func numbers(all []int) string {
	var words []string
	for _, n := range all {
		words = append(words, fmt.Sprint(n))
	}
	return report.And(words)
}
