package format

import (
	"context"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	cdp "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"golang.org/x/net/html"

	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/repo/chromium"
	"github.com/cnibench/cnibench/internal/report/reporttest"
	"github.com/cnibench/cnibench/internal/report/screen"
)

// shots asks for pictures of every page that is opened, for people to look at.
var shots = flag.String("shots", "", "keep screenshots in this folder")

// tab is a page in a real browser, and what was said on its console.
type tab struct {
	context.Context
	dir  string
	mu   sync.Mutex
	said []string
}

// newBrowser starts one browser for a test.
func newBrowser(t *testing.T) context.Context {
	t.Helper()
	labtest.Slow(t)
	program := labtest.Tool(t, "chromium", "chromium")
	ctx, closeAll, err := chromium.Open(t.Context(), 10*time.Minute, chromedp.ExecPath(program), chromedp.Flag("disable-quic", true))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := closeAll(); err != nil {
			t.Error(err)
		}
	})
	if err := chromedp.Run(ctx); err != nil {
		t.Fatal(err)
	}
	return ctx
}

// open shows a page in a tab of its own, and waits until it can be used and its
// charts are drawn.
func open(t *testing.T, browser context.Context, text string) *tab {
	t.Helper()
	dir, err := os.MkdirTemp("", "cnb-report-")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := chromedp.NewContext(browser)
	limited, cancelTime := context.WithTimeout(ctx, 2*time.Minute)
	b := &tab{Context: limited, dir: dir}
	t.Cleanup(func() {
		cancelTime()
		cancel()
		_ = os.RemoveAll(dir)
	})
	chromedp.ListenTarget(limited, b.listen)
	file := filepath.Join(dir, "report.html")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	b.run(t, log.Enable(), runtime.Enable(), emulation.SetDeviceMetricsOverride(1280, 900, 1, false), chromedp.Navigate("file://"+file))
	b.drawn(t)
	return b
}

func (b *tab) listen(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		b.said = append(b.said, fmt.Sprint("console.", e.Type, " ", e.Args[0].Value, e.Args[0].Description))
	case *runtime.EventExceptionThrown:
		b.said = append(b.said, "exception "+e.ExceptionDetails.Error())
	case *log.EventEntryAdded:
		b.said = append(b.said, "log "+e.Entry.Text)
	}
}

func (b *tab) run(t *testing.T, actions ...chromedp.Action) {
	t.Helper()
	if err := chromedp.Run(b, actions...); err != nil {
		t.Fatal(err)
	}
}

// ask runs script in the page and gives its answer.
func ask[T any](t *testing.T, b *tab, script string) T {
	t.Helper()
	var answer T
	b.run(t, chromedp.Evaluate(script, &answer, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	return answer
}

// drawn waits until every chart that is shown is drawn.
func (b *tab) drawn(t *testing.T) {
	t.Helper()
	failed := ask[string](t, b, `new Promise(done => { const look = () => {
		const d = document.documentElement.dataset;
		if (d.failed) done(d.failed); else if (d.ready && d.drawn) done(''); else setTimeout(look, 20); }; setTimeout(look, 50); })`)
	if failed != "" {
		t.Fatalf("the page says that it failed: %s", failed)
	}
}

func (b *tab) silent(t *testing.T) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.said {
		t.Errorf("the browser's console: %s", s)
	}
}

// showAll shows every table and chart.
func (b *tab) showAll(t *testing.T) {
	t.Helper()
	ask[bool](t, b, `(() => { for (;;) { const all = document.querySelector('.more button:last-child'); if (!all) return true; all.click(); } })()`)
	b.drawn(t)
}

// TestHTMLInBrowser opens reports in a real browser: nothing may be said on its
// console, every table must say what the data says, and every chart be drawn.
func TestHTMLInBrowser(t *testing.T) {
	browser := newBrowser(t)
	cases := reporttest.Inputs()
	cases["hostile"], cases["shaped"], cases["analysed"], cases["stacked"] = reporttest.Hostile(), shaped(), reporttest.Analysed(), reporttest.Stacked()
	for name, in := range cases {
		t.Run(name, func(t *testing.T) {
			text := render(t, "html", in, screen.Options{})
			b := open(t, browser, text)
			b.shoot(t, name)
			b.showAll(t)
			b.silent(t)
			if title := ask[string](t, b, `document.title`); strings.Contains(title, "pwned") && name != "hostile" || title == "pwned" {
				t.Error("a script ran")
			}
			want, _ := readHTML(t, text)
			got := readDOM(t, ask[string](t, b, `document.documentElement.outerHTML`))
			for k, v := range want {
				if got[k] != v {
					t.Errorf("%v: the browser shows %q, the data has %q", k, got[k], v)
				}
			}
			if len(got) != len(want) {
				t.Errorf("the browser shows %d figures, the data has %d", len(got), len(want))
			}
			charts := 0
			for _, block := range dataOf(t, text).Blocks {
				if block.Kind != "" {
					charts++
				}
			}
			if n := ask[int](t, b, `document.querySelectorAll('.plot svg .mark-rect path, .plot svg .mark-line path').length`); charts > 0 && n < charts {
				t.Errorf("%d marks in %d charts", n, charts)
			}
			if n := ask[int](t, b, `document.querySelectorAll('.plot svg').length`); n != charts {
				t.Errorf("%d charts are drawn, the data has %d", n, charts)
			}
			if name != "hostile" { // its names are not what they seem
				b.holdCharts(t, in)
			}
		})
	}
}

// readDOM reads the tables as readHTML reads the data.
func readDOM(t *testing.T, text string) figures {
	t.Helper()
	root, err := html.Parse(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	page := figures{}
	heading, caption := "", ""
	for n := range root.Descendants() {
		switch {
		case n.Data == "section":
			heading = ""
		case n.Data == "h3":
			heading = content(n)
		case n.Data == "figcaption":
			caption = content(n)
			if heading != "" {
				caption = spaced(heading + "; " + caption)
			}
		case n.Data == "table" && attribute(n, "aria-labelledby") != "":
			readRows(n, caption, page)
		}
	}
	return page
}

func readRows(table *html.Node, caption string, page figures) {
	var columns []string
	for n := range table.Descendants() {
		if n.Data != "tr" {
			continue
		}
		row, i := "", 0
		for d := range n.ChildNodes() {
			switch {
			case d.Data == "th" && n.Parent.Data == "thead":
				columns = append(columns, content(d))
			case d.Data == "th":
				row = content(d)
			case d.Data == "td":
				i++
				page[[3]string{caption, row, columns[i]}] = withRank(content(d))
			}
		}
	}
}

// withRank marks the rank behind a figure, as the figures of other formats have it.
func withRank(text string) string {
	m := regexp.MustCompile(`^(.*%.*) (link-bound|[0-9]+[a-z]{2}(?:–[0-9]+[a-z]{2})?)$`).FindStringSubmatch(text)
	if m == nil {
		return text
	}
	return m[1] + " rank " + strings.TrimSuffix(m[2], "-bound")
}

// TestHTMLFilters clicks filters and reads tables and charts back.
func TestHTMLFilters(t *testing.T) {
	b := open(t, newBrowser(t), render(t, "html", shaped(), screen.Options{}))
	tables := `[...document.querySelectorAll('main section:not(#efficiency) figure.table')].filter(f => f.offsetParent).length`
	charts := `[...document.querySelectorAll('main figure.chart')].filter(f => f.offsetParent).length`
	names := `[...document.querySelectorAll('#efficiency tbody tr')].filter(r => !r.hidden && r.offsetParent).map(r => r.cells[0].textContent)`
	series := `(() => { const p = [...document.querySelectorAll('#figures .plot')].find(p => p.offsetParent); return [...new Set(p.chart.data().map(d => d.s))]; })()`
	before := ask[[]string](t, b, series)
	if !slices.Contains(before, "macvlan") || !slices.Contains(before, "host (baseline)") {
		t.Fatalf("the first chart has %q", before)
	}
	choose := func(factor, value string) {
		t.Helper()
		ask[bool](t, b, fmt.Sprintf(`(() => { const d = document.querySelector('details[data-factor="%s"]'); d.open = true;
			const l = [...d.querySelectorAll('label')].find(l => l.textContent === %q); l.querySelector('input').click(); d.open = false; return true; })()`, factor, value))
		b.drawn(t)
	}
	choose("network", "macvlan")
	if got := ask[[]string](t, b, series); slices.Contains(got, "macvlan") || len(got) != len(before)-1 {
		t.Errorf("the first chart has %q without macvlan", got)
	}
	if got := ask[[]string](t, b, names); slices.Contains(got, "macvlan") || len(got) == 0 {
		t.Errorf("the efficiency tables have %q without macvlan", got)
	}
	choose("profile", "default_settings")
	for _, section := range []string{"efficiency", "figures", "absolute", "latency", "time", "scaling", "cpu"} {
		heads := ask[[]string](t, b, fmt.Sprintf(`[...document.querySelectorAll('#%s h3, #%s figcaption')].filter(h => h.offsetParent).map(h => h.textContent)`, section, section))
		if len(heads) == 0 || slices.ContainsFunc(heads, func(h string) bool { return strings.Contains(h, "default_settings") }) {
			t.Errorf("%s shows %q without default_settings", section, heads)
		}
	}
	choose("profile", "network-throughput")
	if n, m := ask[int](t, b, tables), ask[int](t, b, charts); m != 0 || n > 12 {
		t.Errorf("%d tables and %d charts are shown of no profile", n, m)
	}
	b.run(t, chromedp.Click(".filter .reset", chromedp.ByQuery))
	b.drawn(t)
	if got := ask[[]string](t, b, series); !slices.Equal(got, before) {
		t.Errorf("after all the first chart has %q, at first %q", got, before)
	}
	b.silent(t)
}

// TestHTMLKeyboard reaches and works a filter without a pointer.
func TestHTMLKeyboard(t *testing.T) {
	b := open(t, newBrowser(t), render(t, "html", reporttest.Normal(), screen.Options{}))
	active := `document.activeElement.closest('[data-factor]')?.dataset.factor || document.activeElement.className || document.activeElement.tagName`
	b.run(t, chromedp.KeyEvent("\t"))
	if got := ask[string](t, b, active); got != "skip" {
		t.Errorf("the first thing to reach is %q", got)
	}
	for i := 0; ask[string](t, b, active) != "network"; i++ {
		if i == 60 {
			t.Fatal("the network's filter cannot be reached with the keyboard")
		}
		b.run(t, chromedp.KeyEvent("\t"))
	}
	b.run(t, chromedp.KeyEvent("\r"), chromedp.KeyEvent("\t"), chromedp.KeyEvent(" "))
	if hidden := ask[int](t, b, `[...document.querySelectorAll('#efficiency tbody tr')].filter(r => r.hidden).length`); hidden != 1 {
		t.Errorf("%d rows are hidden after one network was taken out", hidden)
	}
	b.run(t, chromedp.KeyEvent("\x1b"))
	if got := ask[bool](t, b, `document.querySelector('[data-factor="network"]').open`); got {
		t.Error("Escape does not close the list")
	}
	unnamed := ask[[]string](t, b, `[...document.querySelectorAll('button, input, summary, [role=img], [role=region], table')].filter(e => !(e.textContent.trim() || e.getAttribute('aria-label') || e.getAttribute('aria-labelledby') || e.labels?.length)).map(e => e.outerHTML.slice(0, 80))`)
	for _, e := range unnamed {
		t.Errorf("without a name for a screen reader: %s", e)
	}
}

// TestHTMLSaves saves a chart as SVG, PNG and CSV, a table as SVG and CSV, and
// prints the page.
func TestHTMLSaves(t *testing.T) {
	b := open(t, newBrowser(t), render(t, "html", shaped(), screen.Options{}))
	b.allowSaving(t)
	save := func(selector, kind string) []byte {
		t.Helper()
		return b.save(t, fmt.Sprintf(`[...document.querySelectorAll('%s .save')].find(s => s.textContent === '%s').click()`, selector, kind), "."+strings.ToLower(kind))
	}
	for _, figure := range []string{"#figures figure.chart", "#latency figure.chart", "#time figure.chart", "#cpu figure.chart", "#scaling figure.chart", "#efficiency figure.table", "#absolute figure.table"} {
		picture := string(save(figure, "SVG"))
		checkSVG(t, figure, picture)
	}
	if png := save("#figures figure.chart", "PNG"); !strings.HasPrefix(string(png), "\x89PNG") {
		t.Errorf("the PNG begins %q", png[:8])
	}
	if text := string(save("#figures figure.chart", "CSV")); !strings.HasPrefix(text, "series,message size,") || strings.Count(text, "\r\n") != 31 {
		t.Errorf("the chart's CSV: %s", text)
	}
	if text := string(save("#efficiency figure.table", "CSV")); !strings.Contains(text, "network,") || !strings.Contains(text, "macvlan,") {
		t.Errorf("the table's CSV: %s", text)
	}
	var pdf []byte
	b.run(t, chromedp.ActionFunc(func(ctx context.Context) (err error) {
		pdf, _, err = cdp.PrintToPDF().WithPrintBackground(true).Do(ctx)
		return err
	}))
	if !strings.HasPrefix(string(pdf), "%PDF") || len(pdf) < 50_000 {
		t.Errorf("the print has %d bytes", len(pdf))
	}
	var wide []string // on paper nothing can be scrolled to
	b.run(t, emulation.SetEmulatedMedia().WithMedia("print"), emulation.SetDeviceMetricsOverride(700, 900, 1, false),
		chromedp.Evaluate(`[...document.querySelectorAll('main section:not(#efficiency) figure.table')].filter((f) => f.querySelector('table').offsetWidth > f.parentElement.offsetWidth + 2).map((f) => f.querySelector('figcaption').textContent)`, &wide))
	if len(wide) > 0 {
		t.Errorf("wider than paper: %q", wide)
	}
	if *shots != "" {
		b.keep(t, "shaped.pdf", pdf)
	}
	b.silent(t)
}

// allowSaving lets the page save files.
func (b *tab) allowSaving(t *testing.T) {
	t.Helper()
	b.run(t, chromedp.ActionFunc(func(ctx context.Context) error {
		return browser.SetDownloadBehavior(browser.SetDownloadBehaviorBehaviorAllow).WithDownloadPath(b.dir).Do(ctx)
	}))
}

// save runs a script that saves a file, and reads it.
func (b *tab) save(t *testing.T, script, ending string) []byte {
	t.Helper()
	pattern := filepath.Join(b.dir, "*"+ending)
	old, _ := filepath.Glob(pattern)
	for _, f := range old {
		if err := os.Remove(f); err != nil {
			t.Fatal(err)
		}
	}
	ask[bool](t, b, "("+script+", true)")
	for range 200 {
		time.Sleep(50 * time.Millisecond)
		files, _ := filepath.Glob(pattern)
		if len(files) != 1 {
			continue
		}
		content, err := os.ReadFile(files[0])
		if err == nil && len(content) > 0 {
			if *shots != "" {
				b.keep(t, filepath.Base(files[0]), content)
			}
			return content
		}
	}
	t.Fatalf("nothing was saved by %s", script)
	return nil
}

// checkSVG holds that a picture is whole, and needs nothing of the page.
func checkSVG(t *testing.T, where, picture string) {
	t.Helper()
	if !strings.HasPrefix(picture, "<svg") || strings.Contains(picture, "var(--") || strings.Contains(picture, "NaN") {
		t.Errorf("%s: the SVG begins %.60q, or leans on the page's style", where, picture)
	}
	d := xml.NewDecoder(strings.NewReader(picture))
	marks := 0
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Errorf("%s: the SVG is not XML: %v", where, err)
			return
		}
		if e, ok := token.(xml.StartElement); ok && (e.Name.Local == "path" || e.Name.Local == "rect") {
			marks++
		}
	}
	if marks < 5 {
		t.Errorf("%s: the SVG has %d paths and boxes", where, marks)
	}
}

// mostSeconds is a generous bound: what was measured is in docs/report.md.
const mostSeconds = 30

// TestHTMLOfManyCells opens the report of 5,000 cells.
func TestHTMLOfManyCells(t *testing.T) {
	b := open(t, newBrowser(t), render(t, "html", many(), screen.Options{}))
	ready := ask[float64](t, b, `Number(document.documentElement.dataset.ready)`)
	first := ask[float64](t, b, `performance.getEntriesByName('first-contentful-paint')[0]?.startTime || 0`)
	mark := func(name string) float64 {
		return ask[float64](t, b, fmt.Sprintf(`performance.getEntriesByName('%s')[0].startTime`, name))
	}
	t.Logf("5,000 cells: something is seen after %.0f ms, the script begins after %.0f ms, has its data after %.0f ms, and all can be used after %.0f ms", first, mark("begin"), mark("loaded"), ready)
	if ready > 1000*mostSeconds {
		t.Errorf("it can be used after %.0f ms", ready)
	}
	took := ask[float64](t, b, `(() => { const from = performance.now(); document.querySelector('[data-factor="network"] input').click(); return performance.now() - from; })()`)
	t.Logf("a click on a filter takes %.0f ms", took)
	b.drawn(t)
	b.shoot(t, "many")
	b.silent(t)
}

// shoot keeps pictures of a page, where they are asked for.
func (b *tab) shoot(t *testing.T, name string) {
	t.Helper()
	if *shots == "" {
		return
	}
	for _, width := range []int64{1280, 390} {
		for _, scheme := range []string{"light", "dark"} {
			b.run(t, emulation.SetDeviceMetricsOverride(width, 900, 1, width < 500),
				emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}), chromedp.Sleep(400*time.Millisecond))
			b.drawn(t)
			var picture []byte
			b.run(t, chromedp.FullScreenshot(&picture, 100))
			b.keep(t, fmt.Sprintf("%s-%d-%s.png", name, width, scheme), picture)
		}
	}
	b.run(t, emulation.SetDeviceMetricsOverride(1280, 900, 1, false), emulation.SetEmulatedMedia(), chromedp.Sleep(300*time.Millisecond))
	b.drawn(t)
}

func (b *tab) keep(t *testing.T, name string, content []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(*shots, name), content, 0o644); err != nil {
		t.Fatal(err)
	}
}
