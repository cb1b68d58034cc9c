package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/vbauerster/mpb/v8"

	"github.com/cnibench/cnibench/internal/result"
)

// The bar is drawn while samples come. Under -race this finds what both touch.
func TestProgressIsDrawnWhileSamplesCome(t *testing.T) {
	var out bytes.Buffer
	p := newProgress(&out, 0)
	p.bars = mpb.New(mpb.WithOutput(&out), mpb.WithAutoRefresh(), mpb.WithRefreshRate(time.Millisecond))
	const samples = 300
	p.Begin(samples, samples)
	for i := range samples {
		s := result.Sample{ID: "b01-c000", Block: 1 + i/10, Status: result.StatusOK}
		if i%50 == 0 {
			s.Status, s.Reason = result.StatusFailed, "\x1b]0;owned\a"
		}
		p.Sampled(s, samples-1-i)
		if i%20 == 0 {
			time.Sleep(2 * time.Millisecond) // until it is drawn
		}
	}
	p.close()
	if got := out.String(); strings.Contains(got, "\x1b]0") || strings.Count(got, `failed: b01-c000`) != samples/50 {
		t.Errorf("printed %q", got)
	}
}

func TestProgressWithoutATerminal(t *testing.T) {
	var out strings.Builder
	p := newProgress(&out, 0)
	p.Begin(2, 4)
	for block := 1; block <= 3; block++ {
		p.Sampled(result.Sample{Block: block, Status: result.StatusOK}, 3-block)
	}
	p.close()
	want := "2 to 4 samples\nblock 1 measured, at most 0s left\nblock 2 measured, at most 0s left\n"
	if out.String() != want {
		t.Errorf("printed %q, want %q", out.String(), want)
	}
}

func TestTimeLeftKnowsTheBudget(t *testing.T) {
	p := seen{began: time.Now().Add(-10 * time.Second), done: 10, left: 3000}
	if got := p.timeLeft(); got != "50m0s" {
		t.Errorf("without a budget %s are left", got)
	}
	p.budget = 25 * time.Second
	if got := p.timeLeft(); got != "15s" {
		t.Errorf("of a budget of 25 s %s are left after 10 s", got)
	}
	p.budget, p.least = 5*time.Second, 14
	if got := p.timeLeft(); got != "4s" {
		t.Errorf("a budget of 5 s is used up, and the fewest blocks need 4 more samples of 1 s: %s are left", got)
	}
	p.least = 10
	if got := p.timeLeft(); got != "0s" {
		t.Errorf("a budget of 5 s is used up, and the fewest blocks are measured: %s are left", got)
	}
}
