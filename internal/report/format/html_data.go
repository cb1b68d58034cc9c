package format

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"math"
	"slices"
	"strconv"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/page"
	"github.com/cnibench/cnibench/internal/result"
)

// pageData is what a page's script draws tables and charts from. Their indexes
// in Elements are the numbers in the page.
type pageData struct {
	Title    string       `json:"title"`
	Factors  []dataFactor `json:"factors"`
	Abouts   [][]int      `json:"abouts"`
	Networks []string     `json:"networks"`
	Steps    []string     `json:"steps"` // of the colour scale, the lowest first
	// Components are what the functions of flame graphs belong to.
	Components []string `json:"components,omitempty"`
	Functions  []string `json:"functions,omitempty"`
	Elements   []any    `json:"blocks"`
}

type dataFactor struct {
	Name   string   `json:"name"`
	Values []string `json:"values"`
}

type dataTable struct {
	Caption string `json:"caption"`
	// Where is the situation in words, for drawings that are saved.
	Where   string       `json:"where,omitempty"`
	Of      int          `json:"of"`
	Drawn   string       `json:"drawn,omitempty"`
	Legend  bool         `json:"legend,omitempty"`
	Columns []dataColumn `json:"columns"`
	// RowOf is what each row is about; empty where no row says.
	RowOf []int         `json:"rowOf,omitempty"`
	Rows  [][]dataField `json:"rows"`
	Notes []string      `json:"notes,omitempty"`
}

type dataColumn struct {
	Head   string `json:"head"`
	Sub    string `json:"sub,omitempty"`
	Number bool   `json:"number,omitempty"`
	Wide   bool   `json:"wide,omitempty"`
	Of     int    `json:"of"`
}

// dataField is a cell as its text alone, or as [text, value, rank, shade], or as
// {"b": [low, mid, high], "l": label}.
type dataField page.Field

// valueDigits is how many digits the values behind texts have: more than any
// text shows, and few enough that a report of 5,000 cells stays small.
const valueDigits = 6

func (c dataField) MarshalJSON() ([]byte, error) {
	if c.Bar != nil {
		b := append([]byte(`{"b":`), jsonNumbers([]float64{c.Bar.Low, c.Bar.Mid, c.Bar.High}, 3)...)
		return append(jsonString(append(b, `,"l":`...), c.Bar.Label), '}'), nil
	}
	if c.Value == nil && c.Rank == "" && c.Shade == 0 {
		return jsonString(nil, c.Text), nil
	}
	b := append(jsonString([]byte{'['}, c.Text), ',')
	b = jsonNumber(b, valueOr(c.Value), valueDigits)
	if c.Rank != "" || c.Shade > 0 {
		b = append(jsonString(append(b, ','), c.Rank), ',')
		b = strconv.AppendInt(b, int64(c.Shade), 10)
	}
	return append(b, ']'), nil
}

func isNumber(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

func valueOr(v *float64) float64 {
	if v == nil {
		return math.NaN()
	}
	return *v
}

type dataChart struct {
	Kind       string         `json:"kind"`
	Title      string         `json:"title"`
	Where      string         `json:"where,omitempty"`
	Words      string         `json:"words,omitempty"`
	Of         int            `json:"of"`
	X          dataAxis       `json:"x"`
	Y          dataAxis       `json:"y"`
	Categories []dataCategory `json:"categories,omitempty"`
	Series     []dataSeries   `json:"series"`
	Limit      *dataLimit     `json:"limit,omitempty"`
}

type dataAxis struct {
	Title string `json:"title,omitempty"`
	Unit  string `json:"unit,omitempty"`
	Scale string `json:"scale,omitempty"`
}

type dataCategory struct {
	Name string `json:"name"`
	Of   int    `json:"of"`
}

type dataSeries struct {
	Name string `json:"name"`
	// Network is its index in Networks; -1: of none.
	Network int         `json:"network"`
	Of      int         `json:"of"`
	X       dataNumbers `json:"x,omitempty"`
	Y       dataNumbers `json:"y"`
	Low     dataNumbers `json:"low,omitempty"`
	High    dataNumbers `json:"high,omitempty"`
	Tint    int         `json:"tint,omitempty"`
	Stacks  *dataStacks `json:"stacks,omitempty"`
}

type dataLimit struct {
	Value float64 `json:"value"`
	Label string  `json:"label"`
}

// dataNumbers are numbers to draw; NaN is one that was not measured. As JSON
// they are [e, v, d, …] for v × 10^e, (v + d) × 10^e …, all whole numbers: the
// digits that a drawing needs, and of neighbours only what differs. Null is NaN,
// and the next differs from the one before.
type dataNumbers []float64

// drawnDigits is how many digits the smallest of drawn numbers has.
const drawnDigits = 4

// MarshalJSON never fails.
func (n dataNumbers) MarshalJSON() ([]byte, error) {
	least := math.Inf(1)
	for _, v := range n {
		if isNumber(v) && v != 0 {
			least = min(least, math.Abs(v))
		}
	}
	exponent := 0
	if !math.IsInf(least, 1) {
		exponent = int(math.Floor(math.Log10(least))) + 1 - drawnDigits
	}
	b := strconv.AppendInt([]byte{'['}, int64(exponent), 10)
	before := 0.0
	for _, v := range n {
		b = append(b, ',')
		if !isNumber(v) {
			b = append(b, "null"...)
			continue
		}
		whole := math.Round(v * math.Pow10(-exponent))
		b = strconv.AppendFloat(b, whole-before, 'f', -1, 64)
		before = whole
	}
	return append(b, ']'), nil
}

func jsonNumbers(values []float64, digits int) []byte {
	b := []byte{'['}
	for i, v := range values {
		if i > 0 {
			b = append(b, ',')
		}
		b = jsonNumber(b, v, digits)
	}
	return append(b, ']')
}

func jsonNumber(b []byte, v float64, digits int) []byte {
	if !isNumber(v) {
		return append(b, "null"...)
	}
	return strconv.AppendFloat(b, v, 'g', digits, 64)
}

// jsonString appends a string as JSON; a string always can be.
func jsonString(b []byte, s string) []byte {
	text, err := json.Marshal(s)
	if err != nil {
		return append(b, `""`...)
	}
	return append(b, text...)
}

// dataWriter gathers the tables and charts of a page.
type dataWriter struct {
	data   pageData
	filter *filter
	colour map[string]int
	// functions are the indexes of names in data.Functions.
	functions map[string]int
}

func newDataWriter(p page.Page, d *report.Document) *dataWriter {
	if d == nil {
		d = report.New(report.Input{}) // nothing can be filtered
	}
	w := &dataWriter{filter: newFilter(d), colour: map[string]int{}, functions: map[string]int{}, data: pageData{Title: page.Clean(p.Title), Elements: []any{}, Factors: []dataFactor{}}}
	for i, n := range d.Networks() {
		w.colour[n] = i
		w.data.Networks = append(w.data.Networks, page.Clean(d.Name(n)))
	}
	for _, f := range w.filter.factors {
		w.data.Factors = append(w.data.Factors, dataFactor{f.name, f.Values})
	}
	for _, s := range page.Steps() {
		w.data.Steps = append(w.data.Steps, s.Text)
	}
	return w
}

// whereOf is the situation of what something is about.
func whereOf(of *result.Cell) string {
	if of == nil {
		return ""
	}
	return page.Clean(report.SituationOf(*of).String())
}

// table adds a table and gives its number.
func (w *dataWriter) table(t *page.Table) int {
	out := dataTable{Caption: t.Caption, Where: whereOf(t.Of), Of: w.filter.about(t.Of), Drawn: t.Drawn, Legend: t.Legend, Notes: t.Notes, Rows: [][]dataField{}}
	for _, c := range t.Columns {
		out.Columns = append(out.Columns, dataColumn{c.Head, c.Sub, c.Number, c.Wide, w.filter.about(c.Of)})
	}
	said := false
	for _, r := range t.Rows {
		row := make([]dataField, len(r))
		for i, c := range r {
			row[i] = dataField(c)
		}
		of := w.filter.about(r[0].Of)
		said = said || of >= 0
		out.Rows, out.RowOf = append(out.Rows, row), append(out.RowOf, of)
	}
	if !said {
		out.RowOf = nil
	}
	w.data.Elements = append(w.data.Elements, out)
	return len(w.data.Elements) - 1
}

// chart adds a chart and gives its number.
func (w *dataWriter) chart(c *page.Chart) int {
	out := dataChart{Kind: c.Kind, Title: c.Title, Where: whereOf(c.Of), Words: c.Words, Of: w.filter.about(c.Of), X: dataAxis(c.X), Y: dataAxis(c.Y), Series: []dataSeries{}}
	for _, x := range c.Categories {
		out.Categories = append(out.Categories, dataCategory{x.Name, w.filter.about(x.Of)})
	}
	for _, s := range c.Series {
		colour, ok := w.colour[s.Network]
		if !ok {
			colour = -1
		}
		if !slices.ContainsFunc(s.Low, isNumber) {
			s.Low, s.High = nil, nil
		}
		out.Series = append(out.Series, dataSeries{s.Name, colour, w.filter.about(s.Of), s.X, s.Y, s.Low, s.High, s.Tint, w.stacks(s.Stacks)})
	}
	if c.Limit != nil {
		out.Limit = &dataLimit{c.Limit.Value, c.Limit.Label}
	}
	w.data.Elements = append(w.data.Elements, out)
	return len(w.data.Elements) - 1
}

// packed is the data as a page holds it: JSON, gzip, base64.
func (w *dataWriter) packed() (string, error) {
	w.data.Abouts = w.filter.abouts
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	if err := json.NewEncoder(z).Encode(w.data); err != nil {
		return "", err
	}
	if err := z.Close(); err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(zipped.Bytes()), nil
}
