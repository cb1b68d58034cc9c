package format

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/png"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	cdp "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/cnibench/cnibench/internal/live"
	"github.com/cnibench/cnibench/internal/report/reporttest"
	"github.com/cnibench/cnibench/internal/report/screen"
)

// inFrame gives what an expression is in the report that a live page shows.
func inFrame[T any](t *testing.T, b *tab, expression string) T {
	t.Helper()
	return ask[T](t, b, `((window) => { const { document, cnibenchView } = window; return `+expression+`; })([...document.querySelectorAll('iframe')].at(-1).contentWindow)`)
}

// TestLivePage reads a report that grows: what is read stays until the newer one
// can be read, and the newer begins where the reader was.
func TestLivePage(t *testing.T) {
	// Made before, for they take little of a run's time: one that takes long is not
	// made again soon.
	var made [3]string
	for i := range made {
		in := reporttest.Drawn()
		in.Campaign.Name = fmt.Sprint("page ", i+1)
		made[i] = render(t, "html", in, screen.Options{})
	}
	var pages atomic.Int64
	s, err := live.Start("growing", 0, func(w io.Writer) error {
		_, err := io.WriteString(w, made[min(int(pages.Add(1)), len(made))-1])
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, cancel := chromedp.NewContext(newBrowser(t))
	defer cancel()
	limited, cancelTime := context.WithTimeout(ctx, 2*time.Minute)
	defer cancelTime()
	b := &tab{Context: limited}
	chromedp.ListenTarget(limited, b.listen)
	// later puts the page's clock on, so that it need not be waited for; blank
	// counts the frames drawn without a report, once there was one.
	const beside = `window.later = 0; const now = Date.now; Date.now = () => now() + window.later; window.blank = 0; window.frames_ = 0;
		let seen = false; const look = () => { window.frames_++; const m = document.getElementById('reports'); if (m) {
			const top = document.elementFromPoint(innerWidth / 2, innerHeight / 2);
			const whole = top && top.tagName === 'IFRAME' && top.contentDocument?.documentElement.dataset.ready && top.contentDocument.querySelector('.plot svg');
			if (seen && !whole) window.blank++; seen = seen || !!whole; } requestAnimationFrame(look); }; if (window === top) requestAnimationFrame(look);`
	b.run(t, log.Enable(), runtime.Enable(), emulation.SetDeviceMetricsOverride(1280, 900, 1, false),
		chromedp.ActionFunc(func(ctx context.Context) error {
			_, err := cdp.AddScriptToEvaluateOnNewDocument(beside).Do(ctx)
			return err
		}), chromedp.Navigate(s.URL()))
	title := `[...document.querySelectorAll('iframe')].filter(f => !f.inert).at(-1)?.contentDocument?.querySelector('h1')?.textContent || ''`
	until := func(want string) {
		t.Helper()
		for range 600 {
			if ask[string](t, b, title) == want {
				return
			}
			b.shows(t)
			time.Sleep(20 * time.Millisecond)
		}
		t.Fatalf("it does not come to %q; it shows %q", want, ask[string](t, b, title))
	}
	b.shows(t) // that there is no report yet
	s.Sampled(1, 9)
	until("page 1")
	inFrame[bool](t, b, `(() => { document.querySelector('details[data-factor="network"] input').click(); document.querySelector('.tool').click();
		document.getElementById('latency').scrollIntoView(); window.scrollBy(0, 77); return true; })()`)
	state := `JSON.stringify([cnibenchView.get(), cnibenchView.place().id, Math.round(cnibenchView.place().below)])`
	before := inFrame[string](t, b, state)
	for page := 2; page <= 3; page++ {
		for int(pages.Load()) < page {
			time.Sleep(20 * time.Millisecond)
			s.Sampled(page, 9)
		}
		ask[bool](t, b, `(window.later += 10000, true)`)
		until(fmt.Sprint("page ", page))
		if after := inFrame[string](t, b, state); after != before {
			t.Errorf("the reader was at %s; the newer page begins at %s", before, after)
		}
	}
	if n, all := ask[int](t, b, `window.blank`), ask[int](t, b, `window.frames_`); n > 0 || all < 5 {
		t.Errorf("%d of %d drawings of the window had no report", n, all)
	}
	if n := ask[int](t, b, `document.querySelectorAll('iframe').length`); n != 1 {
		t.Errorf("%d frames are left", n)
	}
	b.silent(t)
	if *shots == "" {
		return
	}
	for _, width := range []int64{1280, 390} {
		for _, scheme := range []string{"light", "dark"} {
			inFrame[bool](t, b, `(cnibenchView.set({ ...cnibenchView.get(), theme: '`+scheme+`' }), true)`)
			var shot []byte
			b.run(t, emulation.SetDeviceMetricsOverride(width, 900, 1, width < 500),
				emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}), chromedp.Sleep(2*time.Second), chromedp.CaptureScreenshot(&shot))
			b.keep(t, fmt.Sprintf("live-%d-%s.png", width, scheme), shot)
		}
	}
}

// shows holds that there is something to see below the head line.
func (b *tab) shows(t *testing.T) {
	t.Helper()
	var shot []byte
	b.run(t, chromedp.CaptureScreenshot(&shot))
	picture, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		t.Fatal(err)
	}
	box := picture.Bounds()
	first := picture.At(box.Max.X-1, box.Max.Y-1)
	for y := box.Min.Y + 60; y < box.Max.Y; y++ {
		for x := box.Min.X; x < box.Max.X; x++ {
			if picture.At(x, y) != first {
				return
			}
		}
	}
	t.Errorf("the window of %v is empty below its head line", image.Pt(box.Dx(), box.Dy()))
}
