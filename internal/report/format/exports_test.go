package format

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"golang.org/x/perf/benchfmt"

	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/page"
	"github.com/cnibench/cnibench/internal/report/reporttest"
	"github.com/cnibench/cnibench/internal/report/screen"
	"github.com/cnibench/cnibench/internal/report/section"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/estimate"
	"github.com/cnibench/cnibench/internal/stat/warning"
)

// exported are the inputs of the exports' tests: the fixtures, and campaigns
// whose analysis is stat's own.
func exported() map[string]report.Input {
	cases := reporttest.Inputs()
	cases["analysed"], cases["crossed"], cases["hostile"] = reporttest.Analysed(), reporttest.Crossed(), reporttest.Hostile()
	for i := range cases["hostile"].Analysis.Warnings {
		cases["hostile"].Analysis.Warnings[i].Code += warning.Code(strconv.Itoa(i)) // one warning for each code
	}
	for name, in := range cases {
		cases[name] = reporttest.WithBlocks(in)
	}
	return cases
}

// TestExportsAgree reads the exports back and compares every number with the
// JSON, both ways.
func TestExportsAgree(t *testing.T) {
	labtest.Slow(t)
	for name, in := range exported() {
		t.Run(name, func(t *testing.T) {
			var r jsonReport
			if err := json.Unmarshal([]byte(render(t, "json", in, screen.Options{})), &r); err != nil {
				t.Fatal(err)
			}
			checkGoals(t, r, render(t, "csv", in, screen.Options{}))
			checkParquet(t, render(t, "csv", in, screen.Options{}), render(t, "parquet", in, screen.Options{}))
			checkPrometheus(t, in, r, render(t, "prometheus", in, screen.Options{}))
			checkBenchfmt(t, in, r, render(t, "benchfmt", in, screen.Options{}))
		})
	}
}

// longForm reads the CSV: a map by column for each row.
func longForm(t *testing.T, text string) []map[string]string {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var out []map[string]string
	for _, row := range rows[1:] {
		m := map[string]string{}
		for i, name := range rows[0] {
			m[name] = row[i]
		}
		out = append(out, m)
	}
	return out
}

// checkGoals compares the goals of the JSON with the rows of the CSV.
func checkGoals(t *testing.T, r jsonReport, text string) {
	t.Helper()
	got := map[string]int{}
	for _, row := range longForm(t, text) {
		if row["state"] == goalState {
			got[strings.Join([]string{row["metric"], row["network"], row["profile"], row["efficiency_ratio"], row["efficiency_low_ratio"], row["efficiency_high_ratio"], row["rank"], row["rank_to"]}, "|")]++
		}
	}
	want := map[string]int{}
	for _, g := range r.Analysis.Goals {
		for _, x := range g.Ranked {
			estimate := []string{"", "", ""}
			if x.Efficiency != nil {
				estimate = csvEstimate(*x.Efficiency)
			}
			want[strings.Join(append(append([]string{string(g.Goal), guard(x.Network), guard(x.Profile)}, estimate...), strconv.Itoa(x.Rank), strconv.Itoa(x.RankTo)), "|")]++
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("goals: CSV has %v, JSON %v", got, want)
	}
}

// checkParquet compares every field of the Parquet file with the CSV.
func checkParquet(t *testing.T, text, file string) {
	t.Helper()
	f, err := parquet.OpenFile(strings.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	rows := longForm(t, text)
	if int(f.NumRows()) != len(rows) {
		t.Fatalf("%d rows, the CSV has %d", f.NumRows(), len(rows))
	}
	at := 0
	for _, g := range f.RowGroups() {
		reader := g.Rows()
		buffer := make([]parquet.Row, 16)
		for {
			n, err := reader.ReadRows(buffer)
			for _, row := range buffer[:n] {
				for i, path := range f.Schema().Columns() {
					want := rows[at][path[0]]
					if got := parquetField(row[i], kindOf(path[0])); got != want {
						t.Errorf("row %d, %s: Parquet has %q, CSV %q", at, path[0], got, want)
					}
				}
				at++
			}
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := reader.Close(); err != nil {
			t.Error(err)
		}
	}
	if at != len(rows) {
		t.Errorf("%d rows read of %d", at, len(rows))
	}
}

// parquetField is a value as the CSV writes it.
func parquetField(v parquet.Value, k columnKind) string {
	switch {
	case v.IsNull():
		return ""
	case k == textColumn:
		return guard(v.String())
	case k == boolColumn:
		return boolean(v.Boolean())
	}
	return Exact(v.Double())
}

// parsePrometheus reads the text format with Prometheus' own parser: every
// value by its metric and sorted labels.
func parsePrometheus(t *testing.T, text string) map[string]float64 {
	t.Helper()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for name, f := range families {
		if f.GetType() != dto.MetricType_GAUGE || f.GetHelp() == "" {
			t.Errorf("%s: type %s, help %q", name, f.GetType(), f.GetHelp())
		}
		for _, m := range f.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			out[seriesName(name, labels)] = m.GetGauge().GetValue()
		}
	}
	if want := strings.Count(text, "\n") - strings.Count("\n"+text, "\n#"); len(out) != want {
		t.Errorf("%d series were read, %d written: some are there twice", len(out), want)
	}
	return out
}

func seriesName(name string, labels map[string]string) string {
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		if labels[k] != "" {
			name += "|" + k + "=" + labels[k]
		}
	}
	return name
}

// checkPrometheus compares every estimate, efficiency and rank of the JSON with
// the series, and checks that there are no others.
func checkPrometheus(t *testing.T, in report.Input, r jsonReport, text string) {
	t.Helper()
	got := parsePrometheus(t, text)
	want := map[string]float64{}
	for _, s := range r.Analysis.Cells {
		labels := func(more ...string) map[string]string {
			out := map[string]string{"campaign": page.Clean(r.Campaign)}
			for _, f := range csvFactors() {
				out[f.name] = page.Clean(f.value(s.Cell))
			}
			for i := 0; i < len(more); i += 2 {
				out[more[i]] = page.Clean(more[i+1])
			}
			return out
		}
		add := func(name string, e estimate.Estimate, more ...string) {
			want[seriesName("cnibench_"+name, labels(more...))] = e.Value
			if low, high, ok := e.Interval(); ok {
				want[seriesName("cnibench_low_"+name, labels(more...))] = low
				want[seriesName("cnibench_high_"+name, labels(more...))] = high
			}
		}
		for _, from := range []map[string]estimate.Estimate{s.Absolute, s.Latency} {
			for name, e := range from {
				add(name, e, "statistic", promStatistic(e.Method))
			}
		}
		for name, e := range s.EfficiencyByMetric {
			add("efficiency_ratio", e, "metric", name, "primary", boolean(name == s.Primary))
		}
		want[seriesName("cnibench_cell_blocks", labels())] = float64(s.OK)
		want[seriesName("cnibench_cell_failed_samples", labels())] = float64(s.Failed)
	}
	for k, v := range want {
		if g, ok := got[k]; !ok || g != v {
			t.Errorf("%s: Prometheus has %v (%v), JSON %v", k, g, ok, v)
		}
	}
	for k := range got {
		value := !regexp.MustCompile(`^cnibench_(info|blocks|samples|finished_timestamp_seconds|warning_cells|cell|goal_\w+|rank|rank_to|(low|high)_goal_efficiency_ratio)(\||$)`).MatchString(k)
		notMeasured := slices.ContainsFunc(r.NotMeasured, func(c result.Cell) bool { return strings.Contains(k, "|network="+page.Clean(c.Network)) }) && strings.HasPrefix(k, "cnibench_cell_")
		if _, ok := want[k]; value && !ok && !notMeasured {
			t.Errorf("Prometheus has %s, JSON not", k)
		}
	}
	for _, g := range r.Analysis.Goals {
		for _, x := range g.Ranked {
			labels := map[string]string{"campaign": page.Clean(r.Campaign), "goal": string(g.Goal), "network": page.Clean(x.Network), "profile": page.Clean(x.Profile)}
			if got[seriesName("cnibench_goal_rank", labels)] != float64(x.Rank) || got[seriesName("cnibench_goal_rank_to", labels)] != float64(x.RankTo) {
				t.Errorf("%s, %s: ranks differ", g.Goal, x.Option)
			}
			if x.Efficiency != nil && got[seriesName("cnibench_goal_efficiency_ratio", labels)] != x.Efficiency.Value {
				t.Errorf("%s, %s: efficiencies differ", g.Goal, x.Option)
			}
		}
	}
	if got[seriesName("cnibench_samples", map[string]string{"campaign": page.Clean(r.Campaign), "status": "ok"})] != float64(in.Tally.OK) {
		t.Error("the number of samples differs")
	}
}

// checkBenchfmt reads the benchmark format with benchstat's own reader: the
// median of each cell and metric is the report's.
func checkBenchfmt(t *testing.T, in report.Input, r jsonReport, text string) {
	t.Helper()
	values := map[string]map[string][]float64{}
	reader := benchfmt.NewReader(strings.NewReader(text), "report")
	for reader.Scan() {
		switch rec := reader.Result().(type) {
		case *benchfmt.Result:
			name := "Benchmark" + string(rec.Name.Full())
			if values[name] == nil {
				values[name] = map[string][]float64{}
			}
			for _, v := range rec.Values {
				values[name][v.Unit] = append(values[name][v.Unit], v.Value)
			}
		case *benchfmt.SyntaxError:
			t.Errorf("not in the benchmark format: %v", rec)
		}
	}
	if err := reader.Err(); err != nil {
		t.Fatal(err)
	}
	for _, s := range r.Analysis.Cells {
		for metric, e := range s.Absolute {
			if m, _ := report.FindMetric(metric); m.Better == 0 {
				continue
			}
			xs := slices.Sorted(slices.Values(values[BenchName(s.Cell)][metric]))
			if len(xs) != e.N {
				t.Errorf("%s, %s: %d values, JSON %d", BenchName(s.Cell), metric, len(xs), e.N)
				continue
			}
			if got := (xs[(len(xs)-1)/2] + xs[len(xs)/2]) / 2; got != e.Value {
				t.Errorf("%s, %s: median %v, JSON %v", BenchName(s.Cell), metric, got, e.Value)
			}
			delete(values[BenchName(s.Cell)], metric)
		}
	}
	for name, units := range values {
		for u := range units {
			t.Errorf("the benchmark format has %s of %s, JSON not", u, name)
		}
	}
	for _, m := range reader.Units() {
		if m.Key != "better" {
			t.Errorf("unit %+v", m)
		}
	}
	for _, c := range report.New(in).Unmeasured {
		if !strings.Contains(text, BenchName(c)+": "+section.NoRecord) {
			t.Errorf("nothing is said of %s", BenchName(c))
		}
	}
}

// TestDashboardReadsWhatIsWritten: every metric that the dashboard queries is
// one that the exporter writes, and each of its labels one that it has.
func TestDashboardReadsWhatIsWritten(t *testing.T) {
	data, err := os.ReadFile("../../../dashboards/grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(data) {
		t.Fatal("no JSON")
	}
	var board any
	if err := json.Unmarshal(data, &board); err != nil {
		t.Fatal(err)
	}
	written := ""
	for _, in := range exported() {
		written += render(t, "prometheus", in, screen.Options{})
	}
	names, labels := map[string]bool{}, map[string]bool{}
	for _, line := range strings.Split(written, "\n") {
		if name, rest, ok := strings.Cut(line, "{"); ok && !strings.HasPrefix(line, "#") {
			names[name] = true
			for _, m := range regexp.MustCompile(`(\w+)="`).FindAllStringSubmatch(rest, -1) {
				labels[m[1]] = true
			}
		}
	}
	queries := 0
	for _, q := range queriesOf(board) {
		for _, name := range regexp.MustCompile(`cnibench_\w+`).FindAllString(q, -1) {
			queries++
			if !names[name] {
				t.Errorf("%s: nothing writes %s", q, name)
			}
		}
		for _, m := range regexp.MustCompile(`[{,](\w+)(=~|!=|=)"`).FindAllStringSubmatch(q, -1) {
			if !labels[m[1]] {
				t.Errorf("%s: nothing has the label %s", q, m[1])
			}
		}
	}
	if queries < 15 {
		t.Errorf("%d metrics are queried: is the search for them broken?", queries)
	}
}

// queriesOf finds the queries of panels and variables.
func queriesOf(v any) []string {
	var out []string
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			if s, ok := x.(string); ok && (k == "expr" || k == "query" || k == "definition") {
				out = append(out, s)
			}
			out = append(out, queriesOf(x)...)
		}
	case []any:
		for _, x := range v {
			out = append(out, queriesOf(x)...)
		}
	}
	return out
}

// TestEveryFactorIsExported: a factor that the long form did not have would make
// two cells one.
func TestEveryFactorIsExported(t *testing.T) {
	base := factorsOf(result.Cell{})
	typ := reflect.TypeFor[result.Cell]()
	for i := range typ.NumField() {
		var c result.Cell
		switch f := reflect.ValueOf(&c).Elem().Field(i); f.Kind() {
		case reflect.String:
			f.SetString("x")
		case reflect.Int:
			f.SetInt(7)
		case reflect.Float64:
			f.SetFloat(7)
		case reflect.Bool:
			f.SetBool(true)
		default:
			t.Fatalf("%s: a factor of kind %s", typ.Field(i).Name, f.Kind())
		}
		row := factorsOf(c)
		if slices.Equal(row, base) {
			t.Errorf("csvFactors has no column for %s", typ.Field(i).Name)
		}
		for k, field := range row {
			if _, err := parquetValue(kindOf(longColumns()[k]), field); err != nil {
				t.Errorf("%s: kindOf does not know its column: %v", typ.Field(i).Name, err)
			}
		}
	}
}

// TestBenchfmtWantsBlocks: an analysis that kept no blocks is no reason for a
// file without figures.
func TestBenchfmtWantsBlocks(t *testing.T) {
	if err := Write(&bytes.Buffer{}, "benchfmt", reporttest.Normal(), screen.Options{}); err == nil {
		t.Error("a report without blocks was written")
	}
}

// TestParquetSaysWhatIsMissing: in the file's own metadata.
func TestParquetSaysWhatIsMissing(t *testing.T) {
	text := render(t, "parquet", reporttest.Inputs()["empty"], screen.Options{})
	f, err := parquet.OpenFile(strings.NewReader(text), int64(len(text)))
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := f.Lookup("missing"); !strings.Contains(got, "no records") {
		t.Errorf("missing %q", got)
	}
}
