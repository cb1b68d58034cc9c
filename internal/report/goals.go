package report

import (
	"fmt"
	"strings"

	"github.com/cnibench/cnibench/internal/stat"
)

// option names a network with its profile; the profile only where the report has
// several.
func (d *document) option(o stat.Option) string {
	if !d.severalProfiles() {
		return d.name(o.Network)
	}
	return d.name(o.Network) + " with " + o.Profile
}

// severalProfiles tells whether the goals have a profile to choose.
func (d *document) severalProfiles() bool {
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

// warningCounts says how many doubts there are, by their names.
func (d *document) warningCounts() string {
	var parts []string
	for _, w := range d.Analysis.Warnings {
		s := string(w.Code)
		if len(w.Cells) > 0 {
			s += " (" + count(len(w.Cells), "cell", "cells") + ")"
		}
		parts = append(parts, s)
	}
	if n := len(d.changed()); n > 0 {
		parts = append(parts, fmt.Sprintf("settings changed (%d)", n))
	}
	if s := d.sampleWarnings(); len(s) > 0 {
		parts = append(parts, fmt.Sprintf("remarks of samples (%d)", len(s)))
	}
	if len(parts) == 0 {
		return ""
	}
	return count(len(parts), "warning", "warnings") + ": " + strings.Join(parts, ", ") + "."
}

// lackCounts says how many cells lack something, by state.
func (d *document) lackCounts() string {
	n := map[string]int{}
	for _, l := range d.lacks() {
		n[l.state] += len(l.cells)
	}
	var parts []string
	for _, state := range sortedKeys(n) {
		parts = append(parts, count(n[state], "cell", "cells")+" "+state)
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, ", ") + "."
}
