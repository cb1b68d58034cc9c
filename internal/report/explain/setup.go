package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/page"
	"github.com/cnibench/cnibench/internal/stat/estimate"
	"github.com/cnibench/cnibench/internal/unit"
)

// SetUp is what it takes to add some pods at once.
type SetUp struct {
	Pods int `json:"pods"`
	// Metrics are those of pod_setup, by the names of unit.Metrics.
	Metrics map[string]estimate.Estimate `json:"metrics"`
}

// setUps are those of a network in a situation, by the number of pods.
func setUps(d *report.Document, e Explanation) []SetUp {
	var out []SetUp
	for _, s := range d.Analysis.Cells {
		if s.Cell.Network != e.Network || s.OK == 0 || s.Cell.Pods == 0 || report.SituationOf(s.Cell) != e.situation {
			continue
		}
		x := SetUp{Pods: s.Cell.Pods, Metrics: map[string]estimate.Estimate{}}
		for _, m := range setUpMetrics() {
			if v, ok := report.AbsoluteOf(s, m.Name); ok {
				x.Metrics[m.Name] = v
			}
		}
		out = append(out, x)
	}
	slices.SortFunc(out, func(a, b SetUp) int { return a.Pods - b.Pods })
	return out
}

// setUpMetrics are those of pod_setup.
func setUpMetrics() []unit.Metric {
	return slices.DeleteFunc(unit.Metrics(), func(m unit.Metric) bool {
		return !strings.HasPrefix(m.Name, "pod_") && !strings.HasPrefix(m.Name, "pods_")
	})
}

// setUpWords says how long a pod takes with the fewest and with the most at once,
// the step that takes most of it, and the kernel's memory for one.
func setUpWords(e Explanation) string {
	if len(e.SetUps) == 0 {
		return ""
	}
	first, last := e.SetUps[0], e.SetUps[len(e.SetUps)-1]
	ready := func(s SetUp) (string, bool) {
		v, ok := s.Metrics["pod_ready_mean_seconds"]
		return fmt.Sprintf("%s after %s", report.Count(s.Pods, "pod answers", "pods at once answer"), metricValue(v, "s")), ok
	}
	text, ok := ready(first)
	if !ok {
		return ""
	}
	if then, ok := ready(last); ok && last.Pods != first.Pods {
		text += ", " + then + " on average"
	}
	if step, v, ok := longestStep(last); ok {
		text += fmt.Sprintf("; the longest step, %s, takes %s of that", step, metricValue(v, "s"))
	}
	text += "."
	for _, s := range slices.Backward(e.SetUps) {
		if v, ok := s.Metrics["pod_kernel_memory_bytes"]; ok {
			return text + fmt.Sprintf(" Each of %d pods takes %s of the kernel's memory.", s.Pods, metricValue(v, "B"))
		}
	}
	return text
}

// longestStep is the step of a pod's way to its first answer that takes longest.
func longestStep(s SetUp) (words string, longest estimate.Estimate, ok bool) {
	for name, said := range map[string]string{
		"pod_device_mean_seconds":  "until the device exists",
		"pod_address_mean_seconds": "from its device to its address",
		"pod_route_mean_seconds":   "setting routes",
		"pod_waiting_mean_seconds": "from its routes to the end of the plugins",
		"pod_policy_mean_seconds":  "waiting for the network's agent and its policy",
		"pod_started_mean_seconds": "until its first process runs",
		"pod_answer_mean_seconds":  "from all that to the first answer",
	} {
		if v, there := s.Metrics[name]; there && (!ok || v.Value > longest.Value) {
			words, longest, ok = said, v, true
		}
	}
	return words, longest, ok
}

// setUpTable is steps × numbers of pods, nil where no pods were added.
func setUpTable(e Explanation) *page.Table {
	if len(e.SetUps) == 0 {
		return nil
	}
	tab := &page.Table{Caption: "Adding pods at once", Columns: []page.Column{{Head: "of each pod"}}}
	for _, s := range e.SetUps {
		tab.Columns = append(tab.Columns, page.Column{Head: report.Count(s.Pods, "pod", "pods"), Number: true})
	}
	for _, m := range setUpMetrics() {
		if !slices.ContainsFunc(e.SetUps, func(s SetUp) bool { _, ok := s.Metrics[m.Name]; return ok }) {
			continue
		}
		row := []page.Field{page.Text(m.Label)}
		for _, s := range e.SetUps {
			v, ok := s.Metrics[m.Name]
			if !ok {
				row = append(row, page.Text("not measured"))
				continue
			}
			row = append(row, page.Field{Text: unit.Estimate(v.Value, report.Halfwidth(v), m.Unit), Value: &v.Value})
		}
		tab.Rows = append(tab.Rows, row)
	}
	if len(tab.Rows) == 0 {
		return nil
	}
	tab.Notes = append(tab.Notes, "Each line is the time from the one before; the address is reserved within one of these steps, and pod ready and CNI ADD are from the beginning.")
	return tab
}
