package report

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
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

var dataScript = regexp.MustCompile(`(?s)<script type="text/plain" id="data">(.*?)</script>`)

// dataJSON is the data of a page, unpacked.
func dataJSON(t testing.TB, page string) []byte {
	t.Helper()
	m := dataScript.FindStringSubmatch(page)
	if m == nil {
		t.Fatal("the page has no data")
	}
	zipped, err := base64.StdEncoding.DecodeString(m[1])
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(zipped))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func dataOf(t testing.TB, page string) readData {
	t.Helper()
	var data readData
	if err := json.Unmarshal(dataJSON(t, page), &data); err != nil {
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
				text += " place " + rank
			}
		}
	}
	return spaced(text), value
}

// behind is a value as a page has it behind its text.
func behind(v float64) string { return strconv.FormatFloat(v, 'g', valueDigits, 64) }

var ownScript = regexp.MustCompile(`(?s)<script>.*</script>`)

// bare is a page without its style and script, and its data in plain text.
func bare(t testing.TB, page string) string {
	t.Helper()
	data := dataJSON(t, page)
	page = regexp.MustCompile(`(?s)<style>.*?</style>`).ReplaceAllString(page, "<style></style>")
	page = ownScript.ReplaceAllString(page, "<script></script>")
	page = regexp.MustCompile(`sha256-.*?&#39;`).ReplaceAllString(page, "sha256-&#39;")
	var lines bytes.Buffer
	if err := json.Indent(&lines, data, "", " "); err != nil {
		t.Fatal(err)
	}
	// A list of numbers or texts is one line.
	short := regexp.MustCompile(`\[\s+([^\[\]{}]*?)\s+\]`).ReplaceAllStringFunc(lines.String(), func(s string) string {
		return strings.Join(strings.Fields(s), " ")
	})
	return dataScript.ReplaceAllLiteralString(page, "<script type=\"text/plain\" id=\"data\">\n"+short+"</script>")
}

// TestHTMLScriptIsWhole: the page has the script whose sum is in its policy, and
// no other.
func TestHTMLScriptIsWhole(t *testing.T) {
	page := render(t, "html", normal(), Options{})
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
func many() Input {
	random := rand.New(rand.NewPCG(5, 6))
	in := normal()
	in.Campaign.Name, in.Analysis, in.Plan.Cells = "many", stat.Analysis{Confidence: 0.95}, nil
	networks := append([]fixtureNetwork{{name: result.HostNetwork, eff: [3]float64{1, 1, 1}}}, fixtureNetworks()...)
	for i := range 5 {
		networks = append(networks, fixtureNetwork{name: fmt.Sprintf("other/%d", i), eff: [3]float64{0.9, 0.8, 0.7}})
	}
	for _, link := range []string{"1-gigabit", "10-gigabit", "unshaped"} {
		for _, profile := range []string{"accelerator-performance", "default_settings", "hpc-compute", "kernel_optimizations", "latency-performance", "network-latency", "network-throughput", "nic_optimizations"} {
			for _, mtu := range []int{1500, 9000} {
				for _, n := range networks {
					for _, b := range []int{64, 512, 1472, 9000, 15000} {
						for _, workload := range []string{"tcp_rr", "tcp_stream"} {
							c := cellOf(n.name, workload, b)
							c.Link, c.Profile, c.MTU = link, profile, mtu
							in.Analysis.Cells = append(in.Analysis.Cells, manySummary(c, n, random))
						}
					}
				}
			}
		}
	}
	sortCells(&in)
	in.Flames = deepStacks(in)
	return in
}

func manySummary(c result.Cell, n fixtureNetwork, random *rand.Rand) stat.CellSummary {
	about := func(v float64) float64 { return v * math.Exp(0.05*random.NormFloat64()) }
	base := 31416.0
	if c.Workload == "tcp_stream" {
		base = 1e6 * float64(c.MessageBytes)
	}
	s := summaryOf(c, about(base), about(n.eff[0]), 0.01*(1+random.Float64()), 20)
	s.Shape = shapeOf(s, random, 20)
	return s
}

// shapeOf is what charts of a cell might be drawn from.
func shapeOf(s stat.CellSummary, random *rand.Rand, blocks int) stat.Shape {
	about := func(v float64) float64 { return v * math.Exp(0.03*random.NormFloat64()) }
	v := s.Absolute[s.Primary].Value
	var out stat.Shape
	for b := 1; b <= blocks; b++ {
		out.Blocks = append(out.Blocks, stat.BlockValue{Block: b, Value: about(v)})
	}
	if s.Cell.Workload == "tcp_rr" {
		at := 0.6 / v
		for i := range 24 {
			at *= 1 + 0.1*random.Float64()
			out.Curve = append(out.Curve, stat.Quantile{Share: 1 - math.Pow(10, -float64(i+1)/6), Seconds: at})
		}
	} else {
		w := stat.Window{IntervalSeconds: 0.1, Blocks: blocks}
		for range 10 {
			m := about(v)
			w.MedianBitsPerSecond = append(w.MedianBitsPerSecond, m)
			w.LowBitsPerSecond = append(w.LowBitsPerSecond, m*0.97)
			w.HighBitsPerSecond = append(w.HighBitsPerSecond, m*1.02)
		}
		out.Window = &w
	}
	out.CPUCores = map[string]stat.Estimate{
		"user": estimated(about(0.1), 0.05, blocks, stat.Median), "system": estimated(about(0.8), 0.05, blocks, stat.Median),
		"softirq": estimated(about(0.6), 0.05, blocks, stat.Median), "irq": estimated(about(0.02), 0.05, blocks, stat.Median),
	}
	return out
}

// mostBytes is how large a page may be.
const mostBytes = 3_000_000

func TestHTMLStaysSmall(t *testing.T) {
	in := many()
	if n := len(in.Analysis.Cells); n < 5000 {
		t.Fatalf("%d cells, want 5,000", n)
	}
	page := render(t, "html", in, Options{})
	t.Logf("%d cells: %d bytes, of them %d for the script and %d for the data (%d of JSON)", len(in.Analysis.Cells), len(page),
		len(ownScript.FindString(page)), len(dataScript.FindString(page)), len(dataJSON(t, page)))
	if len(page) > mostBytes {
		t.Errorf("the page of %d cells has %d bytes", len(in.Analysis.Cells), len(page))
	}
}

// BenchmarkHTML writes the page of 5,000 cells.
func BenchmarkHTML(b *testing.B) {
	in := many()
	for b.Loop() {
		var page bytes.Buffer
		if err := Write(&page, "html", in, Options{}); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(page.Len()), "bytes/page")
	}
}

// shaped is a small campaign with all that charts are drawn from: two message
// sizes, three numbers of streams, a link with a limit.
func shaped() Input {
	random := rand.New(rand.NewPCG(7, 8))
	in := Input{Campaign: campaign.Campaign{Name: "shaped", Sampling: sampling()}, Environment: fixtureEnvironment(), Dir: "results/s", Version: "v0.1.0", Analysis: stat.Analysis{Confidence: 0.95}}
	networks := append([]fixtureNetwork{{name: result.HostNetwork, eff: [3]float64{1, 1, 1}}}, fixtureNetworks()...)
	for _, profile := range []string{"default_settings", "network-throughput"} {
		for _, n := range networks {
			for _, b := range []int{64, 512, 1472, 9000, 15000} {
				c := cellOf(n.name, "tcp_rr", b)
				c.Profile = profile
				s := summaryOf(c, 31416/(1+float64(b)/9000), n.eff[0], 0.012, 12)
				s.Shape = shapeOf(s, random, 12)
				in.Analysis.Cells = append(in.Analysis.Cells, s)
				for _, streams := range []int{1, 2, 4, 8} {
					c := cellOf(n.name, "tcp_stream", b)
					c.Profile, c.Streams = profile, streams
					limit := 23.9e9
					v := min(limit, 17.8e9*float64(b)/(float64(b)+1200)*math.Pow(float64(streams), 0.45))
					s := summaryOf(c, v, min(n.eff[1], limit/v), 0.012, 12)
					s.LinkLimit, s.LinkBound = &limit, s.Absolute[s.Primary].Value > 0.99*limit
					s.Shape = shapeOf(s, random, 12)
					in.Analysis.Cells = append(in.Analysis.Cells, s)
				}
			}
		}
	}
	sortCells(&in)
	return in
}
