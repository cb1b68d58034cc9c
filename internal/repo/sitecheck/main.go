// Command sitecheck opens every page of a site in chromium, as wide as a phone and as a
// desktop, and fails where a page is wider than its window: readers would have to scroll
// sideways. Tables and code that scroll in a box of their own are fine.
//
//	sitecheck FOLDER [PICTURES]
//
// With PICTURES it writes a picture of each page there, at each width, light and dark.
package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/cnibench/cnibench/internal/repo/chromium"
)

func main() {
	if len(os.Args) < 2 || len(os.Args) > 3 {
		fmt.Fprintln(os.Stderr, "usage: sitecheck FOLDER [PICTURES]")
		os.Exit(2)
	}
	pictures := ""
	if len(os.Args) == 3 {
		pictures = os.Args[2]
	}
	n, err := check(context.Background(), os.Args[1], pictures)
	if err != nil {
		fmt.Fprintln(os.Stderr, "sitecheck:", err)
		os.Exit(1)
	}
	fmt.Fprintf(os.Stdout, "sitecheck: %d pages fit into windows of 390 and 1280 pixels\n", n)
}

// checkWithin bounds the whole check.
const checkWithin = 5 * time.Minute

// widest names the elements that stick out of the window, at most five: those without a
// child that does.
const widest = `(() => { const w = document.documentElement.clientWidth, out = [];
	if (document.documentElement.scrollWidth <= w) return out;
	const boxed = e => { for (let p = e.parentElement; p && p !== document.body; p = p.parentElement) if (getComputedStyle(p).overflowX !== 'visible') return true; return false; };
	for (const e of document.body.querySelectorAll('*')) {
		if (e.getBoundingClientRect().right > w + 1 && !boxed(e) && ![...e.children].some(c => c.getBoundingClientRect().right > w + 1)) out.push(e.tagName.toLowerCase() + ' ' + (e.textContent || e.className).trim().slice(0, 60));
		if (out.length === 5) break;
	}
	return out.length ? out : ['the page is ' + document.documentElement.scrollWidth + ' pixels wide']; })()`

// check opens every page of a site and returns how many there are.
func check(ctx context.Context, folder, pictures string) (n int, err error) {
	pages, err := pagesOf(folder)
	if err != nil {
		return 0, err
	}
	tab, closeAll, err := chromium.Open(ctx, checkWithin)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, closeAll()) }()
	var found []error
	for _, page := range pages {
		wide, err := checkPage(tab, folder, page, pictures)
		if err != nil {
			return 0, fmt.Errorf("%s (the check needs chromium): %w", page, err)
		}
		found = append(found, wide...)
	}
	return len(pages), errors.Join(found...)
}

// pagesOf are the pages of a site, from its folder.
func pagesOf(folder string) ([]string, error) {
	var pages []string
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && filepath.Ext(path) == ".html" {
			pages = append(pages, path)
		}
		return err
	})
	if err == nil && len(pages) == 0 {
		err = fmt.Errorf("%s has no page: make site", folder)
	}
	return pages, err
}

// checkPage opens one page at each width.
func checkPage(tab context.Context, folder, page, pictures string) (wide []error, err error) {
	path, err := filepath.Abs(page)
	if err != nil {
		return nil, err
	}
	address := url.URL{Scheme: "file", Path: path}
	name, err := filepath.Rel(folder, page)
	if err != nil {
		return nil, err
	}
	for _, width := range []int64{390, 1280} {
		var out []string
		err := chromedp.Run(tab, emulation.SetDeviceMetricsOverride(width, 900, 1, false), chromedp.Navigate(address.String()), chromedp.Evaluate(widest, &out))
		if err != nil {
			return nil, err
		}
		if len(out) > 0 {
			wide = append(wide, fmt.Errorf("%s is wider than a window of %d pixels: %s", name, width, strings.Join(out, "; ")))
		}
		if pictures == "" {
			continue
		}
		for _, scheme := range []string{"light", "dark"} {
			file := fmt.Sprintf("%s-%d-%s.png", strings.ReplaceAll(strings.TrimSuffix(name, ".html"), string(filepath.Separator), "-"), width, scheme)
			if err := shoot(tab, address.String(), scheme, filepath.Join(pictures, file)); err != nil {
				return nil, err
			}
		}
	}
	return wide, nil
}

// shoot writes a picture of a page in one colour scheme, which the page reads as it loads.
func shoot(tab context.Context, address, scheme, file string) error {
	var picture []byte
	err := chromedp.Run(tab,
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}),
		chromedp.Navigate(address), chromedp.CaptureScreenshot(&picture))
	if err != nil {
		return err
	}
	return os.WriteFile(file, picture, 0o644)
}
