// Package chromium starts a browser for the programs and tests that open pages.
package chromium

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"

	"github.com/chromedp/chromedp"
)

// Open starts chromium with a profile of its own. tab is a page in it, for as long as
// within; close ends the browser and removes the profile.
func Open(ctx context.Context, within time.Duration, more ...chromedp.ExecAllocatorOption) (tab context.Context, closeAll func() error, err error) {
	profile, err := os.MkdirTemp("", "cnb-browser-")
	if err != nil {
		return nil, nil, err
	}
	options := []chromedp.ExecAllocatorOption{
		chromedp.UserDataDir(profile),
		chromedp.Env("TMPDIR=" + profile), // the folder of its sockets outlives it
		chromedp.Headless, chromedp.NoSandbox, chromedp.NoFirstRun, chromedp.DisableGPU,
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true),
		chromedp.Flag("disable-dev-shm-usage", true),
	}
	ctx, cancel := chromedp.NewExecAllocator(ctx, append(options, more...)...)
	tab, closeTab := chromedp.NewContext(ctx)
	tab, stop := context.WithTimeout(tab, within)
	return tab, func() error {
		stop()
		closeTab()
		cancel()
		return remove(profile, 5*time.Second)
	}, nil
}

// remove deletes a browser's profile. The last of its processes may still write into it.
func remove(profile string, within time.Duration) error {
	for begin := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		err := os.RemoveAll(profile)
		if !errors.Is(err, syscall.ENOTEMPTY) || time.Since(begin) > within {
			return err
		}
	}
}
