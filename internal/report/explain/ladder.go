package explain

import (
	"fmt"

	"github.com/cnibench/cnibench/internal/report/screen"
	"github.com/cnibench/cnibench/internal/report/section"
)

// ladderLines are a traffic's ladder, and what the stacks say of the same.
func ladderLines(sc screen.Screen, x ExplainedTraffic) []string {
	if x.Ladder == nil {
		return nil
	}
	l, figures := *x.Ladder, section.FiguresOf(*x.Ladder)
	lines := append([]string{"", fmt.Sprintf("Step by step, %s: %s", x.Traffic, figures.Label)}, sc.Table(*section.StepTable(l))...)
	for _, m := range section.LadderRemarks(l) {
		lines = append(lines, sc.Wrap(m, "! ", "  ")...)
	}
	if len(l.Checks) > 0 {
		lines = append(append(lines, ""), sc.Table(*section.CheckTable(l))...)
	}
	for _, c := range l.Checks {
		if c.Disagree {
			lines = append(lines, sc.Wrap(section.DisagreeSentence(l, c), "! ", "  ")...)
		}
	}
	return lines
}
