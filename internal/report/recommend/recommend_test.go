package recommend

import (
	"bytes"
	"encoding/json"
	"flag"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/reporttest"
	"github.com/cnibench/cnibench/internal/report/screen"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/stat/rank"
)

var update = flag.Bool("update", false, "write the golden files")

// recommended are the answers of the golden files, each stat's own.
func recommended(t *testing.T) map[string]rank.Recommendation {
	t.Helper()
	_, all := reporttest.AnalysedSamples()
	random := rand.New(rand.NewPCG(8, 8))
	noisy := slices.Clone(all)
	for i, s := range noisy {
		noisy[i].Metrics = map[string]float64{}
		for _, k := range report.SortedKeys(s.Metrics) {
			noisy[i].Metrics[k] = s.Metrics[k] * math.Exp(0.2*random.NormFloat64())
		}
	}
	keep := func(ok func(result.Sample) bool) []result.Sample {
		return slices.DeleteFunc(slices.Clone(all), func(s result.Sample) bool { return !ok(s) })
	}
	two := func(s result.Sample) bool { return s.Cell.Network == "bridge" || s.Cell.Network == "flannel/vxlan" }
	partly := keep(func(s result.Sample) bool { return s.Cell.Network != "macvlan" || s.Cell.MessageBytes != 9000 })
	broken := result.Sample{Schema: 1, ID: "x", Block: 1, Attempt: 1, Cell: reporttest.CellOf("macvlan", "tcp_stream", 9000), Status: result.StatusFailed, Reason: "connection refused"}
	out := map[string]rank.Recommendation{}
	for name, c := range map[string]struct {
		samples []result.Sample
		q       rank.Question
	}{
		"recommend-bandwidth":   {all, rank.Question{Goal: rank.Bandwidth, MessageBytes: 1472}},
		"recommend-latency":     {all, rank.Question{Goal: rank.Latency}},
		"recommend-balanced":    {all, rank.Question{Goal: rank.Balanced}},
		"recommend-cannot-tell": {noisy, rank.Question{Goal: rank.Bandwidth}},
		"recommend-one-sample":  {keep(func(s result.Sample) bool { return s.Block == 1 }), rank.Question{Goal: rank.Bandwidth}},
		"recommend-no-baseline": {keep(two), rank.Question{Goal: rank.Bandwidth}},
		"recommend-left-out":    {append(partly, broken), rank.Question{Goal: rank.Bandwidth}},
	} {
		r, err := rank.Recommend(c.samples, dataset.Options{Environment: *reporttest.FixtureEnvironment()}, c.q)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out[name] = r
	}
	return out
}

func renderRecommendation(t *testing.T, r rank.Recommendation, asJSON bool, opt screen.Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, r, reporttest.FixtureEnvironment(), asJSON, opt); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestRecommendationGolden holds the words, and that terminal and JSON say the
// same.
func TestRecommendationGolden(t *testing.T) {
	for name, r := range recommended(t) {
		text := renderRecommendation(t, r, false, screen.Options{Width: 80, Unicode: true})
		reporttest.Golden(t, *update, name+".txt", text)
		var back jsonRecommendation
		if err := json.Unmarshal([]byte(renderRecommendation(t, r, true, screen.Options{})), &back); err != nil {
			t.Fatal(err)
		}
		flat := strings.Join(strings.Fields(text), " ")
		for _, w := range back.Words {
			if !strings.Contains(flat, w) {
				t.Errorf("%s: JSON says %q, the terminal not", name, w)
			}
		}
		for _, o := range back.Recommendation.Others {
			want := ""
			if o.Behind != nil {
				want = report.Ratio(*o.Behind)
			} else {
				want = lossWords(*o.WorstLoss)
			}
			if !strings.Contains(flat, want) {
				t.Errorf("%s: %s has %s in JSON, which the terminal lacks", name, o.Option, want)
			}
		}
		for _, columns := range []int{40, 80, 120} {
			for i, line := range strings.Split(renderRecommendation(t, r, false, screen.Options{Width: columns}), "\n") {
				if screen.Width(line) > columns {
					t.Errorf("%s, %d columns: line %d is %d wide: %s", name, columns, i+1, screen.Width(line), line)
				}
			}
		}
	}
}

func TestRecommendationIsHarmless(t *testing.T) {
	r := recommended(t)["recommend-left-out"]
	r.Take.Network, r.Others[0].Network, r.Goals[0].LeftOut[0].Why = reporttest.Evil, reporttest.Evil, reporttest.Evil
	for _, uni := range []bool{true, false} {
		if out := renderRecommendation(t, r, false, screen.Options{Unicode: uni}); strings.ContainsAny(out, "\x1b\u202e") {
			t.Error("an escape sequence or a change of direction came through")
		}
	}
}

// TestRecommendSaysDistances: a recommendation says how far a model that it compares is from
// the real network.
func TestRecommendSaysDistances(t *testing.T) {
	e := reporttest.FixtureEnvironment()
	facts := e.Networks["calico/direct"]
	facts.Distance = &result.Distance{BetweenNodesRatio: 1.24}
	e.Networks["calico/direct"] = facts
	r := recommended(t)["recommend-balanced"]
	for _, asJSON := range []bool{false, true} {
		var b bytes.Buffer
		if err := Write(&b, r, e, asJSON, screen.Options{Width: 80}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(strings.Fields(b.String()), " "); !strings.Contains(got, "24 % more between nodes") {
			t.Errorf("JSON %v: %s", asJSON, got)
		}
	}
}
