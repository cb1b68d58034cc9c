package format

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/cnibench/cnibench/internal/flame"
	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/reporttest"
	"github.com/cnibench/cnibench/internal/report/screen"
	"github.com/cnibench/cnibench/internal/result"
)

// deepStacks are as many functions as graphs take, as deep as real ones.
func deepStacks(in report.Input) report.Flames {
	random := rand.New(rand.NewPCG(11, 12))
	var cells []result.Cell
	for _, s := range in.Analysis.Cells {
		cells = append(cells, s.Cell)
	}
	g := flame.NewGraphs(cells, reporttest.ComponentOf)
	for _, c := range cells {
		if !g.Sample(c) {
			continue
		}
		frames := []string{"entry_SYSCALL_64_after_hwframe", "do_syscall_64"}
		for len(frames) < 40 && random.IntN(25) > 0 {
			frames = append(frames, fmt.Sprintf("%s_of_part_%d", []string{"tcp", "ip", "br", "nf", "sock", "skb"}[random.IntN(6)], (len(frames)*7+random.IntN(3)*random.IntN(3))%400))
			g.Add(c, result.Stack{Frames: frames, Microseconds: 1000 + random.Int64N(200_000)})
		}
	}
	return report.Flames{Graphs: g.All(), Alike: g.Alike}
}

// TestFlameWords: where there are no graphs the page says why, and where they
// are of many cells it says of which.
func TestFlameWords(t *testing.T) {
	labtest.Slow(t)
	sampled := reporttest.Stacked()
	broken := reporttest.Burnt(reporttest.Drawn(), "")
	broken.Flames.Trouble = "raw/b01-c000/server.folded.gz: unexpected EOF"
	absent := reporttest.Normal()
	absent.Environment.Absent = []string{"probe stacks: CPU 0: permission denied"}
	for _, c := range []struct {
		in    report.Input
		words string
	}{
		{reporttest.Normal(), "No flame graph: no stacks were sampled: name stacks in the campaign&#39;s probes."},
		{absent, "No flame graph: no stacks were sampled: CPU 0: permission denied."},
		{sampled, "made without the recorded stacks"},
		{broken, "Stacks that could not be read are not drawn: raw/b01-c000/server.folded.gz: unexpected EOF."},
		{many(), "A campaign of so many cells has all places, messages and streams together in one graph."},
	} {
		page := render(t, "html", c.in, screen.Options{})
		page = reporttest.OwnScript.ReplaceAllString(page, "")
		if !strings.Contains(page, c.words) {
			_, section, _ := strings.Cut(page, `<section id="flame"`)
			t.Errorf("the page lacks %q: %.900s", c.words, section)
		}
	}
	if page := render(t, "html", reporttest.Inputs()["empty"], screen.Options{}); strings.Contains(page, `<section id="flame"`) {
		t.Error("a campaign without records has a section of flame graphs")
	}
}

// drawnBox is a function as the page draws it.
type drawnBox struct {
	S, F      string
	D         int
	Y, Own, W float64
}

// TestFlameInBrowser reads every network's graph back, looks into a function by
// pointer and keyboard, finds one, filters, and saves.
func TestFlameInBrowser(t *testing.T) {
	in := reporttest.Burnt(reporttest.Keep(reporttest.Normal(), "host", "bridge", "flannel/vxlan"), "")
	b := open(t, newBrowser(t), render(t, "html", in, screen.Options{}))
	b.allowSaving(t)
	const plot = `document.querySelector('#flame .plot')`
	boxes := func() []drawnBox { t.Helper(); return ask[[]drawnBox](t, b, plot+`.chart.data()`) }
	options := ask[[]string](t, b, `[...document.querySelector('#flame select').options].map(o => o.textContent)`)
	if !slices.Equal(options, []string{"host (baseline)", "bridge", "flannel/vxlan*"}) {
		t.Fatalf("the networks are %q", options)
	}
	traffic := report.New(in).Groups[0].Traffics[0]
	for i, name := range options {
		ask[bool](t, b, fmt.Sprintf(`(() => { const s = document.querySelector('#flame select'); s.value = '%d'; s.dispatchEvent(new Event('change')); return true; })()`, i))
		at := slices.IndexFunc(in.Flames.Graphs, func(g flame.Graph) bool {
			return strings.HasPrefix(name, g.Cell.Network) && report.TrafficOf(g.Cell) == traffic
		})
		holdBoxes(t, boxes(), name, in.Flames.Graphs[at])
	}
	whole := boxes()[0].W
	// By pointer: a function is as wide as the whole when it is looked into.
	ask[bool](t, b, `(() => { [...document.querySelectorAll('#flame .plot [role=treeitem]')].find(g => g.node.name === 'br_forward').dispatchEvent(new Event('click', { bubbles: true })); return true; })()`)
	for _, x := range boxes() {
		if (x.F == "br_forward" && x.D == 4 || x.F == "all") != (math.Abs(x.W-whole) < 0.02) && x.D >= 4 {
			t.Errorf("inside br_forward %s is %v wide of %v", x.F, x.W, whole)
		}
	}
	// By keyboard: back to the whole, down to the largest, and into it.
	b.run(t, chromedp.Focus(`#flame .plot [role=treeitem][tabindex="0"]`, chromedp.ByQuery), chromedp.KeyEvent(kb.Escape), chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.ArrowDown))
	if got := ask[string](t, b, `document.activeElement.node.name`); got != "tcp_sendmsg" {
		t.Errorf("two steps down is %q", got)
	}
	b.run(t, chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent(kb.Enter))
	if got := ask[string](t, b, `document.activeElement.getAttribute('aria-label')`); !strings.HasPrefix(got, "tcp_part_1, 31 ms, ") || !strings.HasSuffix(got, "; TCP and UDP") {
		t.Errorf("beside it is %q", got)
	}
	picture := string(b.save(t, `[...document.querySelectorAll('#flame .save')].find(s => s.textContent === 'SVG').click()`, ".svg"))
	checkSVG(t, "flame", picture)
	if !strings.Contains(picture, "inside tcp_part_1") || !strings.Contains(picture, "flannel/vxlan*") {
		t.Error("the saved picture does not say what it is of")
	}
	if png := b.save(t, `[...document.querySelectorAll('#flame .save')].find(s => s.textContent === 'PNG').click()`, ".png"); !strings.HasPrefix(string(png), "\x89PNG") {
		t.Errorf("the PNG begins %q", png[:8])
	}
	if table := string(b.save(t, `[...document.querySelectorAll('#flame .save')].find(s => s.textContent === 'CSV').click()`, ".csv")); !strings.Contains(table, "\r\nnf_hook_slow,netfilter,0.07,0.07,") || !strings.Contains(table, "\r\nbr_forward,bridge,0.0004,0.0704,") {
		t.Errorf("the CSV is %s", table)
	}
	b.run(t, chromedp.KeyEvent(kb.Escape), chromedp.SendKeys(`#flame input[type=search]`, "NF_HOOK", chromedp.ByQuery))
	if got := ask[int](t, b, `document.querySelectorAll('#flame .plot .hit').length`); got != 1 {
		t.Errorf("%d functions are found", got)
	}
	ask[bool](t, b, `(() => { const d = document.querySelector('details[data-factor="network"]'); [...d.querySelectorAll('label')].find(l => l.textContent.startsWith('flannel')).querySelector('input').click(); return true; })()`)
	b.drawn(t)
	if got := boxes()[0].S; got != "host (baseline)" {
		t.Errorf("without flannel/vxlan the graph is of %s", got)
	}
	b.silent(t)
}

// holdBoxes compares what is drawn with a graph, with what is too small to draw.
func holdBoxes(t *testing.T, got []drawnBox, name string, g flame.Graph) {
	t.Helper()
	if got[0].F != "all" || got[0].S != name || math.Abs(got[0].Y-float64(g.Microseconds)/1e6) > 1e-9 {
		t.Errorf("%s: the whole is %+v, want %d µs", name, got[0], g.Microseconds)
	}
	whole := got[0].W
	got = got[1:]
	for _, n := range g.Nodes {
		width := whole * float64(n.Microseconds) / float64(g.Microseconds)
		if width < 0.5 {
			continue
		}
		if len(got) == 0 {
			t.Errorf("%s: %s is not drawn", name, n.Function)
			return
		}
		x := got[0]
		got = got[1:]
		if x.F != n.Function || x.D != n.Depth || math.Abs(x.Y*1e6-float64(n.Microseconds)) > 1e-3 || math.Abs(x.Own*1e6-float64(n.Own)) > 1e-3 || math.Abs(x.W-width) > 0.02 {
			t.Errorf("%s: drawn is %+v, the stacks have %+v, %.2f wide", name, x, n, width)
		}
	}
	if len(got) > 0 {
		t.Errorf("%s: %d functions more are drawn", name, len(got))
	}
}
