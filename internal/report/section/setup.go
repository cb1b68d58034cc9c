package section

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/page"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/estimate"
	"github.com/cnibench/cnibench/internal/unit"
	"github.com/cnibench/cnibench/internal/workload"
)

// setup draws where the time goes until a pod that is added answers: step by
// step, and plugin by plugin for each CNI verb.
func setup(d *report.Document) []page.Element {
	out := perTraffic(d, func(g *report.Group, t result.Cell) []page.Element {
		if t.Workload != workload.PodSetupName {
			return nil
		}
		rows := d.Entries(g, t)
		if len(rows) == 0 {
			return nil
		}
		title := t.Traffic()
		own := []page.Element{page.Drawing(stepsChart(g, t, rows))}
		verbs := map[string]bool{}
		for _, r := range rows {
			for verb := range r.Summary.Shape.PluginSeconds {
				verbs[verb] = true
			}
		}
		for _, verb := range slices.Sorted(maps.Keys(verbs)) {
			own = append(own, page.Drawing(pluginsChart(g, t, rows, verb)))
		}
		if len(verbs) == 0 {
			own = append(own, page.Drawing(page.Missing(title, "Which CNI plugin takes how long was not recorded.", g.Of(t))))
		}
		return own
	}, "How long it takes until a pod that is added answers, from the beginning of all ADDs. Each part is the mean of the pods that were added at once, and its median over blocks.")
	return orMissing(d, "No pods were added at once: name the workload "+workload.PodSetupName+" in the campaign to see how long that takes, and which step takes it.", out)
}

// AddSteps are what the time of an ADD is made of, where each was seen.
func AddSteps() []string {
	return []string{"pod_device_mean_seconds", "pod_address_mean_seconds", "pod_route_mean_seconds", "pod_waiting_mean_seconds"}
}

// stepsChart stacks the steps on the way to a pod's first answer. Where the
// steps of an ADD were not all seen it is one.
func stepsChart(g *report.Group, t result.Cell, rows []report.Entry) *page.Chart {
	c := &page.Chart{Kind: page.DrawnStack, Title: t.Traffic() + ": until a pod answers, by step", Of: g.Of(t), Categories: categoriesOf(rows),
		Words: "From the left to the right in the order of time.", X: page.Axis{Title: "time", Unit: "s"}}
	seen := func(r report.Entry) bool {
		for _, name := range AddSteps() {
			if _, ok := report.AbsoluteOf(r.Summary, name); !ok {
				return false
			}
		}
		return true
	}
	part := func(name, label string, has func(report.Entry) bool) {
		s, some := page.Series{Name: label}, false
		for _, r := range rows {
			v := math.NaN()
			if e, ok := report.AbsoluteOf(r.Summary, name); ok && has(r) {
				v, some = e.Value, true
			}
			s.Y = append(s.Y, v)
		}
		if some {
			c.Series = append(c.Series, s)
		}
	}
	label := func(name string) string { m, _ := unit.FindMetric(name); return m.Label }
	for _, name := range AddSteps() {
		part(name, label(name), seen)
	}
	part("pod_added_mean_seconds", "CNI ADD, not split into steps", func(r report.Entry) bool { return !seen(r) })
	for _, name := range []string{"pod_policy_mean_seconds", "pod_answer_mean_seconds"} {
		part(name, label(name), func(report.Entry) bool { return true })
	}
	if len(c.Series) == 0 {
		return page.Missing(c.Title, "Nothing to draw: no step was seen of every pod.", c.Of)
	}
	return c
}

// pluginsChart stacks how long the plugins of each network run for a verb.
func pluginsChart(g *report.Group, t result.Cell, rows []report.Entry, verb string) *page.Chart {
	c := &page.Chart{Kind: page.DrawnStack, Title: fmt.Sprintf("%s: CNI %s by plugin", t.Traffic(), verb), Of: g.Of(t), Categories: categoriesOf(rows),
		Words: "Plugins run one after the other; one that another delegates to (addresses, mostly) is within that one.", X: page.Axis{Title: "time", Unit: "s"}}
	names := map[string]bool{}
	timesOf := func(r report.Entry) map[string]estimate.Estimate { return r.Summary.Shape.PluginSeconds[verb] }
	for _, r := range rows {
		for name := range timesOf(r) {
			names[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		s := page.Series{Name: name}
		for _, r := range rows {
			v := math.NaN()
			if e, ok := timesOf(r)[name]; ok {
				v = e.Value
			}
			s.Y = append(s.Y, v)
		}
		c.Series = append(c.Series, s)
	}
	c.Words += without(rows, func(r report.Entry) bool { return len(timesOf(r)) > 0 }, "of which no plugin was seen to the end")
	return c
}
