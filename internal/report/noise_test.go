package report

import (
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
)

// nullTest is a campaign whose networks were held against themselves: of four
// pairs one was called different, by chance.
func nullTest() Input {
	in := keep(normal(), "host", "bridge", "macvlan")
	n := &stat.NullResult{Confidence: 0.95, False: 1, Expected: 0.3, NoiseFloor: 0.012, Detectable: 0.0171}
	var cells []stat.CellSummary
	for _, s := range in.Analysis.Cells {
		cells = append(cells, s)
		if s.Cell.IsBaseline() {
			continue
		}
		twin := s
		twin.Cell.Network = result.SecondName(s.Cell.Network)
		cells = append(cells, twin)
		e := 1 + 0.003*float64(len(n.Pairs)-2)
		n.Pairs = append(n.Pairs, stat.NullPair{
			A: s.Cell, B: twin.Cell, Ratio: estimated(e, 0.009, 12, stat.GeometricMean), P: 0.4,
			Different: len(n.Pairs) == 1, NoisePerBlock: 0.014, Detectable: 0.0171,
		})
	}
	in.Analysis.Cells, in.Analysis.NullTest = cells, n
	sortCells(&in)
	in.Tally = tallied(samplesOf(in, 12))
	return in
}

// In every format a person finds what the machine calls different by itself,
// and no answer about networks.
func TestNoiseIsSaidInEveryFormat(t *testing.T) {
	for _, format := range []string{"terminal", "markdown", "html"} {
		got := strings.Join(strings.Fields(render(t, format, nullTest(), Options{Unicode: true})), " ")
		for _, want := range []string{"Noise floor: ± 1.2 %.", "4 of 5 campaigns: 1.7 %.", "1 of 6 pairs were called different at 95 %, where chance alone gives 0.3; 0 after"} {
			if !strings.Contains(got, want) {
				t.Errorf("%s lacks %q:\n%s", format, want, got)
			}
		}
		if strings.Contains(got, "The answer") {
			t.Errorf("%s gives an answer", format)
		}
	}
	if got := render(t, "json", nullTest(), Options{}); !strings.Contains(got, `"noise_floor": 0.012`) {
		t.Errorf("json lacks the noise floor")
	}
}
