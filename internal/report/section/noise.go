package section

import (
	"fmt"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/page"
	"github.com/cnibench/cnibench/internal/stat"
)

// Noise is what networks that were compared with themselves show of the machine.
func Noise(d *report.Document) []page.Element {
	n := d.Analysis.NullTest
	if n == nil {
		return nil
	}
	if len(n.Pairs) == 0 {
		return []page.Element{page.Para("Each network was to be compared with itself, but no block has both of a pair yet.")}
	}
	return []page.Element{page.List(noiseWords(*n)), {Table: noiseTable(d, *n)}}
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
		n.False, report.Count(len(n.Pairs), "pair was", "pairs were"), 100*n.Confidence, n.Expected, n.FalseAfterHolm))
}

// noiseTable has a row for each pair.
func noiseTable(d *report.Document, n stat.NullResult) *page.Table {
	t := &page.Table{Columns: []page.Column{
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
		sees := page.Text("unknown")
		if p.Detectable > 0 {
			sees = page.Field{Text: noisePercent(p.Detectable), Value: &p.Detectable}
		}
		traffic := p.A.Traffic()
		if where := d.Short(report.SituationOf(p.A)); where != "" {
			traffic += ", " + where
		}
		t.Rows = append(t.Rows, []page.Field{
			page.NameOf(d.Name(p.A.Network), p.A), page.Text(traffic), {Text: report.Ratio(p.Ratio), Value: &p.Ratio.Value},
			{Text: noisePercent(p.NoisePerBlock), Value: &p.NoisePerBlock}, sees, page.Text(verdict),
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
