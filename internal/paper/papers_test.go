package paper

import (
	"io/fs"
	"math"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/network/catalog"
	"github.com/cnibench/cnibench/internal/probe"
	profiles "github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/testbed/lab/wire"
	"github.com/cnibench/cnibench/internal/unit"
	"github.com/cnibench/cnibench/internal/workload"
	"github.com/cnibench/cnibench/papers"
)

// program is what this program has, as the command line knows it.
func program(testing.TB) Known {
	k := Known{Names: campaign.Known{Testbeds: []string{"lab", campaign.Hosts, campaign.Kubernetes}, Profiles: profiles.Names(), Probes: probe.Names()},
		LinkRate: func(name string) (float64, bool) {
			for _, l := range wire.Links() {
				if l.Name == name && l.RateBitsPerSecond > 0 {
					return float64(l.TotalBitsPerSecond()), true
				}
			}
			return 0, false
		},
		Primary: func(c result.Cell) string {
			w, err := workload.Find(c.Workload)
			if err != nil {
				return ""
			}
			return w.Spec().PrimaryFor(c.Test)
		},
	}
	for _, n := range catalog.Choices() {
		k.Names.Networks = append(k.Names.Networks, n.Name)
		if n.Policy {
			k.Names.Enforcing = append(k.Names.Enforcing, n.Name)
		}
	}
	for _, p := range catalog.ServiceProxies() {
		k.Names.ServiceProxies = append(k.Names.ServiceProxies, p.Name)
	}
	for _, l := range wire.Links() {
		k.Names.Links = append(k.Names.Links, l.Name)
	}
	for _, w := range workload.List() {
		k.Names.Workloads = append(k.Names.Workloads, w.Spec())
	}
	return k
}

// loadedOnce keeps all papers: loading them proves for each claim that records can decide it,
// which takes longer than most tests that look at a paper. Nothing changes what it has.
var loadedOnce = sync.OnceValues(loadAll)

func loadAll() ([]Paper, error) {
	names, err := List(papers.FS)
	if err != nil {
		return nil, err
	}
	var out []Paper
	for _, id := range names {
		p, err := Load(papers.FS, id, program(nil))
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

func all(t *testing.T) []Paper {
	t.Helper()
	out, err := loadedOnce()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func load(t *testing.T, id string) Paper {
	t.Helper()
	papers := all(t)
	i := slices.IndexFunc(papers, func(p Paper) bool { return p.ID == id })
	if i < 0 {
		t.Fatalf("no paper %s", id)
	}
	return papers[i]
}

// TestFindings: each study's findings exist, and each file of a folder is one
// that is read.
func TestFindings(t *testing.T) {
	claims := 0
	for _, p := range all(t) {
		claims += len(p.Claims)
		if len(p.Claims) < 10 || len(p.Tables) == 0 {
			t.Errorf("%s has %d claims and %d tables", p.ID, len(p.Claims), len(p.Tables))
		}
		files, err := fs.ReadDir(papers.FS, p.ID)
		read := 3
		if p.Kubernetes != nil {
			read++
		}
		if err != nil || len(files) != read {
			t.Errorf("%s: %d files, %d are read, %v", p.ID, len(files), read, err)
		}
	}
	if claims < 60 {
		t.Errorf("%d claims", claims)
	}
}

// TestMetricsAreKnown: a metric that nothing measures would be "not measurable
// here" for ever.
func TestMetricsAreKnown(t *testing.T) {
	known := map[string]bool{primaryMetric: true, "cpu_user_seconds": true, "cpu_system_seconds": true, "cpu_softirq_seconds": true}
	for _, m := range slices.Concat(unit.Metrics(), dataset.Derived(), unit.NodeMetrics()) {
		known[m.Name] = true
	}
	for _, c := range unit.Components() {
		for _, work := range []string{"byte", "packet", "segment", "transaction"} {
			known[c.Name+"_component_seconds_per_"+work] = true
		}
	}
	for _, p := range all(t) {
		for _, c := range p.Claims {
			if c.NotYet == "" && !known[c.Metric] {
				t.Errorf("%s: %s: metric %q", p.ID, c.ID, c.Metric)
			}
		}
		for _, table := range p.Tables {
			if table.Ours == nil {
				continue
			}
			for _, name := range append([]string{table.Ours.Metric}, metricsOf(table)...) {
				if !known[name] {
					t.Errorf("%s: %s: metric %q", p.ID, table.ID, name)
				}
			}
		}
	}
}

func metricsOf(t Table) []string {
	var names []string
	for _, c := range t.Columns {
		if c.Metric != "" {
			names = append(names, c.Metric)
		}
	}
	return names
}

// TestEverythingOfDakic: all 33 figures exist.
func TestEverythingOfDakic(t *testing.T) {
	if p := load(t, "dakic2024"); len(p.Tables) != 33 {
		t.Errorf("%d figures, want 33", len(p.Tables))
	}
}

// TestSpiderpoolsNumbers compares the data with counts and sums that were made
// from the text of the page itself, not from the data.
func TestSpiderpoolsNumbers(t *testing.T) {
	want := map[string]struct {
		rows, values int
		sum          float64
	}{
		"sockperf-pod-ip":     {5, 5, 163.1},
		"sockperf-cluster-ip": {5, 5, 178.8},
		"netperf-pod-ip":      {5, 5, 114126.6},
		"netperf-cluster-ip":  {5, 5, 109574.4},
		"iperf3-pod-ip":       {5, 15, 128.42},
		"iperf3-cluster-ip":   {5, 15, 119.56},
		"redis-pod-ip":        {4, 8, 480785.99},
		"redis-cluster-ip":    {4, 8, 431361.85},
		"same-node":           {2, 2, 24.978},
	}
	p := load(t, "spiderpool-v0.8")
	if len(p.Tables) != len(want) {
		t.Errorf("%d tables, the page has %d", len(p.Tables), len(want))
	}
	for _, table := range p.Tables {
		w, ok := want[table.ID]
		if !ok {
			t.Errorf("the page has no table %s", table.ID)
		}
		n, sum := 0, 0.0
		for _, row := range table.Rows {
			for _, v := range row.Values {
				n++
				sum += *v
			}
		}
		if len(table.Rows) != w.rows || n != w.values || math.Abs(sum-w.sum) > 1e-6 {
			t.Errorf("%s: %d rows, %d values, sum %.3f; the page has %+v", table.ID, len(table.Rows), n, sum, w)
		}
	}
}

// TestInfraBuildersNumbers compares the data with counts and sums that were made from
// the published raw results themselves: of each test and network the mean of the runs
// that have a value, rounded in the data to 0.001 Gbit/s and 0.001 %.
func TestInfraBuildersNumbers(t *testing.T) {
	type column struct {
		values int
		sum    float64
	}
	want := map[string][]column{
		"dts": {{23, 371.1568}}, "dtm": {{23, 616.8533}}, "dus": {{23, 150.2862}, {23, 369.4154}}, "dum": {{23, 523.1780}, {23, 868.3036}},
		"sts": {{21, 338.5194}}, "stm": {{22, 576.5514}}, "sus": {{22, 141.3812}, {22, 336.8315}}, "sum": {{22, 490.7369}, {22, 883.7415}},
	}
	for _, table := range load(t, "infrabuilder2024").Tables {
		columns, ok := want[table.ID]
		if !ok {
			continue
		}
		delete(want, table.ID)
		got := make([]column, len(columns))
		for _, row := range table.Rows {
			for i, v := range row.Values {
				got[i].values++
				got[i].sum += *v
			}
		}
		for i, w := range columns {
			if got[i].values != w.values || math.Abs(got[i].sum-w.sum) > 0.0005*float64(w.values) {
				t.Errorf("%s, column %d: %+v; the raw results have %+v", table.ID, i, got[i], w)
			}
		}
	}
	if len(want) > 0 {
		t.Errorf("no table for %v", want)
	}
}

// TestSpiderpoolsRoundTrips: a request and its answer take one round trip, so
// that the page's TCP_RR must be near 1 / (2 × sockperf's latency). One row is
// not, and is marked.
func TestSpiderpoolsRoundTrips(t *testing.T) {
	p := load(t, "spiderpool-v0.8")
	table := func(id string) Table {
		for _, t := range p.Tables {
			if t.ID == id {
				return t
			}
		}
		t.Fatalf("no table %s", id)
		return Table{}
	}
	marked := 0
	for _, to := range []string{"pod-ip", "cluster-ip"} {
		latency, rr := table("sockperf-"+to), table("netperf-"+to)
		for i, row := range rr.Rows {
			expected := 1e6 / (2 * *latency.Rows[i].Values[0])
			off := *row.Values[0]/expected - 1
			if consistent := math.Abs(off) < 0.2; consistent == (row.Inconsistent != "") {
				t.Errorf("%s, %s: %.0f a second where %.0f follow from the latency; marked %q", to, row.Name, *row.Values[0], expected, row.Inconsistent)
			}
			if row.Inconsistent != "" {
				marked++
			}
		}
	}
	if marked != 2 {
		t.Errorf("%d rows are marked, want the node's in both tables", marked)
	}
}

// TestCampaignsHaveTheirPapersName: a result directory then shows which study it is for.
func TestCampaignsHaveTheirPapersName(t *testing.T) {
	for _, p := range all(t) {
		if want := "name: " + p.ID + "\n"; !strings.Contains(string(p.Campaign), want) {
			t.Errorf("%s is not called %q", path.Join(p.ID, CampaignFile), want)
		}
	}
}
