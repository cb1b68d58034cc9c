package format

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/reporttest"
	"github.com/cnibench/cnibench/internal/report/screen"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/internal/stat/summary"
)

// readBlock is a table or a chart as the page's script reads it.
type readBlock struct {
	Caption string
	Columns []struct {
		Head, Sub string
		Of        int
	}
	Rows  [][]json.RawMessage
	RowOf []int
	Notes []string

	Kind, Title, Words string
	Categories         []struct{ Name string }
	Series             []readSeries
}

type readSeries struct {
	Name            string
	X, Y, Low, High readNumbers
	Network         int
}

// readNumbers are numbers to draw; NaN is one that is absent.
type readNumbers []float64

func (n *readNumbers) UnmarshalJSON(text []byte) error {
	var packed []*float64
	if err := json.Unmarshal(text, &packed); err != nil {
		return err
	}
	*n = nil
	whole := 0.0
	for _, v := range packed[1:] {
		if v == nil {
			*n = append(*n, math.NaN())
			continue
		}
		whole += *v
		*n = append(*n, whole*math.Pow10(int(*packed[0])))
	}
	return nil
}

// readData is what the page's script has.
type readData struct {
	Factors []struct {
		Name   string
		Values []string
	}
	Abouts   [][]int
	Networks []string
	Blocks   []readBlock
}

func dataOf(t testing.TB, page string) readData {
	t.Helper()
	var data readData
	if err := json.Unmarshal(reporttest.DataJSON(t, page), &data); err != nil {
		t.Fatal(err)
	}
	return data
}

// readHTML reads all tables of a page's data: by the heading above (in sections
// that have one), caption, row and column. exacts are the values behind.
func readHTML(t *testing.T, text string) (figures, map[[3]string]string) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	data := dataOf(t, text)
	page, exacts := figures{}, map[[3]string]string{}
	heading := ""
	for n := range root.Descendants() {
		switch n.Data {
		case "section":
			heading = ""
		case "h3":
			heading = content(n)
		case "div":
			if at, err := strconv.Atoi(attribute(n, "data-block")); err == nil {
				data.Blocks[at].read(t, heading, page, exacts)
			}
		}
	}
	return page, exacts
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// read puts the cells of a table where they can be found.
func (b readBlock) read(t *testing.T, heading string, page figures, exacts map[[3]string]string) {
	t.Helper()
	caption := b.Caption
	if heading != "" {
		caption = heading + "; " + caption
	}
	for _, row := range b.Rows {
		name, _ := readCell(t, row[0])
		for i, raw := range row[1:] {
			key := [3]string{spaced(caption), name, spaced(b.Columns[i+1].Head + " " + b.Columns[i+1].Sub)}
			text, value := readCell(t, raw)
			page[key] = text
			if value != "" {
				exacts[key] = value
			}
		}
	}
}

// readCell gives what a cell says and the value behind.
func readCell(t *testing.T, raw json.RawMessage) (text, value string) {
	t.Helper()
	switch raw[0] {
	case '"':
		if err := json.Unmarshal(raw, &text); err != nil {
			t.Fatal(err)
		}
	case '[':
		var parts []json.RawMessage
		rank := ""
		if err := json.Unmarshal(raw, &parts); err != nil {
			t.Fatal(err)
		}
		text, _ = readCell(t, parts[0])
		if value = string(parts[1]); value == "null" {
			value = ""
		}
		if len(parts) > 2 {
			if rank, _ = readCell(t, parts[2]); rank != "" {
				text += " rank " + rank
			}
		}
	}
	return spaced(text), value
}

// behind is a value as a page has it behind its text.
func behind(v float64) string { return strconv.FormatFloat(v, 'g', valueDigits, 64) }

// TestHTMLScriptIsWhole: the page has the script whose sum is in its policy, and
// no other.
func TestHTMLScriptIsWhole(t *testing.T) {
	page := render(t, "html", reporttest.Normal(), screen.Options{})
	script, err := templates.ReadFile("templates/report.js")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(page, "<script>"+string(script)+"</script>") {
		t.Error("the script is not in the page as it was built")
	}
	if strings.Count(page, "<script") != strings.Count(string(script), "<script")+2 {
		t.Error("the page has another script than its own")
	}
}

// many is a campaign of about 5,000 cells, with all that charts are drawn from.
func many() report.Input {
	random := rand.New(rand.NewPCG(5, 6))
	in := reporttest.Normal()
	in.Campaign.Name, in.Analysis, in.Plan.Cells = "many", stat.Analysis{Confidence: 0.95}, nil
	networks := append([]reporttest.FixtureNetwork{{Name: result.HostNetwork, Eff: [3]float64{1, 1, 1}}}, reporttest.FixtureNetworks()...)
	for i := range 5 {
		networks = append(networks, reporttest.FixtureNetwork{Name: fmt.Sprintf("other/%d", i), Eff: [3]float64{0.9, 0.8, 0.7}})
	}
	for _, link := range []string{"1-gigabit", "10-gigabit", "unshaped"} {
		for _, profile := range []string{"accelerator-performance", "default_settings", "hpc-compute", "kernel_optimizations", "latency-performance", "network-latency", "network-throughput", "nic_optimizations"} {
			for _, mtu := range []int{1500, 9000} {
				for _, n := range networks {
					for _, b := range []int{64, 512, 1472, 9000, 15000} {
						for _, workload := range []string{"tcp_rr", "tcp_stream"} {
							c := reporttest.CellOf(n.Name, workload, b)
							c.Link, c.Profile, c.MTU = link, profile, mtu
							in.Analysis.Cells = append(in.Analysis.Cells, manySummary(c, n, random))
						}
					}
				}
			}
		}
	}
	reporttest.SortCells(&in)
	in.Flames = deepStacks(in)
	return in
}

func manySummary(c result.Cell, n reporttest.FixtureNetwork, random *rand.Rand) summary.Cell {
	about := func(v float64) float64 { return v * math.Exp(0.05*random.NormFloat64()) }
	base := 31416.0
	if c.Workload == "tcp_stream" {
		base = 1e6 * float64(c.MessageBytes)
	}
	s := reporttest.SummaryOf(c, about(base), about(n.Eff[0]), 0.01*(1+random.Float64()), 20)
	s.Shape = reporttest.ShapeOf(s, random, 20)
	return s
}

// mostBytes is how large a page may be.
const mostBytes = 3_000_000

func TestHTMLStaysSmall(t *testing.T) {
	labtest.Slow(t)
	in := many()
	if n := len(in.Analysis.Cells); n < 5000 {
		t.Fatalf("%d cells, want 5,000", n)
	}
	page := render(t, "html", in, screen.Options{})
	t.Logf("%d cells: %d bytes, of them %d for the script and %d for the data (%d of JSON)", len(in.Analysis.Cells), len(page),
		len(reporttest.OwnScript.FindString(page)), len(reporttest.DataScript.FindString(page)), len(reporttest.DataJSON(t, page)))
	if len(page) > mostBytes {
		t.Errorf("the page of %d cells has %d bytes", len(in.Analysis.Cells), len(page))
	}
}

// BenchmarkHTML writes the page of 5,000 cells.
func BenchmarkHTML(b *testing.B) {
	in := many()
	for b.Loop() {
		var page bytes.Buffer
		if err := Write(&page, "html", in, screen.Options{}); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(page.Len()), "bytes/page")
	}
}

// shaped is a small campaign with all that charts are drawn from: two message
// sizes, three numbers of streams, a link with a limit.
func shaped() report.Input {
	random := rand.New(rand.NewPCG(7, 8))
	in := report.Input{Campaign: campaign.Campaign{Name: "shaped", Sampling: reporttest.Sampling()}, Environment: reporttest.FixtureEnvironment(), Dir: "results/s", Version: "v0.1.0", Analysis: stat.Analysis{Confidence: 0.95}}
	networks := append([]reporttest.FixtureNetwork{{Name: result.HostNetwork, Eff: [3]float64{1, 1, 1}}}, reporttest.FixtureNetworks()...)
	for _, profile := range []string{"default_settings", "network-throughput"} {
		for _, n := range networks {
			for _, b := range []int{64, 512, 1472, 9000, 15000} {
				c := reporttest.CellOf(n.Name, "tcp_rr", b)
				c.Profile = profile
				s := reporttest.SummaryOf(c, 31416/(1+float64(b)/9000), n.Eff[0], 0.012, 12)
				s.Shape = reporttest.ShapeOf(s, random, 12)
				in.Analysis.Cells = append(in.Analysis.Cells, s)
				for _, streams := range []int{1, 2, 4, 8} {
					c := reporttest.CellOf(n.Name, "tcp_stream", b)
					c.Profile, c.Streams = profile, streams
					limit := 23.9e9
					v := min(limit, 17.8e9*float64(b)/(float64(b)+1200)*math.Pow(float64(streams), 0.45))
					s := reporttest.SummaryOf(c, v, min(n.Eff[1], limit/v), 0.012, 12)
					s.LinkLimit, s.LinkBound = &limit, s.Absolute[s.Primary].Value > 0.99*limit
					s.Shape = reporttest.ShapeOf(s, random, 12)
					in.Analysis.Cells = append(in.Analysis.Cells, s)
				}
			}
		}
	}
	reporttest.SortCells(&in)
	return in
}
