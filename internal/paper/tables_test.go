package paper

import (
	"math"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/result"
)

func throughputs() Table {
	return Table{ID: "t", Title: "T", Ours: &Ours{Metric: throughput, Unit: "Gbit/s", BasePerUnit: 1e9},
		Columns: []Column{{Name: "1", Cell: Selector{"streams": 1.0}}, {Name: "2", Cell: Selector{"streams": 2.0}}},
		Rows: []Row{
			{Name: "A", Cell: on("a"), Values: []*float64{ptr(4), ptr(6)}},
			{Name: "B", Cell: on("b"), Values: []*float64{ptr(2), nil}},
			{Name: "C", Cell: on("c"), Values: []*float64{ptr(9), ptr(9)}, Inconsistent: "it cannot be"},
			{Name: "node", Cell: on("host"), Values: []*float64{ptr(8), ptr(8)}, Baseline: true},
		}}
}

func TestTables(t *testing.T) {
	r := (&made{}).
		add(cellOf("a"), throughput, 3e9, 3.3e9).add(cellOf("b"), throughput, 3.9e9, 4.3e9).
		add(cellOf("c"), throughput, 1e9, 1e9).add(cellOf("host"), throughput, 6e9, 6.6e9).
		add(cellOf("a", streams(2)), throughput, 3e9, 3e9).unsupported(cellOf("b", streams(2)), "no b").results()
	c := compare(nil, throughputs(), r)
	if c.Reference != 3 {
		t.Fatalf("reference %d", c.Reference)
	}
	a := c.Cells[0][0]
	if math.Abs(a.Ours.Value-3.15) > 1e-9 || math.Abs(*a.PublishedShare-0.5) > 1e-9 || math.Abs(a.OurShare.Value-0.5) > 1e-9 || a.OurShare.Low == nil {
		t.Errorf("%+v", a)
	}
	// The share is of a's own blocks against the node's: no spread is left.
	if *a.OurShare.High-*a.OurShare.Low > 1e-9 {
		t.Errorf("%+v", a.OurShare)
	}
	if c.Cells[2][0].PublishedShare != nil {
		t.Error("a row that cannot be right is compared")
	}
	if why := c.Cells[1][1].Why; !strings.Contains(why, "no b") {
		t.Errorf("%q", why)
	}
	if c.Cells[0][1].OurShare != nil || c.Cells[3][1].Why == "" {
		t.Errorf("a share of a row that was not measured: %+v", c.Cells[0][1])
	}
	// Published: node > a > b with 1 stream. Ours: node > b > a.
	if c.Order != (Order{Same: 2, Opposite: 1}) {
		t.Errorf("%+v", c.Order)
	}
}

func TestTableOfEfficiencies(t *testing.T) {
	const latency = "latency_mean_seconds"
	r := (&made{}).add(cellOf("a"), latency, 20e-6, 22e-6).add(cellOf("host"), latency, 10e-6, 11e-6).add(cellOf("b"), latency, 40e-6, 44e-6).results()
	table := Table{Ours: &Ours{Metric: latency, Measure: efficiencyMeasure, Unit: "%", BasePerUnit: 0.01}, Columns: []Column{{Name: "x"}},
		Rows: []Row{{Name: "A", Cell: on("a"), Values: []*float64{ptr(80)}}, {Name: "B", Cell: on("b"), Values: []*float64{ptr(70)}}}}
	c := compare(nil, table, r)
	if got := c.Cells[0][0].Ours.Value; math.Abs(got-50) > 1e-9 {
		t.Errorf("%g %%, want 50", got)
	}
	if c.Order != (Order{Same: 1}) {
		t.Errorf("%+v", c.Order)
	}
}

// TestAmbiguousTable: where several recorded cells are as the table says, none is
// taken.
func TestAmbiguousTable(t *testing.T) {
	r := (&made{}).add(cellOf("a"), throughput, 1e9, 1e9).add(cellOf("a", profile("tuned")), throughput, 2e9, 2e9).results()
	table := throughputs()
	if e := compare(nil, table, r).Cells[0][0]; e.Ours != nil || !strings.Contains(e.Why, "several") {
		t.Errorf("%+v", e)
	}
	if e := compare(Selector{"profile": "tuned"}, table, r).Cells[0][0]; e.Ours == nil || e.Ours.Value != 2 {
		t.Errorf("%+v", e)
	}
}

func TestDifferences(t *testing.T) {
	r := (&made{env: result.Environment{Host: result.Host{Kernel: "6.18", CPUs: 2}}}).results()
	r.Campaign = campaign.Campaign{Links: []string{"10-gigabit"}, MTU: []int{1500, 9000}}
	p := Paper{Publication: Publication{Setup: []Setup{
		{What: "kernel", Published: "5.9", Of: "kernel"}, {What: "link", Published: "25", Of: "links", InTheLab: "shaped"},
		{What: "NIC", Published: "Mellanox", InTheLab: "none"}, {What: "MTU", Published: "?", Of: "mtu"}}}}
	want := []Difference{{"kernel", "5.9", "6.18"}, {"link", "25", "10-gigabit; shaped"}, {"NIC", "Mellanox", "none"}, {"MTU", "?", "1500 9000"}}
	for i, d := range Differences(p, r) {
		if d != want[i] {
			t.Errorf("%+v, want %+v", d, want[i])
		}
	}
}
