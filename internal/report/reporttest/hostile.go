package reporttest

import (
	"math/rand/v2"
	"regexp"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/dataset"
)

// Evil is what a stranger might name a network to harm whoever reads a report.
const Evil = `<script>document.title="pwned"</script>"'=` + "`|@all\x1b[31m\u202e"

// Hostile has evil in every string that comes from outside.
func Hostile() report.Input {
	in := Normal()
	in.Campaign.Name, in.Campaign.Testbed, in.Dir, in.Version = Evil, Evil, Evil, Evil
	poison := func(c result.Cell) result.Cell {
		if !c.IsBaseline() {
			c.Network = Evil + c.Network
		}
		c.Placement, c.Link, c.Profile, c.Family = Evil, Evil, Evil, Evil
		c.Workload, c.Test, c.Protocol, c.Direction = Evil+c.Workload, Evil, Evil, Evil
		return c
	}
	for i := range in.Analysis.Cells {
		s := &in.Analysis.Cells[i]
		if s.OK > 0 {
			s.Shape = ShapeOf(*s, rand.New(rand.NewPCG(1, uint64(i))), 3)
		}
		s.Cell = poison(s.Cell)
		if s.Baseline != nil {
			b := poison(*s.Baseline)
			s.Baseline = &b
		}
		s.Reasons = []dataset.Reason{{Reason: Evil, Count: 2}}
		s.NoEfficiency, s.Progress.Why = Evil, Evil
		if s.Unsupported != "" {
			s.Unsupported = Evil
		}
	}
	for i := range in.Analysis.Rankings {
		r := &in.Analysis.Rankings[i]
		r.Group = poison(r.Group)
		r.Group.Network = ""
		for k := range r.Ranked {
			r.Ranked[k].Network = Evil + r.Ranked[k].Network
		}
		for k := range r.Pairs {
			r.Pairs[k].Better, r.Pairs[k].Worse, r.Pairs[k].Why = Evil+r.Pairs[k].Better, Evil+r.Pairs[k].Worse, Evil
		}
	}
	for i := range in.Analysis.Warnings {
		w := &in.Analysis.Warnings[i]
		w.Code, w.Message, w.Cure = Evil, Evil, Evil
		for k := range w.Cells {
			w.Cells[k] = poison(w.Cells[k])
		}
	}
	SortCells(&in)
	in.Tally.Warnings = map[string]int{Evil: in.Tally.OK}
	in.Environment = hostileEnvironment()
	for _, s := range in.Analysis.Cells {
		in.Environment.Networks[s.Cell.Network] = result.NetworkFacts{Model: Evil, LeavesOut: Evil, Encapsulation: Evil}
	}
	in = Burnt(in, Evil)
	in.Flames.Trouble = Evil
	return in
}

func hostileEnvironment() *result.Environment {
	m := map[string]string{Evil: Evil}
	return &result.Environment{Version: Evil, Testbed: Evil, Host: result.Host{Kernel: Evil, OS: Evil, CPUModel: Evil, Sysctls: m}, Tools: m,
		Places:   map[string]result.PlaceFacts{Evil: {Node: Evil, MTUs: map[string]int{Evil: 1}, Sysctls: m, Offloads: m}},
		Networks: map[string]result.NetworkFacts{}, Changed: []string{Evil}}
}

// Loads matches whatever makes a browser fetch something.
var Loads = regexp.MustCompile(`(?i)https?://|<script|<link[^>]*href="[^d]|<img|<iframe|<object|<embed|@import|url\(|srcset|\son\w+=`)
