package report

import (
	"fmt"

	"github.com/cnibench/cnibench/internal/stat"
)

// noise is what networks that were held against themselves say of the machine.
func noise(d *document) []block {
	n := d.Analysis.NullTest
	if n == nil {
		return nil
	}
	if len(n.Pairs) == 0 {
		return []block{para("Each network was to be compared with itself, but no block has both of a pair yet.")}
	}
	return []block{list(noiseWords(*n)), {Table: d.noiseTable(*n)}}
}

// noiseWords is the answer of a null test.
func noiseWords(n stat.NullResult) []string {
	words := []string{
		"Each network was measured twice, under two names, in clusters of their own: what differs between the two is noise.",
		fmt.Sprintf("Noise floor: ± %s. A difference below it is noise on this machine.", noisePercent(n.NoiseFloor)),
	}
	if n.Detectable > 0 {
		words = append(words, fmt.Sprintf("The smallest difference that this campaign could have seen in every cell, in 4 of 5 campaigns: %s.", noisePercent(n.Detectable)))
	}
	return append(words, fmt.Sprintf("%d of %s called different at %g %%, where chance alone gives %.2g; %d after the correction for their number.",
		n.False, count(len(n.Pairs), "pair was", "pairs were"), 100*n.Confidence, n.Expected, n.FalseAfterHolm))
}

// noiseTable has a row for each pair.
func (d *document) noiseTable(n stat.NullResult) *table {
	t := &table{Columns: []column{
		{Head: "network"}, {Head: "traffic"}, {Head: "ratio", Number: true},
		{Head: "noise", Sub: "of a block", Number: true}, {Head: "could see", Number: true}, {Head: "apart"},
	}}
	for _, p := range n.Pairs {
		verdict := "no"
		switch {
		case p.AfterHolm:
			verdict = "yes"
		case p.Different:
			verdict = "by chance"
		}
		sees := text("unknown")
		if p.Detectable > 0 {
			sees = cell{Text: noisePercent(p.Detectable), Value: &p.Detectable}
		}
		traffic := p.A.Traffic()
		if where := d.short(placeOf(p.A)); where != "" {
			traffic += ", " + where
		}
		t.Rows = append(t.Rows, []cell{
			nameOf(d.name(p.A.Network), p.A), text(traffic), {Text: ratio(p.Ratio), Value: &p.Ratio.Value},
			{Text: noisePercent(p.NoisePerBlock), Value: &p.NoisePerBlock}, sees, text(verdict),
		})
	}
	return t
}

// noisePercent is a share to two figures.
func noisePercent(share float64) string {
	if share >= 0.095 {
		return fmt.Sprintf("%.0f %%", 100*share)
	}
	return fmt.Sprintf("%.2g %%", 100*share)
}

// noise is the section for a terminal.
func (sc screen) noise(d *document) []string {
	var lines []string
	for _, b := range noise(d) {
		lines = append(lines, "")
		if b.Para != "" {
			lines = append(lines, sc.wrap(b.Para, "", "")...)
		}
		for _, item := range b.List {
			lines = append(lines, sc.wrap(item, "", "")...)
		}
		if b.Table != nil {
			lines = append(lines, sc.textTable(*b.Table)...)
		}
	}
	return lines
}
