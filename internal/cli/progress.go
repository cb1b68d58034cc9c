package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/cnibench/cnibench/internal/result"
)

// progress shows how a run goes on: a bar with the time left on a terminal, a
// plain line per block otherwise.
type progress struct {
	w     io.Writer
	began time.Time
	bars  *mpb.Progress
	bar   *mpb.Bar
	done  int
	left  int
	block int
	bad   int
	// verbose reports every sample.
	verbose bool
}

func newProgress(w io.Writer) *progress {
	p := &progress{w: w, began: time.Now(), verbose: isVerbose(w)}
	if terminalOf(w).isTTY {
		p.bars = mpb.New(mpb.WithOutput(screenOf(w)), mpb.WithWidth(30))
	}
	return p
}

// Begin implements bench.Observer.
func (p *progress) Begin(least, most int) {
	p.began, p.left = time.Now(), most
	p.Say("%d to %d samples", least, most)
	if p.bars == nil || most == 0 {
		return
	}
	p.bar = p.bars.AddBar(int64(most),
		mpb.PrependDecorators(decor.Any(func(decor.Statistics) string { return fmt.Sprintf("block %d ", p.block) })),
		mpb.AppendDecorators(
			decor.CountersNoUnit("%d of at most %d"),
			decor.Any(func(decor.Statistics) string {
				s := ", at most " + p.timeLeft() + " left"
				if p.bad > 0 {
					s += fmt.Sprintf(", %d failed", p.bad)
				}
				return s
			}),
		))
}

// Sampled implements bench.Observer.
func (p *progress) Sampled(s result.Sample, left int) {
	p.done++
	p.left = left
	if s.Status == result.StatusFailed {
		p.bad++
		p.Say("failed: %s %s %s: %s", s.ID, s.Cell.Network, s.Cell.Traffic(), s.Reason)
	}
	if p.verbose && s.Status != result.StatusFailed {
		p.Say("%s: %s %s %s %s: %s", s.ID, s.Cell.Network, s.Cell.Path, s.Cell.Placement, s.Cell.Traffic(), s.Status)
	}
	if p.bar != nil {
		p.block = s.Block
		p.bar.SetTotal(int64(p.done+left), false)
		p.bar.SetCurrent(int64(p.done))
		return
	}
	if s.Block != p.block {
		if p.block > 0 {
			p.Say("block %d measured, at most %s left", p.block, p.timeLeft())
		}
		p.block = s.Block
	}
}

// Say implements bench.Observer.
func (p *progress) Say(format string, args ...any) {
	line := fmt.Sprintf(format, args...) + "\n"
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

// timeLeft takes the samples to come to last as long as those that were.
func (p *progress) timeLeft() string {
	if p.done == 0 {
		return "?"
	}
	each := time.Since(p.began) / time.Duration(p.done)
	return (each * time.Duration(p.left)).Round(time.Second).String()
}
