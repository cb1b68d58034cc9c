package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
)

// csvFactor is a factor of a cell as a column; what does not apply is empty.
type csvFactor struct {
	name  string
	value func(result.Cell) string
}

func csvFactors() []csvFactor {
	return []csvFactor{
		{"network", func(c result.Cell) string { return guard(c.Network) }},
		{"path", func(c result.Cell) string { return guard(c.Path) }},
		{"placement", func(c result.Cell) string { return guard(c.Placement) }},
		{"link", func(c result.Cell) string { return guard(c.Link) }},
		{"profile", func(c result.Cell) string { return guard(c.Profile) }},
		{"mtu_bytes", func(c result.Cell) string { return number(float64(c.MTU)) }},
		{"family", func(c result.Cell) string { return guard(c.Family) }},
		{"services", func(c result.Cell) string { return number(float64(c.Services)) }},
		{"service_proxy", func(c result.Cell) string { return guard(c.ServiceProxy) }},
		{"policies", func(c result.Cell) string { return number(float64(c.Policies)) }},
		{"workload", func(c result.Cell) string { return guard(c.Workload) }},
		{"test", func(c result.Cell) string { return guard(c.Test) }},
		{"protocol", func(c result.Cell) string { return guard(c.Protocol) }},
		{"direction", func(c result.Cell) string { return guard(c.Direction) }},
		{"message_bytes", func(c result.Cell) string { return number(float64(c.MessageBytes)) }},
		{"response_bytes", func(c result.Cell) string { return number(float64(c.ResponseBytes)) }},
		{"streams", func(c result.Cell) string { return number(float64(c.Streams)) }},
		{"burst", func(c result.Cell) string { return number(float64(c.Burst)) }},
		{"rate_bits_per_second", func(c result.Cell) string { return number(c.RateBitsPerSecond) }},
		{"rate_per_second", func(c result.Cell) string { return number(c.RatePerSecond) }},
		{"udp_gso", func(c result.Cell) string { return boolean(c.UDPGSO) }},
		{"zero_copy", func(c result.Cell) string { return boolean(c.ZeroCopy) }},
		{"pods", func(c result.Cell) string { return number(float64(c.Pods)) }},
		{"background_streams", func(c result.Cell) string { return number(float64(c.BackgroundStreams)) }},
		{"pin_cpus", func(c result.Cell) string { return boolean(c.PinCPUs) }},
	}
}

// csvValues are the columns after the factors.
func csvValues() []string {
	return []string{
		"state", "metric", "unit", "statistic", "value", "low", "high", "blocks", "blocks_needed", "confidence",
		"efficiency_ratio", "efficiency_low_ratio", "efficiency_high_ratio", "efficiency_blocks",
		"primary", "rank", "rank_to", "link_bound", "model_of", "failed_samples", "reason", "compared_metric", "compared_with",
	}
}

// writeCSV writes the long form: one row for each cell, metric and statistic,
// and one for each cell that has no value. An empty field is absent, not 0.
func writeCSV(w io.Writer, d *document, _ Options) error {
	out := csv.NewWriter(w)
	out.UseCRLF = true // RFC 4180
	var head []string
	for _, f := range csvFactors() {
		head = append(head, f.name)
	}
	if err := out.Write(append(head, csvValues()...)); err != nil {
		return err
	}
	cells := slices.Clone(d.Analysis.Cells)
	for _, c := range d.unmeasured {
		cells = append(cells, stat.CellSummary{Cell: c})
	}
	for _, s := range cells {
		var factors []string
		for _, f := range csvFactors() {
			factors = append(factors, f.value(s.Cell))
		}
		for _, row := range d.csvRows(s) {
			if err := out.Write(append(slices.Clone(factors), row...)); err != nil {
				return err
			}
		}
	}
	out.Flush()
	return out.Error()
}

// csvRows are the rows of a cell, without its factors.
func (d *document) csvRows(s stat.CellSummary) [][]string {
	tail := []string{guard(d.model(s.Cell.Network)), strconv.Itoa(s.Failed), guard(whyMissing(s)), "", ""}
	var rows [][]string
	add := func(metric string, e stat.Estimate, withEfficiency bool) {
		m, _ := findMetric(metric)
		row := append([]string{state(s), metric, m.Unit, string(e.Method)}, csvEstimate(e)...)
		row = append(row, strconv.Itoa(e.N), number(float64(e.Needed)), number(e.Confidence))
		rows = append(rows, append(append(row, d.csvEfficiency(s, metric, withEfficiency)...), tail...))
	}
	names := slices.Collect(maps.Keys(s.Absolute))
	for _, m := range metrics() {
		if e, ok := s.Absolute[m.Name]; ok {
			add(m.Name, e, true)
		}
		if e, ok := s.Latency[m.Name]; ok {
			_, twice := s.Absolute[m.Name]
			add(m.Name, e, !twice)
		}
		names = slices.DeleteFunc(names, func(n string) bool { return n == m.Name })
	}
	slices.Sort(names)
	for _, n := range names { // of a later version of the records
		add(n, s.Absolute[n], true)
	}
	if len(rows) == 0 {
		empty := make([]string, len(csvValues())-len(tail)-1)
		rows = append(rows, append(append([]string{state(s)}, empty...), tail...))
	}
	return append(rows, d.csvChecks(s)...)
}

// csvChecks are the rows of a cell's cross-checks: a native cell against each
// published tool, and rate × round trip.
func (d *document) csvChecks(s stat.CellSummary) [][]string {
	var rows [][]string
	add := func(metric string, e *stat.Estimate, reason, comparedMetric, comparedWith string) {
		row := []string{state(s), metric, "", "", "", "", "", "", "", ""}
		if e != nil {
			row = append([]string{state(s), metric, "", string(e.Method)}, csvEstimate(*e)...)
			row = append(row, strconv.Itoa(e.N), number(float64(e.Needed)), number(e.Confidence))
		}
		row = append(row, make([]string, 8)...) // no efficiency
		rows = append(rows, append(row, guard(d.model(s.Cell.Network)), strconv.Itoa(s.Failed), guard(reason), comparedMetric, guard(comparedWith)))
	}
	for _, x := range d.Analysis.CrossChecks {
		if x.Native == s.Cell {
			add("native_over_classic_ratio", x.Ratio, x.NoRatio, x.Metric, x.Classic.Traffic())
		}
	}
	for _, r := range d.Analysis.RoundTrips {
		if r.Cell == s.Cell {
			reason := ""
			if !r.OK {
				reason = roundTripWord(r)
			}
			add("round_trip_product_ratio", &r.Product, reason, "", "")
		}
	}
	return rows
}

func csvEstimate(e stat.Estimate) []string {
	low, high, ok := e.Interval()
	if !ok {
		return []string{exact(e.Value), "", ""}
	}
	return []string{exact(e.Value), exact(low), exact(high)}
}

func (d *document) csvEfficiency(s stat.CellSummary, metric string, wanted bool) []string {
	row := make([]string, 8)
	if !wanted {
		return row
	}
	e, ok := s.EfficiencyByMetric[metric]
	if metric == s.Primary && s.Efficiency != nil {
		e, ok = *s.Efficiency, true
	}
	if ok {
		copy(row, csvEstimate(e))
		row[3] = strconv.Itoa(e.N)
	}
	row[4] = boolean(metric == s.Primary)
	group := s.Cell
	group.Network = ""
	for _, r := range d.Analysis.Rankings {
		if r.Group != group || r.Metric != metric {
			continue
		}
		for _, n := range r.Ranked {
			if n.Network == s.Cell.Network {
				row[5], row[6], row[7] = fmt.Sprint(n.Rank), fmt.Sprint(n.RankTo), boolean(n.LinkBound)
			}
		}
	}
	return row
}

// guard keeps a text field from being taken for a formula by a spreadsheet
// (OWASP, "CSV Injection"): one that begins like a formula gets an apostrophe.
func guard(s string) string {
	if s != "" && (s[0] == '=' || s[0] == '+' || s[0] == '-' || s[0] == '@' || s[0] == '\t' || s[0] == '\r' || s[0] == '\n') {
		return "'" + s
	}
	return s
}

func exact(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// number leaves a factor that does not apply empty.
func number(v float64) string {
	if v == 0 {
		return ""
	}
	return exact(v)
}

func boolean(on bool) string {
	if on {
		return "true"
	}
	return ""
}
