package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/bench"
	"github.com/cnibench/cnibench/internal/buildable"
	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/paper"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/unit"
	"github.com/cnibench/cnibench/internal/workload"
)

// What a time budget makes of a paper's campaign: short samples, and as many blocks as
// an interval needs, in most of the time; the rest goes for building the lab and for the report.
const (
	budgetSampling = "sampling: {seconds: %g, warmup_seconds: %g, slices: 2, sliced_seconds: %g%s, min_blocks: 2, max_blocks: %d, max_seconds: %g}"
	budgetSeconds  = 0.25
	budgetWarmup   = 0.1
	// budgetSliced are four slices of round trips. In two of them, 40 ms, a sample varied as much as
	// one of a stream in 200 ms (by 2.8 and 2.5 % within samples, dakic2024, 2026-11-27).
	budgetSliced = 0.08
	// budgetRest is the part of a budget that is not measured in, and mostRest how much that is at
	// most. Building the lab, the report and restoring what tuned changed took 19 to 26 s in four
	// runs (dakic2024, 2026-11-27).
	budgetRest = 0.1
	mostRest   = 36 * time.Second
	// budgetExplaining is for papers with claims that only explaining windows decide, and
	// budgetUnexplained for those of which nothing is read in explaining windows.
	budgetExplaining  = ", explain_every: 2"
	budgetUnexplained = ", explain_seconds: 0"
)

// budgetMark is in the name of a campaign that was made for a time budget, between the
// paper's id and the budget.
const budgetMark = "-for-"

// agentsMark follows a paper's id in the name of a campaign that was made of its
// kubernetes.yaml for a time budget.
const agentsMark = "-kubernetes"

// PaperKnown is what a paper asks of this program when it is loaded.
func PaperKnown() paper.Known {
	return paper.Known{Names: known(), LinkRate: buildable.LinkRate, Primary: primary}
}

// budgetCampaign is the text of a paper's campaign for a time budget.
func budgetCampaign(p paper.Paper, budget time.Duration) ([]byte, error) {
	explaining := ""
	switch {
	case slices.ContainsFunc(p.Measured(), explained):
		explaining = budgetExplaining
	case !slices.ContainsFunc(p.Metrics(), readBesideSlices):
		explaining = budgetUnexplained
	}
	sampling := fmt.Sprintf(budgetSampling, budgetSeconds, budgetWarmupOf(p), budgetSliced, explaining, manyBlocks, measuringIn(budget).Seconds())
	line := regexp.MustCompile(`(?m)^sampling:.*$`)
	text := string(p.Campaign)
	switch {
	case line.MatchString(text):
		text = line.ReplaceAllString(text, sampling)
	case strings.Contains(text, "sampling"):
		return nil, usageError{fmt.Errorf("%s: --for replaces its sampling, which must be on one line", p.ID)}
	default:
		text = strings.TrimRight(text, "\n") + "\n" + sampling + "\n"
	}
	id := p.ID
	if p.AgentsOnly() {
		id += agentsMark
	}
	name := "name: " + id + budgetMark + shortDuration(budget)
	return []byte(regexp.MustCompile(`(?m)^name:.*$`).ReplaceAllString(text, name)), nil
}

// measuringIn is the part of a budget that is measured in.
func measuringIn(budget time.Duration) time.Duration {
	return budget - min(mostRest, time.Duration(budgetRest*float64(budget)))
}

// budgetWarmupOf is the warm-up of a paper's samples. A tool that takes whole seconds would
// leave out one second for each that it counts: then there is no warm-up, and twice as many
// blocks. The congestion window of a lab's path, with a round trip of some 20 µs, is open
// within milliseconds of that second. The engine's long windows need their warm-up.
func budgetWarmupOf(p paper.Paper) float64 {
	long := campaign.Sampling{Seconds: budgetSeconds, WarmupSeconds: budgetWarmup}
	short := campaign.Sampling{Seconds: budgetSeconds}
	doubled := false
	for _, c := range p.Used {
		with, err := sampleLength(long, c)
		without, bad := sampleLength(short, c)
		if err != nil || bad != nil || longWindow(c) {
			return budgetWarmup
		}
		doubled = doubled || with >= 2*without
	}
	if doubled {
		return 0
	}
	return budgetWarmup
}

// longWindow reports whether the engine measures a cell in one window.
func longWindow(c result.Cell) bool {
	w, err := workload.Find(c.Workload)
	return err == nil && len(w.Spec().Needs) == 0 && !workload.Sliceable(c)
}

// explained reports whether a claim is about what only explaining windows read.
func explained(c paper.Claim) bool {
	return strings.Contains(c.Metric, "_component_seconds_") || slices.ContainsFunc(unit.NodeMetrics(), func(m unit.Metric) bool { return m.Name == c.Metric })
}

// readBesideSlices reports whether a metric is not one of a sample's own: probes read it,
// or it is a cost that a report makes of what they read.
func readBesideSlices(metric string) bool {
	_, own := unit.FindMetric(metric)
	return !own
}

// shortDuration is "10m" and not "10m0s".
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// prospects is what is known of a lab before anything is measured. rows are this machine's
// networks, refused what notOfStudies makes of them. With tuning, profiles change the whole
// machine.
func prospects(c campaign.Campaign, rows []listed, refused func(result.Cell) string, tuning bool) paper.Testbed {
	t := paper.Testbed{Cost: func(cell result.Cell) time.Duration { return sampleTime(c, cell) }}
	if tuning && len(c.Profiles) > 1 {
		t.Profile = tuneTime
	}
	networks := missingNetworks(rows)
	tools, probes, proxies := map[string]string{}, map[string]string{}, map[string]string{}
	for _, row := range listServiceProxies() {
		proxies[row.Name] = strings.Join(row.Missing, "; ")
	}
	for _, row := range listWorkloads() {
		tools[row.Name] = strings.Join(row.Missing, "; ")
	}
	for _, row := range listProbes() {
		probes[row.Name] = strings.Join(row.Missing, "; ")
	}
	t.Refuses = func(cell result.Cell) string {
		return cmp.Or(networks[cell.Network], refused(cell), tools[cell.Workload], proxies[cell.ServiceProxy])
	}
	t.Lacks = func(cell result.Cell, metric string) string {
		why := []string{t.Refuses(cell)}
		switch {
		case strings.HasPrefix(metric, "cycles_"), strings.HasPrefix(metric, "instructions_"):
			why = append(why, probes["counters"])
		case strings.Contains(metric, "_component_seconds_"):
			why = append(why, probes["stacks"])
		}
		for _, s := range why {
			if s != "" {
				return s
			}
		}
		return ""
	}
	return t
}

// missingNetworks says of each network why this machine cannot build it.
func missingNetworks(rows []listed) map[string]string {
	out := map[string]string{}
	for _, row := range rows {
		if len(row.Missing) > 0 {
			out[row.Name] = row.Name + ": " + strings.Join(row.Missing, "; ")
		}
	}
	return out
}

// notOfStudies says of each cell that a lab has, and that says nothing about a study, why: its
// packets pass a program on this machine, and the kernel elsewhere, or settings of its profile
// would not take effect.
func notOfStudies(rows []listed, c campaign.Campaign, allowTuning bool) func(result.Cell) string {
	networks, profiles := map[string]string{}, map[string]string{}
	for _, row := range rows {
		networks[row.Name] = paper.UserSpace(row.Name, result.NetworkFacts{Datapath: row.Datapath})
	}
	for _, name := range c.Profiles {
		profiles[name] = untakenHere(name, allowTuning)
	}
	return func(cell result.Cell) string { return cmp.Or(networks[cell.Network], profiles[cell.Profile]) }
}

// sampleTime is what a sample of a cell takes.
func sampleTime(c campaign.Campaign, cell result.Cell) time.Duration {
	if sliced := bench.SlicedTime(c.Sampling, cell); sliced > 0 {
		return sliced
	}
	length, err := sampleLength(c.Sampling, cell)
	if err != nil { // the run says so
		length = c.Sampling.Warmup() + c.Sampling.Window()
	}
	return length + bench.Overhead
}

// announceClaims says which claims a testbed can decide, and which no run here can.
func announceClaims(p paper.Paper, t paper.Testbed, w io.Writer) {
	all := p.Prospects(t)
	reasons, can, part, counted := map[string]int{}, 0, 0, 0
	for _, x := range all {
		if !x.Claim.Counts() {
			continue
		}
		counted++
		if x.Why == "" {
			can++
			continue
		}
		reasons[x.Why]++
		if x.Part {
			part++
		}
	}
	fmt.Fprintf(w, "this testbed can decide %d of the %d findings and numbers of %s; %d more it can contradict, or reproduce in part\n", can, counted, p.ID, part)
	for _, why := range slices.Sorted(maps.Keys(reasons)) {
		fmt.Fprintf(w, "  not %d: %s\n", reasons[why], why)
	}
}

// announceAgents says what kubernetes.yaml is about.
func announceAgents(p paper.Paper, w io.Writer) {
	counted := 0
	for _, c := range p.Claims {
		if c.Counts() {
			counted++
		}
	}
	fmt.Fprintf(w, "%s of %s is about %d claims, of which %d are findings and numbers\n", paper.KubernetesFile, p.ID, len(p.Claims), counted)
	fmt.Fprintf(w, "which of them these clusters can decide is found out on them; all %d cells are tried\n", len(p.Used))
}

// withinBudget gives the cells of all claims that a lab can decide, and those that it refuses:
// they take no time, and their records have the reason. Of a dry run they are those of the first
// block.
func (f reproduceFlags) withinBudget(p paper.Paper, t paper.Testbed, budget *paper.Budget, w io.Writer) ([]result.Cell, error) {
	all, first := budget.Cells(), budget.Next(nil)
	if len(all) == 0 {
		return nil, errors.New("this testbed can decide none of the claims: see the reasons above")
	}
	cells := first.Cells()
	fmt.Fprintf(w, "in %s: first the %d cells of %d claims, %s a block\n", shortDuration(f.budget), len(cells), len(first.Claims), first.Block.Round(time.Second))
	if more := len(all) - len(cells); more > 0 {
		fmt.Fprintf(w, "  %d more cells wait until claims are decided\n", more)
	}
	if f.run.dryRun {
		return append(cells, p.Refused(t)...), nil
	}
	return append(all, p.Refused(t)...), nil
}

// openClaims is the stopping rule of a reproduction.
func openClaims(p paper.Paper, c campaign.Campaign) func([]result.Sample) map[result.Cell]bool {
	opt := analysisOptions(c, result.Environment{})
	return p.Open(opt)
}

// claimStoppingRule measures the cells of claims that are still open. Claims compare any cells
// in any way, so it keeps the records; studies have some dozen cells.
type claimStoppingRule struct {
	// from is how many blocks are measured of all cells.
	from    int
	open    func([]result.Sample) map[result.Cell]bool
	samples []result.Sample
}

// Keep takes a record.
func (j *claimStoppingRule) Keep(s *result.Sample) { j.samples = append(j.samples, *s) }

// Done gives the cells that no open claim needs.
func (j *claimStoppingRule) Done(n int) map[result.Cell]bool {
	if n < j.from {
		return nil
	}
	return j.open(slices.DeleteFunc(slices.Clone(j.samples), func(s result.Sample) bool { return s.Block > n }))
}

// study is what a run is that repeats a published study.
type study struct {
	// argv resumes it, without --resume and --out.
	argv []string
	// refused says why a cell is not measured although the testbed may have it; nil: none is.
	refused func(result.Cell) string
	// cells are those that it measures of the campaign's, as key names them; nil: all.
	cells map[result.Cell]bool
	key   func(result.Cell) result.Cell
	// open is its stopping rule, in place of the campaign's, of all records so far.
	open func([]result.Sample) map[result.Cell]bool
	// openFrom is the block after which the rule is asked first; 0: before the first.
	openFrom int
	// onlyOpen: what it leaves out is not measured with the cells that are compared with it.
	onlyOpen bool
	// show says what came out, in place of the report.
	show func(dir string) error
}

// choose has the study measure some cells of its campaign. They are those of a lab, or of
// clusters with the networks that the campaign names. Hosts and clusters have their own
// congestion control and placement, clusters their own MTU, and hosts that are nodes of a
// Kubernetes its network in place of the study's; there a cell is chosen that is one of them in
// all else.
func (s *study) choose(testbed string, cells []result.Cell) {
	s.key = func(c result.Cell) result.Cell { return c }
	switch testbed {
	case campaign.Kubernetes:
		s.key = func(c result.Cell) result.Cell {
			c.CongestionControl, c.CPUs, c.MTU = "", "", 0
			return c
		}
	case campaign.Hosts:
		s.key = func(c result.Cell) result.Cell {
			c.CongestionControl, c.CPUs = "", ""
			if !c.IsBaseline() {
				c.Network = ""
			}
			return c
		}
	}
	s.cells = map[result.Cell]bool{}
	for _, c := range cells {
		s.cells[s.key(c)] = true
	}
}

// leavesOut reports whether the study does not measure a cell of its campaign.
func (s *study) leavesOut(c result.Cell) bool { return s.cells != nil && !s.cells[s.key(c)] }
