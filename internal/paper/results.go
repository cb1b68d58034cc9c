package paper

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/unit"
)

// Results are what was recorded, and what this cnibench could record at all.
type Results struct {
	Campaign    campaign.Campaign
	Environment *result.Environment
	Analysis    stat.Analysis
	// Collector is the one that made Analysis.
	Collector *stat.Collector
	// Known are the names that a campaign of this program may use.
	Known campaign.Known
	// Cut tells that the campaign is a paper's quick cut.
	Cut bool

	factors []factors // of each cell of Analysis, once asked for
}

// confidence of the verdicts.
func (r *Results) confidence() float64 { return r.Analysis.Confidence }

// matching are the recorded cells that a selector of single values means.
func (r *Results) matching(s Selector) []stat.CellSummary {
	if r.factors == nil {
		for _, c := range r.Analysis.Cells {
			r.factors = append(r.factors, factorsOf(c.Cell))
		}
	}
	s = s.onHost()
	var out []stat.CellSummary
	for i, f := range r.factors {
		if s.matches(f) {
			out = append(out, r.Analysis.Cells[i])
		}
	}
	return out
}

// absent says why no recorded cell is as the selector says: it asks what this
// program knows first, then what was recorded.
func (r *Results) absent(s Selector) string {
	if name := s.unknown(); name != "" {
		return fmt.Sprintf("this cnibench has no factor %s", name)
	}
	var workloads []string
	for _, w := range r.Known.Workloads {
		workloads = append(workloads, w.Name)
	}
	for _, k := range []struct {
		factor string
		known  []string
	}{{"network", r.Known.Networks}, {"link", r.Known.Links}, {"profile", r.Known.Profiles}, {"service_proxy", r.Known.ServiceProxies}, {"workload", workloads}} {
		name, isText := s[k.factor].(string)
		if isText && name != "" && !slices.Contains(k.known, name) {
			return fmt.Sprintf("this cnibench has no %s %s", strings.ReplaceAll(k.factor, "_", " "), name)
		}
	}
	if r.Cut {
		return "the quick cut leaves it out: run the whole without --quick"
	}
	return "it is not among the recorded cells: add it to the campaign"
}

// lacks says why a recorded cell has no value of a metric; "" where it has one.
func (r *Results) lacks(s stat.CellSummary, metric string) string {
	switch {
	case s.OK == 0 && s.Unsupported != "":
		return "unsupported here: " + s.Unsupported
	case s.OK == 0 && s.Failed > 0:
		return fmt.Sprintf("all %d samples failed: %s", s.Failed, s.Reasons[0].Reason)
	case s.OK == 0:
		return "nothing was measured of it"
	case r.Collector.Values(metric, s.Cell).N > 0:
		return ""
	}
	if r.Environment != nil && len(r.Environment.Absent) > 0 {
		return fmt.Sprintf("no sample has %s (%s)", metric, strings.Join(r.Environment.Absent, "; "))
	}
	return fmt.Sprintf("no sample has %s", metric)
}

// metricOf is the metric that a claim or table means in a cell.
func metricOf(name string, s stat.CellSummary) string {
	if name == primaryMetric {
		return s.Primary
	}
	return name
}

// lowerIsBetter tells which way a metric is better; a metric that no list has
// is better when higher.
func lowerIsBetter(metric string) bool {
	m, ok := unit.FindMetric(metric)
	if ok {
		return m.Better == unit.Lower
	}
	return slices.ContainsFunc(stat.Derived(), func(d unit.Metric) bool { return d.Name == metric && d.Better == unit.Lower })
}
