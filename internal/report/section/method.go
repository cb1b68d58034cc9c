package section

import (
	"fmt"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/page"
)

// method says in plain words how the figures came about.
func method(d *report.Document) []page.Element {
	sure := "95 %"
	if c := d.Analysis.Confidence; c > 0 {
		sure = fmt.Sprintf("%g %%", 100*c)
	}
	out := []page.Element{page.List([]string{
		"Each cell (a network, a path, a traffic and the settings) is measured once in every block, and the order within a block is random. What drifts on the machine hits all networks alike.",
		"Efficiency is a cell against the bare network (host) with the same traffic, taken inside each block; the figure is the geometric mean over the blocks. 100 % costs nothing. More than 100 % is shown as it is.",
		"The figure after ± is half of a " + sure + " interval. The uncertainty of the bare network is in it, because each block has its own.",
		"Networks get different ranks only when they differ beyond chance, tested in pairs within blocks and corrected for the number of pairs (Holm). Networks with ranks in common are tied in this campaign.",
		"Networks that all fill the link are not ranked by throughput: the link is then what was measured.",
		"Absolute values are medians over blocks. Latency percentiles come from merged histograms; percentiles are never averaged.",
		"A value that was not measured is absent; it is never 0. A failed sample has its reason and counts in no figure.",
	})}
	if m := d.Models(); len(m) > 0 {
		out = append(out, page.Para("Networks that are models, rebuilt from kernel parts:"), page.List(m))
	}
	s := d.Campaign.Sampling
	if s.Seconds > 0 {
		words := fmt.Sprintf("Each sample lasts %g s", s.Seconds)
		if s.WarmupSeconds > 0 {
			words += fmt.Sprintf(", after %g s that are not counted", s.WarmupSeconds)
		}
		words += fmt.Sprintf(". At least %d and at most %d blocks", s.MinBlocks, s.MaxBlocks)
		if s.TargetRelativeHalfwidth > 0 {
			words += fmt.Sprintf("; a cell is done when its efficiency is known to ±%g %%", 100*s.TargetRelativeHalfwidth)
		}
		out = append(out, page.Para(words+"."))
	}
	return out
}
