package section

import (
	"testing"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/reporttest"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/estimate"
	"github.com/cnibench/cnibench/internal/stat/rank"
)

// TestNaturalDirection: less throughput is a minus, longer round trips and more
// CPU are a plus, with the interval in the figure's own direction.
func TestNaturalDirection(t *testing.T) {
	half := reporttest.Estimated(0.5, 0.02, 12, estimate.GeometricMean) // 0.49 to 0.51
	for goal, want := range map[rank.Goal]string{rank.Bandwidth: "-50 % ±1", rank.Latency: "+100 % ±4", rank.CPU: "+100 % ±4"} {
		if got := Change(goal, half); got != want {
			t.Errorf("%s: %q, want %q", goal, got, want)
		}
	}
}

func TestOrdinals(t *testing.T) {
	for n, want := range map[int]string{1: "1st", 2: "2nd", 3: "3rd", 4: "4th", 11: "11th", 12: "12th", 13: "13th", 21: "21st", 102: "102nd", 111: "111th"} {
		if got := ordinal(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
	if got := ranks(2, 3); got != "2nd–3rd" {
		t.Error(got)
	}
}

// TestOtherPathsHaveTables: a path that the headline does not cover has a table of its
// own in the HTML report.
func TestOtherPathsHaveTables(t *testing.T) {
	in := reporttest.Normal()
	other := reporttest.GoalsOf(reporttest.FixtureNetworks(), true)[0]
	for i := range other.Settings {
		other.Settings[i].Cell.Placement = result.IntraHost
	}
	in.Analysis.OtherPaths = []rank.GoalRanking{other}
	if n := len(goals(report.New(in))); n != len(goals(report.New(reporttest.Normal())))+1 {
		t.Errorf("%d elements", n)
	}
}
