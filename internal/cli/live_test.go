package cli_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/live"
)

// growing is a campaign of so many blocks of so many slices: some seconds.
func growing(blocks, slices int) string {
	return fmt.Sprintf(`name: growing
networks: [host, bridge]
workloads: [{name: tcp_rr}]
sampling: {slices: %d, warmup_seconds: 0.01, explain_seconds: 0.05, min_blocks: %d, max_blocks: %d}
`, slices, blocks, blocks)
}

// liveURL waits until the run has said where its report is.
func (r *started) liveURL(t *testing.T) string {
	t.Helper()
	said := regexp.MustCompile(`live: (http://127\.0\.0\.1:\d+/\w+/) `)
	r.until(t, func() bool { return said.Match(r.Stderr()) })
	m := said.FindSubmatch(r.Stderr())
	if m == nil {
		t.Fatalf("no address; the program said:\n%s", r.Stderr())
	}
	return string(m[1])
}

// watchLive calls f with every event of a live report until f is content, or
// the events end.
func watchLive(ctx context.Context, t *testing.T, address string, f func(live.Status) bool) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"events", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		var s live.Status
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			if err := json.Unmarshal([]byte(data), &s); err != nil {
				t.Fatal(err)
			}
			if f(s) {
				return
			}
		}
	}
}

// measuredSamples reads from a live report how many samples are in it.
func measuredSamples(t *testing.T, address string) int {
	t.Helper()
	res, err := http.Get(address + "report")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("status %d, %v", res.StatusCode, err)
	}
	m := regexp.MustCompile(`(\d+) samples? measured`).FindSubmatch(body)
	if m == nil {
		t.Fatalf("no number of samples in the page of %d bytes", len(body))
	}
	n, err := strconv.Atoi(string(m[1]))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// noListener checks that nobody listens any more where a report was.
func noListener(t *testing.T, address string) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	if c, err := net.DialTimeout("tcp", u.Host, time.Second); err == nil {
		c.Close()
		t.Errorf("%s still answers", u.Host)
	}
}

// TestLiveReport reads the report of a real run while it grows; when the run has
// ended there is no trace of it.
func TestLiveReport(t *testing.T) {
	t.Parallel()
	s := newSurvivor(t)
	before := labtest.TakeTrace(t, s.ours)
	s.write(growing(60, 10)) // long enough for two pages, of which each takes at most a fiftieth of the time
	run := s.start(s.command("run", s.campaign(), "--out", s.out, "--live"))
	address := run.liveURL(t)
	var counts []int
	ended := false
	pages := 0
	watchLive(t.Context(), t, address, func(now live.Status) bool {
		if now.Version > pages {
			pages = now.Version
			counts = append(counts, measuredSamples(t, address))
		}
		ended = ended || now.Ended
		return false
	})
	if status := run.wait(t); status != 0 {
		t.Fatalf("status %d: %s", status, run.Stderr())
	}
	t.Logf("samples in the pages: %v", counts)
	if len(counts) < 2 || counts[len(counts)-1] <= counts[0] || !ended {
		t.Errorf("pages with %v samples, ended %v", counts, ended)
	}
	noListener(t, address)
	s.finished(nil)
	s.leavesNothing(before)
}

// TestLiveReportOfAKilledRun: a killed run leaves nobody who listens, and goes
// on as any other.
func TestLiveReportOfAKilledRun(t *testing.T) {
	t.Parallel()
	s := newSurvivor(t)
	before := labtest.TakeTrace(t, s.ours)
	s.write(growing(12, 8))
	run := s.start(s.command("run", s.campaign(), "--out", s.out, "--live"))
	address := run.liveURL(t)
	watchLive(t.Context(), t, address, func(now live.Status) bool { return now.Version > 0 })
	if err := syscall.Kill(run.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if status := run.wait(t); status != -1 {
		t.Errorf("status %d: %s", status, run.Stderr())
	}
	noListener(t, address)
	s.resumed()
	s.leavesNothing(before)
}
