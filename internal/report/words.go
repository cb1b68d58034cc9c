package report

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/rank"
)

// ModelMark follows the name of a network that is a model.
const ModelMark = "*"

// Name is a network's name as tables show it.
func (d *Document) Name(network string) string {
	if d.Rebuilt(network) {
		return network + ModelMark
	}
	return network
}

// Names are networks as tables show them.
func (d *Document) Names(networks []string) []string {
	var out []string
	for _, n := range networks {
		out = append(out, d.Name(n))
	}
	return out
}

// Model is what a network was modelled on, and how far the model is from it; "" for one that
// is what it says.
func (d *Document) Model(network string) string {
	if d.Environment == nil {
		return ""
	}
	return d.Environment.Networks[network].ModelWithDistance()
}

// Rebuilt reports whether cnibench rebuilt a network's datapath.
func (d *Document) Rebuilt(network string) bool {
	return d.Environment != nil && d.Environment.Networks[network].Rebuilt()
}

// Models says, once for each model in the report, what it is.
func (d *Document) Models() []string {
	if d.Environment == nil {
		return nil
	}
	seen := map[string]bool{}
	for _, g := range d.Groups {
		for _, n := range g.Networks {
			seen[n] = true
		}
	}
	var out []string
	for _, n := range SortedKeys(d.Environment.Networks) {
		if f := d.Environment.Networks[n]; f.Rebuilt() && seen[n] {
			out = append(out, after(n, f))
		}
	}
	for _, p := range SortedKeys(d.Environment.ServiceProxies) {
		out = append(out, after("services by "+p, d.Environment.ServiceProxies[p]))
	}
	return out
}

// Distances says how far the models in the report are from the real networks; "" where that
// is not known of any, or is within 5 %.
func (d *Document) Distances() string {
	if d.Environment == nil {
		return ""
	}
	far := map[string]string{}
	for _, g := range d.Groups {
		for _, n := range g.Networks {
			if f := d.Environment.Networks[n]; f.Distance != nil {
				far[n] = d.Name(n) + " " + f.Distance.Short()
			}
		}
	}
	if len(far) == 0 {
		return ""
	}
	var parts []string
	for _, n := range SortedKeys(far) {
		parts = append(parts, far[n])
	}
	return "Instructions in the real one (docs/real.md): " + strings.Join(parts, "; ") + "."
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
	if f.Distance != nil {
		s += "; " + f.Distance.String()
	}
	return s
}

// And joins names: "a, b and c".
func And(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// Count says a number of things.
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// Ties lists the sets of networks that are tied, the best first:
// the longest runs of the ranking without a significant difference, then the
// pairs that no run holds.
func Ties(r rank.Ranking) [][]string {
	apart := map[[2]string]bool{}
	for _, p := range r.Pairs {
		if p.Significant {
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
		if !p.Significant && !held {
			out = append(out, []string{p.Better, p.Worse})
		}
	}
	return out
}

// SortedKeys are the keys of a map in order.
func SortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// Option names a network with its profile; the profile only where the report has
// several.
func (d *Document) Option(o rank.Option) string {
	if !d.SeveralProfiles() {
		return d.Name(o.Network)
	}
	return d.Name(o.Network) + " with " + o.Profile
}

// SeveralProfiles tells whether the goals have a profile to choose.
func (d *Document) SeveralProfiles() bool {
	first := ""
	for _, g := range d.Analysis.Goals {
		for _, r := range g.Ranked {
			if first == "" {
				first = r.Profile
			}
			if r.Profile != first {
				return true
			}
		}
	}
	return false
}

// Capital begins s as a sentence.
func Capital(s string) string {
	first, size := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(first)) + s[size:]
}

// SentenceEnd ends s with a full stop.
func SentenceEnd(s string) string {
	s = strings.TrimSpace(s)
	if s == "" || strings.HasSuffix(s, ".") {
		return s
	}
	return s + "."
}

// Title is the campaign's name.
func (d *Document) Title() string {
	if d.Campaign.Name == "" {
		return "unnamed campaign"
	}
	return d.Campaign.Name
}

// Summary says how much was measured.
func (d *Document) Summary() string {
	networks := map[string]bool{}
	for _, s := range d.Analysis.Cells {
		networks[s.Cell.Network] = true
	}
	ok, broken := d.Tally.OK, d.Tally.Failed
	s := fmt.Sprintf("%s, %s, %s, %s measured", Count(len(networks), "network", "networks"), Count(len(d.Analysis.Cells), "cell", "cells"),
		Count(d.Tally.Blocks(), "block", "blocks"), Count(ok, "sample", "samples"))
	if broken > 0 {
		s += fmt.Sprintf(", %d failed", broken)
	}
	if d.Analysis.Confidence > 0 {
		s += fmt.Sprintf("; %g %% intervals", 100*d.Analysis.Confidence)
	}
	if d.Environment != nil && d.Environment.Testbed != "" {
		s += "; testbed " + d.Environment.Testbed
	}
	return s + "."
}
