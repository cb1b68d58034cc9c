package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/cnibench/cnibench/internal/repo/chromium"
)

// picture is one picture of the HTML report.
type picture struct {
	file          string // below docs
	width, height int64
	scheme        string
}

// pictures are those that docs/tour.md shows.
func pictures() []picture {
	return []picture{
		{"tour/report-light.webp", 1280, 900, "light"},
		{"tour/report-dark.webp", 1280, 900, "dark"},
		{"tour/report-phone.webp", 390, 844, "light"},
	}
}

// pictureQuality is that of the WebP files, of 100.
const pictureQuality = 82

// shoot opens a report in chromium and writes its pictures below a folder.
func shoot(ctx context.Context, report, docs string) (err error) {
	tab, closeAll, err := chromium.Open(ctx, 2*time.Minute, chromedp.Flag("hide-scrollbars", true))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeAll()) }()
	for _, p := range pictures() {
		var shot []byte
		err := chromedp.Run(tab,
			emulation.SetDeviceMetricsOverride(p.width, p.height, 1, p.width < 500),
			emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: p.scheme}}),
			chromedp.Navigate("file://"+report),
			chromedp.Evaluate(untilDrawn, nil, func(e *runtime.EvaluateParams) *runtime.EvaluateParams { return e.WithAwaitPromise(true) }),
			chromedp.ActionFunc(func(ctx context.Context) (err error) {
				shot, err = page.CaptureScreenshot().WithFormat(page.CaptureScreenshotFormatWebp).WithQuality(pictureQuality).Do(ctx)
				return err
			}),
		)
		if err != nil {
			return fmt.Errorf("%s (make tour needs chromium): %w", p.file, err)
		}
		if err := os.WriteFile(filepath.Join(docs, p.file), shot, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// untilDrawn waits in the page until its charts are drawn.
const untilDrawn = `new Promise((done, failed) => { const look = () => {
	const d = document.documentElement.dataset;
	if (d.failed) failed(new Error(d.failed)); else if (d.ready && d.drawn) done(true); else setTimeout(look, 20); }; setTimeout(look, 50); })`
