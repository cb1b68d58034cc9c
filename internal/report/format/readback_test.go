package format

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"testing"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/screen"
	"github.com/cnibench/cnibench/internal/report/section"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/estimate"
	"github.com/cnibench/cnibench/internal/stat/summary"
	"github.com/cnibench/cnibench/internal/unit"
)

// line is what a chart draws in one colour.
type line struct{ section, heading, title, series string }

// dot is a point of it; Lo and Hi are nil where it has no interval.
type dot struct {
	X      string
	Y      float64
	Lo, Hi *float64
}

// chartsOf reads what Vega holds of every chart that the page shows, flame graphs
// not (TestFlameInBrowser).
func chartsOf(t *testing.T, b *tab) map[line][]dot {
	t.Helper()
	type read struct {
		Section, Heading, Title string
		Points                  []struct {
			S string
			dot
		}
	}
	out := map[line][]dot{}
	for _, c := range ask[[]read](t, b, `[...document.querySelectorAll('main section')].flatMap(section => { let heading = ''; return [...section.querySelectorAll('h3, figure.chart:not(.flame)')].flatMap(e => {
		if (e.matches('h3')) { heading = e.textContent; return []; }
		return [{ section: section.id, heading, title: e.querySelector('figcaption').textContent,
			points: e.querySelector('.plot').chart.data().map(d => ({ s: d.s, X: String(d.x0), Y: d.y, Lo: d.lo ?? null, Hi: d.hi ?? null })) }]; }); })`) {
		for _, p := range c.Points {
			k := line{c.Section, spaced(c.Heading), spaced(c.Title), spaced(p.S)}
			p.X = spaced(p.X)
			out[k] = append(out[k], p.dot)
		}
	}
	return out
}

// expectation is what the JSON report says that charts must draw.
type expectation struct {
	r     jsonReport
	lines map[line][]dot
}

func expected(r jsonReport) map[line][]dot {
	x := expectation{r, map[line][]dot{}}
	done := map[[2]result.Cell]bool{}
	for _, s := range r.Analysis.Cells {
		leans := func(o summary.Cell) bool { return !o.Cell.IsBaseline() && o.Cell.Baseline() == s.Cell }
		if s.Cell.IsBaseline() && slices.ContainsFunc(r.Analysis.Cells, leans) {
			continue // drawn beside those
		}
		name := s.Cell.Network
		if r.Environment != nil && r.Environment.Networks[name].Model != "" {
			name += report.ModelMark
		}
		x.cell(s, s.Cell, name)
		base := s.Cell.Baseline()
		if s.Cell == base {
			continue
		}
		if at := (result.Cell{Path: s.Cell.Path, Policies: s.Cell.Policies}); !done[[2]result.Cell{base, at}] {
			done[[2]result.Cell{base, at}] = true
			for _, b := range r.Analysis.Cells {
				if b.Cell == base {
					x.cell(b, s.Cell, "host (baseline)")
				}
			}
		}
	}
	for k, dots := range x.lines {
		few := (k.section == "scaling" || k.section == "time") && len(dots) < 2
		nowhere := k.section == "where" && !slices.ContainsFunc(dots, func(d dot) bool { return d.Y != 0 })
		if few || nowhere {
			delete(x.lines, k)
		}
	}
	return x.lines
}

func (x expectation) add(at line, where string, e estimate.Estimate) {
	d := dot{X: where, Y: e.Value}
	if low, high, ok := e.Interval(); ok {
		d.Lo, d.Hi = &low, &high
	}
	x.lines[at] = append(x.lines[at], d)
}

// plain adds a value that is drawn without an interval.
func (x expectation) plain(at line, where string, v float64) {
	x.lines[at] = append(x.lines[at], dot{X: where, Y: v})
}

func figure(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// cell adds what charts draw of a summary, at the place and traffic of a cell.
func (x expectation) cell(s summary.Cell, at result.Cell, name string) {
	if s.OK == 0 {
		return
	}
	heading, traffic := report.SituationOf(at).String(), at.Traffic()
	on := func(section, title, series string) line { return line{section, heading, title, series} }
	sizes := at
	sizes.MessageBytes = 0
	for _, metrics := range section.BarMetrics() {
		for _, metric := range metrics {
			if e, ok := section.BarEstimate(s, metric); ok {
				m, _ := report.FindMetric(metric)
				x.add(on("figures", "Bare network and pod networks: "+sizes.Traffic()+", "+m.Label, name), section.MessageName(at), e)
				break
			}
		}
	}
	for _, q := range s.Shape.Curve {
		x.plain(on("latency", traffic+": round-trip time by percentile", name), figure(q.Share), q.Seconds)
	}
	for _, v := range s.Shape.Blocks {
		x.plain(on("time", traffic+": block by block", name), figure(float64(v.Block)), v.Value)
	}
	if w := s.Shape.Window; w != nil {
		for i, v := range w.MedianBitsPerSecond {
			k := on("time", traffic+": inside the measured window", name)
			x.lines[k] = append(x.lines[k], dot{figure((float64(i) + 0.5) * w.IntervalSeconds), v, &w.LowBitsPerSecond[i], &w.HighBitsPerSecond[i]})
		}
	}
	streams := at
	streams.Streams = 0
	if e, ok := s.Absolute[s.Primary]; ok && at.Streams > 0 {
		m, _ := report.FindMetric(s.Primary)
		x.add(on("scaling", streams.Traffic()+": "+m.Label+" by streams", name), figure(float64(at.Streams)), e)
	}
	for mode, e := range s.Shape.CPUCores {
		x.plain(on("cpu", traffic+": cores used, by mode of CPU time", mode), name, e.Value)
	}
	x.parts(s, on, traffic, name)
}

// parts adds what is drawn in stacks: components and steps of a set-up.
func (x expectation) parts(s summary.Cell, on func(section, title, series string) line, traffic, name string) {
	if a := s.Attribution; a != nil {
		p := section.PerWorkOf(a.Work)
		for _, c := range unit.Components() {
			if part, ok := a.Component(c.Name); ok && c.Charged {
				x.plain(on("where", traffic+": CPU time per "+p.Name+" by component", c.Label), name, p.Factor*part.Seconds.Value)
			}
		}
	}
	if l := s.Ladder; l != nil {
		p := section.PerWorkOf(l.Work)
		for _, c := range l.Checks {
			title := traffic + ": " + name + ", steps compared with stacks"
			x.add(on("ladder", title, section.BySteps), section.ComponentWords(c), p.Scaled(c.Steps))
			x.add(on("ladder", title, section.ByStacks), section.ComponentWords(c), p.Scaled(c.Stacks))
		}
	}
	steps := []string{"pod_added_mean_seconds"}
	if _, ok := s.Absolute["pod_route_mean_seconds"]; ok {
		steps = section.AddSteps()
	}
	for _, metric := range append(steps, "pod_policy_mean_seconds", "pod_answer_mean_seconds") {
		if e, ok := s.Absolute[metric]; ok {
			m, _ := unit.FindMetric(metric)
			label := m.Label
			if metric == "pod_added_mean_seconds" {
				label = "CNI ADD, not split into steps"
			}
			x.plain(on("setup", traffic+": until a pod answers, by step", label), name, e.Value)
		}
	}
	for verb, plugins := range s.Shape.PluginSeconds {
		for plugin, e := range plugins {
			x.plain(on("setup", traffic+": CNI "+verb+" by plugin", plugin), name, e.Value)
		}
	}
}

// holdCharts reads the numbers of every chart back from the browser, and compares
// each with the JSON report: none is missing, and there is no other.
func (b *tab) holdCharts(t *testing.T, in report.Input) {
	t.Helper()
	var r jsonReport
	if err := json.Unmarshal([]byte(render(t, "json", in, screen.Options{})), &r); err != nil {
		t.Fatal(err)
	}
	got, want := chartsOf(t, b), expected(r)
	for k, dots := range want {
		holdLine(t, k, got[k], dots)
	}
	for k, dots := range got {
		if _, ok := want[k]; !ok {
			t.Errorf("%+v: the page draws %d points, the JSON has none", k, len(dots))
		}
	}
	holdBars(t, b)
}

// drawnError is the most that a drawn number may be off: they have four digits of
// the smallest of a series.
const drawnError = 6e-4

func holdLine(t *testing.T, k line, got, want []dot) {
	t.Helper()
	byPlace := func(a, b dot) int {
		x, errX := strconv.ParseFloat(a.X, 64)
		y, errY := strconv.ParseFloat(b.X, 64)
		if errX == nil && errY == nil {
			return cmp.Compare(x, y)
		}
		return cmp.Compare(a.X, b.X)
	}
	slices.SortFunc(got, byPlace)
	slices.SortFunc(want, byPlace)
	if len(got) != len(want) {
		t.Errorf("%+v: %d points are drawn, the JSON has %d", k, len(got), len(want))
		return
	}
	for i, w := range want {
		g := got[i]
		same := g.X == w.X
		if x, err := strconv.ParseFloat(g.X, 64); err == nil && !same {
			y, err := strconv.ParseFloat(w.X, 64)
			same = err == nil && near(x, y)
		}
		bounds := (g.Lo == nil) == (w.Lo == nil) && (g.Hi == nil) == (w.Hi == nil)
		if bounds && g.Lo != nil {
			bounds = near(*g.Lo, *w.Lo) && near(*g.Hi, *w.Hi)
		}
		if !same || !near(g.Y, w.Y) || !bounds {
			t.Errorf("%+v: drawn is %s, the JSON has %s", k, dotWords(g), dotWords(w))
		}
	}
}

func dotWords(d dot) string {
	text, err := json.Marshal(d)
	return fmt.Sprint(string(text), err)
}

func near(a, b float64) bool {
	return a == b || math.Abs(a-b) <= drawnError*math.Max(math.Abs(a), math.Abs(b))
}

// holdBars compares the bars of tables with the values next to them: all bars of a
// table are on one scale.
func holdBars(t *testing.T, b *tab) {
	t.Helper()
	type bar struct{ Table, Row, Value, Width float64 }
	tables := map[float64][]bar{}
	for _, x := range ask[[]bar](t, b, `[...document.querySelectorAll('#absolute figure.table')].flatMap((f, table) => [...f.querySelectorAll('tbody tr')].map((tr, row) => ({ table, row,
		value: Number(tr.querySelector('data')?.value ?? 0), width: Number(tr.querySelector('rect.value')?.getAttribute('width') ?? -1) })).filter(x => x.width >= 0))`) {
		tables[x.Table] = append(tables[x.Table], x)
	}
	for _, n := range slices.Sorted(maps.Keys(tables)) {
		most := slices.MaxFunc(tables[n], func(a, b bar) int { return cmp.Compare(a.Value, b.Value) })
		for _, x := range tables[n] {
			if want := most.Width * x.Value / most.Value; most.Value <= 0 || math.Abs(x.Width-want) > 0.5 {
				t.Errorf("table %v, row %v: %v is drawn %.1f wide, want %.1f", n, x.Row, x.Value, x.Width, want)
			}
		}
	}
}
