package format

import (
	"testing"

	"github.com/chromedp/cdproto/emulation"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/reporttest"
	"github.com/cnibench/cnibench/internal/report/screen"
)

// TestHTMLFits: reports, one of them with long names, fit into the windows of a phone and a
// desktop.
func TestHTMLFits(t *testing.T) {
	browser := newBrowser(t)
	for name, in := range map[string]report.Input{"normal": reporttest.Normal(), "hostile": reporttest.Hostile()} {
		t.Run(name, func(t *testing.T) { open(t, browser, render(t, "html", in, screen.Options{})).fits(t) })
	}
}

// fits checks that a report is no wider than its window, on
// a phone and on a desktop: what is wider scrolls in a box of its own.
func (b *tab) fits(t *testing.T) {
	t.Helper()
	const widest = `(() => { const w = document.documentElement.clientWidth, out = [];
		if (document.documentElement.scrollWidth <= w) return out;
		const boxed = e => { for (let p = e.parentElement; p && p !== document.body; p = p.parentElement) if (getComputedStyle(p).overflowX !== 'visible') return true; return false; };
		for (const e of document.body.querySelectorAll('*')) {
			if (out.length < 5 && e.getBoundingClientRect().right > w + 1 && !boxed(e) && ![...e.children].some(c => c.getBoundingClientRect().right > w + 1)) out.push(e.tagName + ' ' + (e.textContent || e.className).trim().slice(0, 60));
		}
		return out.length ? out : ['the page is ' + document.documentElement.scrollWidth + ' pixels wide']; })()`
	for _, width := range []int64{390, 1280} {
		b.run(t, emulation.SetDeviceMetricsOverride(width, 900, 1, false))
		b.drawn(t)
		if wide := ask[[]string](t, b, widest); len(wide) > 0 {
			t.Errorf("the report is wider than a window of %d pixels: %q", width, wide)
		}
	}
}
