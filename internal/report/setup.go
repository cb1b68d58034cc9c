package report

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/unit"
	"github.com/cnibench/cnibench/internal/workload"
)

// setup draws where the time goes until a pod that is added answers: step by
// step, and plugin by plugin for each CNI verb.
func setup(d *document) []block {
	out := d.perTraffic(func(g *group, t result.Cell) []block {
		if t.Workload != workload.PodSetupName {
			return nil
		}
		rows := d.entries(g, t)
		if len(rows) == 0 {
			return nil
		}
		title := t.Traffic()
		own := []block{drawing(stepsChart(g, t, rows))}
		verbs := map[string]bool{}
		for _, r := range rows {
			for verb := range r.summary.Shape.PluginSeconds {
				verbs[verb] = true
			}
		}
		for _, verb := range slices.Sorted(maps.Keys(verbs)) {
			own = append(own, drawing(pluginsChart(g, t, rows, verb)))
		}
		if len(verbs) == 0 {
			own = append(own, drawing(missing(title, "Which CNI plugin takes how long was not recorded.", g.of(t))))
		}
		return own
	}, "How long it takes until a pod that is added answers, from the beginning of all ADDs. Each part is the mean of the pods that were added at once, and its median over blocks.")
	return d.orMissing("No pod was added beside others: name the workload "+workload.PodSetupName+" in the campaign to see how long that takes, and which step takes it.", out)
}

// addSteps are what the time of an ADD is made of, where each was seen.
func addSteps() []string {
	return []string{"pod_device_mean_seconds", "pod_address_mean_seconds", "pod_route_mean_seconds", "pod_waiting_mean_seconds"}
}

// stepsChart stacks the steps on the way to a pod's first answer. Where the
// steps of an ADD were not all seen it is one.
func stepsChart(g *group, t result.Cell, rows []entry) *chart {
	c := &chart{Kind: drawnStack, Title: t.Traffic() + ": until a pod answers, by step", Of: g.of(t), Categories: categoriesOf(rows),
		Words: "From the left to the right in the order of time.", X: axis{Title: "time", Unit: "s"}}
	seen := func(r entry) bool {
		for _, name := range addSteps() {
			if _, ok := absoluteOf(r.summary, name); !ok {
				return false
			}
		}
		return true
	}
	part := func(name, label string, has func(entry) bool) {
		s, some := series{Name: label}, false
		for _, r := range rows {
			v := math.NaN()
			if e, ok := absoluteOf(r.summary, name); ok && has(r) {
				v, some = e.Value, true
			}
			s.Y = append(s.Y, v)
		}
		if some {
			c.Series = append(c.Series, s)
		}
	}
	label := func(name string) string { m, _ := unit.FindMetric(name); return m.Label }
	for _, name := range addSteps() {
		part(name, label(name), seen)
	}
	part("pod_added_mean_seconds", "CNI ADD, not split into steps", func(r entry) bool { return !seen(r) })
	for _, name := range []string{"pod_policy_mean_seconds", "pod_answer_mean_seconds"} {
		part(name, label(name), func(entry) bool { return true })
	}
	if len(c.Series) == 0 {
		return missing(c.Title, "Nothing to draw: no step was seen of every pod.", c.Of)
	}
	return c
}

// pluginsChart stacks how long the plugins of each network run for a verb.
func pluginsChart(g *group, t result.Cell, rows []entry, verb string) *chart {
	c := &chart{Kind: drawnStack, Title: fmt.Sprintf("%s: CNI %s by plugin", t.Traffic(), verb), Of: g.of(t), Categories: categoriesOf(rows),
		Words: "Plugins run one after the other; one that another delegates to (addresses, mostly) is within that one.", X: axis{Title: "time", Unit: "s"}}
	names := map[string]bool{}
	timesOf := func(r entry) map[string]stat.Estimate { return r.summary.Shape.PluginSeconds[verb] }
	for _, r := range rows {
		for name := range timesOf(r) {
			names[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		s := series{Name: name}
		for _, r := range rows {
			v := math.NaN()
			if e, ok := timesOf(r)[name]; ok {
				v = e.Value
			}
			s.Y = append(s.Y, v)
		}
		c.Series = append(c.Series, s)
	}
	c.Words += without(rows, func(r entry) bool { return len(timesOf(r)) > 0 }, "of which no plugin was seen to the end")
	return c
}

// categoriesOf are the rows of a chart of stacks.
func categoriesOf(rows []entry) []category {
	var out []category
	for _, r := range rows {
		of := r.of()
		out = append(out, category{r.name, &of})
	}
	return out
}
