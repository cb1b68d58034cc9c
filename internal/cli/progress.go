package cli

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/cnibench/cnibench/internal/plain"
	"github.com/cnibench/cnibench/internal/result"
)

// progress shows how a run goes on: a bar with the time left on a terminal, a
// plain line per block otherwise. The bar is drawn by a goroutine of its own.
type progress struct {
	w    io.Writer
	bars *mpb.Progress
	bar  *mpb.Bar

	mu sync.Mutex // guards seen; never held while the bar is called, which asks for it
	seen
}

// seen is what the bar shows.
type seen struct {
	began time.Time
	done  int
	left  int
	least int // of the fewest blocks, which are measured whatever the budget is
	block int
	bad   int
	// budget is the campaign's time budget, 0: none.
	budget time.Duration
	// verbose reports every sample.
	verbose bool
}

// now is what has been seen so far.
func (p *progress) now() seen {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen
}

func newProgress(w io.Writer, budget time.Duration) *progress {
	p := &progress{w: w, seen: seen{began: time.Now(), budget: budget, verbose: isVerbose(w)}}
	if terminalOf(w).isTTY {
		p.bars = mpb.New(mpb.WithOutput(screenOf(w)), mpb.WithWidth(30))
	}
	return p
}

// Begin implements bench.Observer.
func (p *progress) Begin(least, most int) {
	p.mu.Lock()
	p.began, p.left, p.least = time.Now(), most, least
	p.mu.Unlock()
	p.Say("%d to %d samples", least, most)
	if p.bars == nil || most == 0 {
		return
	}
	p.bar = p.bars.AddBar(int64(most),
		mpb.PrependDecorators(decor.Any(func(decor.Statistics) string { return fmt.Sprintf("block %d ", p.now().block) })),
		mpb.AppendDecorators(
			decor.CountersNoUnit("%d of at most %d"),
			decor.Any(func(decor.Statistics) string {
				now := p.now()
				s := ", at most " + now.timeLeft() + " left"
				if now.bad > 0 {
					s += fmt.Sprintf(", %d failed", now.bad)
				}
				return s
			}),
		))
}

// Sampled implements bench.Observer.
func (p *progress) Sampled(s result.Sample, left int) {
	p.mu.Lock()
	before := p.block
	p.done++
	p.left, p.block = left, s.Block
	if s.Status == result.StatusFailed {
		p.bad++
	}
	now := p.seen
	p.mu.Unlock()
	if s.Status == result.StatusFailed {
		p.Say("failed: %s %s %s: %s", s.ID, s.Cell.Network, s.Cell.Traffic(), s.Reason)
	}
	if p.verbose && s.Status != result.StatusFailed {
		p.Say("%s: %s %s %s %s: %s", s.ID, s.Cell.Network, s.Cell.Path, s.Cell.Placement, s.Cell.Traffic(), s.Status)
	}
	if p.bar != nil {
		p.bar.SetTotal(int64(now.done+left), false)
		p.bar.SetCurrent(int64(now.done))
		return
	}
	if s.Block != before && before > 0 {
		p.Say("block %d measured, at most %s left", before, now.timeLeft())
	}
}

// Say implements bench.Observer.
func (p *progress) Say(format string, args ...any) {
	line := plain.Text(fmt.Sprintf(format, args...)) + "\n"
	if p.bar != nil {
		fmt.Fprint(p.bars, line) // above the bar
		return
	}
	fmt.Fprint(p.w, line)
}

// close takes the bar off the screen.
func (p *progress) close() {
	if p.bar != nil {
		p.bar.Abort(true)
		p.bars.Wait()
	}
}

// timeLeft takes the samples to come to last as long as those that were, and no longer
// than the time budget leaves, or than the fewest blocks take.
func (p seen) timeLeft() string {
	if p.done == 0 {
		return "?"
	}
	spent := time.Since(p.began)
	each := spent / time.Duration(p.done)
	left := each * time.Duration(p.left)
	if p.budget > 0 {
		left = min(left, max(p.budget-spent, each*time.Duration(max(0, p.least-p.done))))
	}
	return left.Round(time.Second).String()
}
