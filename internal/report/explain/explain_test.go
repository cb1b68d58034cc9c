package explain

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/reporttest"
	"github.com/cnibench/cnibench/internal/report/screen"
)

var update = flag.Bool("update", false, "write the golden files")

func explain(t *testing.T, in report.Input, opt screen.Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, in, opt); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestExplainGolden(t *testing.T) {
	reporttest.Golden(t, *update, "explain.txt", explain(t, reporttest.Stacked(), screen.Options{Width: 100, Unicode: true}))
	for name, in := range map[string]report.Input{"explain-without-stacks.txt": withoutStacks(), "explain-empty.txt": {Campaign: campaign.Campaign{Name: "empty"}}} {
		reporttest.Golden(t, *update, name, explain(t, in, screen.Options{Width: 80, Unicode: true}))
	}
	var b bytes.Buffer
	if err := WriteJSON(&b, reporttest.Stacked()); err != nil {
		t.Fatal(err)
	}
	reporttest.Golden(t, *update, "explain.json", b.String())
}

// withoutStacks is a campaign on a machine that lets none be sampled.
func withoutStacks() report.Input {
	in := reporttest.Normal()
	in.Environment.Absent = []string{"probe stacks: kernel stacks: CPU 0: perf_event_open: permission denied (run as root, or sysctl -w kernel.perf_event_paranoid=-1)"}
	return in
}

// Every statement of what would change a cost is one of figures that were
// measured, and ties are named as such.
func TestExplainChanges(t *testing.T) {
	var b bytes.Buffer
	if err := WriteJSON(&b, reporttest.Stacked()); err != nil {
		t.Fatal(err)
	}
	var got explained
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	in := reporttest.Stacked()
	found := map[string]bool{}
	for _, e := range got.Networks {
		for _, c := range e.Changes {
			found[e.Network+" "+c.Network+" "+fmt.Sprint(c.MTU)+" "+c.Traffic] = true
			if c.Significant == overlap(c.Now, c.Then) {
				t.Errorf("%s: %+v", e.Network, c)
			}
			known := false
			for _, s := range in.Analysis.Cells {
				known = known || s.Cell.Network == c.Network && s.Cell.MTU == c.MTU && s.Cell.Traffic() == c.Traffic && s.Attribution.Total.Value == c.Then.Value
			}
			if !known {
				t.Errorf("%s: %q is of no cell", e.Network, c.Words)
			}
		}
	}
	for _, want := range []string{
		"flannel/vxlan flannel/host-gw 1500 tcp_rr 64 B", "calico/direct-policy calico/direct 1500 tcp_rr 64 B",
		"flannel/vxlan flannel/vxlan 9000 tcp_stream 9000 B", "calico/direct calico/direct 9000 tcp_stream 9000 B",
	} {
		if !found[want] {
			t.Errorf("no change %q among %v", want, found)
		}
	}
	if found["flannel/vxlan flannel/vxlan 9000 tcp_rr 64 B"] {
		t.Error("a larger MTU of a traffic that was not measured on it")
	}
	text := explain(t, reporttest.Stacked(), screen.Options{Width: 400, Unicode: true})
	for _, want := range []string{"netfilter +5.", "encapsulation +3.", "native routing instead of the tunnel", "no network policy", "an MTU of 9000"} {
		if !strings.Contains(text, want) {
			t.Errorf("the text says nothing of %q:\n%s", want, text)
		}
	}
}

// A ladder is shown with its sum. Where it and the stacks disagree, the text says so:
// the outer header's way through IP is none of the tunnel's functions.
func TestExplainLadder(t *testing.T) {
	text := explain(t, reporttest.Stacked(), screen.Options{Width: 100, Unicode: true})
	for _, want := range []string{
		"Step by step, tcp_rr 64 B: CPU time of the machines per transaction", "+ VXLAN ", "+ a bridge, netfilter's hooks at the bridge ", "all steps ", "directly, less host ",
		"! Not every step was measured apart: ladders: [flannel/vxlan] in the campaign", "! Ladder and stacks disagree on encapsulation: the steps (VXLAN) come to +4.", "IP +1.",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the text says nothing of %q:\n%s", want, text)
		}
	}
	in := reporttest.Stacked()
	for i := range in.Analysis.Cells {
		if l := in.Analysis.Cells[i].Ladder; l != nil {
			off := *l.Direct.High * 1.01
			l.Sum.Value = off
			l.Metric = strings.Replace(l.Metric, "cpu_seconds", "instructions", 1)
		}
	}
	text = explain(t, in, screen.Options{Width: 100, Unicode: true})
	for _, want := range []string{"The steps do not add up to the direct difference", "instructions per transaction"} {
		if !strings.Contains(text, want) {
			t.Errorf("the text says nothing of %q", want)
		}
	}
}

// A table that is broken names what each of its parts is about.
func TestExplainTablesAreBrokenBetweenTraffics(t *testing.T) {
	parts := 0
	for _, l := range strings.Split(explain(t, reporttest.Stacked(), screen.Options{Width: 100, Unicode: true}), "\n") {
		if !strings.HasPrefix(l, "component") {
			continue
		}
		if parts++; !strings.Contains(l, "share") {
			t.Errorf("a part of a table without what it is of: %q", l)
		}
	}
	if parts < 2 {
		t.Errorf("%d parts: no table is broken", parts)
	}
}
