package paper

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/dataset"
)

// recordedBlocks are the samples of a study's recording: those of each block by their cells, and
// the cells that it refused, by why.
func recordedBlocks(t *testing.T, id string) (blocks map[int]map[result.Cell]result.Sample, refused map[result.Cell]result.Sample) {
	t.Helper()
	data, err := os.ReadFile("../cli/testdata/reproductions/" + id + "/samples.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	blocks, refused = map[int]map[result.Cell]result.Sample{}, map[result.Cell]result.Sample{}
	lines := bufio.NewScanner(z)
	for lines.Buffer(nil, 1<<20); lines.Scan(); {
		var s result.Sample
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			t.Fatal(err)
		}
		if blocks[s.Block] == nil {
			blocks[s.Block] = map[result.Cell]result.Sample{}
		}
		switch s.Status {
		case result.StatusOK:
			blocks[s.Block][bare(s.Cell)] = s
		case result.StatusUnsupported:
			refused[bare(s.Cell)] = s
		}
	}
	if lines.Err() != nil {
		t.Fatal(lines.Err())
	}
	return blocks, refused
}

// TestBudgetByRecords: the records of dakic2024, in the order in which a budget of nine minutes would
// have asked for them, decide two thirds of what this machine can measure of it.
func TestBudgetByRecords(t *testing.T) {
	labtest.Slow(t)
	const all, change = 9 * time.Minute, time.Second
	p := load(t, "dakic2024")
	blocks, refused := recordedBlocks(t, p.ID)
	testbed := Testbed{
		Lacks: func(c result.Cell, _ string) string { return refused[bare(c)].Reason },
		Cost: func(c result.Cell) time.Duration { // as slices of a link of 10 Gbit/s take it
			switch c.Workload {
			case "tcp_stream":
				return 406 * time.Millisecond
			case "udp_stream":
				return 290 * time.Millisecond
			}
			return 95 * time.Millisecond
		},
		Profile: change,
	}
	opt := dataset.Options{Confidence: 0.95, LinkRate: p.known.LinkRate}
	b := p.Budget(all, testbed, opt)
	var samples []result.Sample
	for _, s := range refused {
		s.Block = 1
		samples = append(samples, s)
	}
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at, half := begin, false
	for block := 1; block <= len(blocks); block++ {
		next := b.Next(samples)
		if at.Sub(begin)+next.Block > all {
			break
		}
		at = at.Add(6 * change)
		for _, c := range next.Cells() {
			if s, is := blocks[block][bare(c)]; is {
				s.Started = at
				samples, at = append(samples, s), at.Add(testbed.Cost(c))
			}
		}
		r := p.resultsOf(samples, opt)
		r.Cut = true
		decided, open, names := 0, 0, []string{}
		for _, v := range Verdicts(p, r) {
			switch {
			case !v.Claim.Counts() || v.Outcome == NotMeasurable:
			case v.Outcome == Undecided || v.Outcome == NotMeasured:
				open++
				names = append(names, v.Claim.ID)
			default:
				decided++
			}
		}
		t.Logf("block %d: %d cells of %d claims, after %v %d are decided and %d are open", block, len(next.Cells()), len(next.Claims), at.Sub(begin).Round(time.Second), decided, open)
		if half = 2*open < decided; block == len(blocks) {
			t.Logf("open: %s", strings.Join(names, " "))
		}
	}
	if !half {
		t.Error("fewer than two thirds of what can be measured are decided")
	}
}
