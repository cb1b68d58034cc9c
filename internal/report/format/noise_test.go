package format

import (
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/report/reporttest"
	"github.com/cnibench/cnibench/internal/report/screen"
)

// In every format a person finds the machine's noise,
// and no answer about networks.
func TestNoiseIsSaidInEveryFormat(t *testing.T) {
	for _, format := range []string{"terminal", "markdown", "html"} {
		got := strings.Join(strings.Fields(render(t, format, reporttest.NullTest(), screen.Options{Unicode: true})), " ")
		for _, want := range []string{"Noise floor: ± 1.2 %.", "4 of 5 campaigns: 1.7 %.", "1 of 6 pairs were called different at 95 %, where chance alone gives 0.3; 0 after"} {
			if !strings.Contains(got, want) {
				t.Errorf("%s lacks %q:\n%s", format, want, got)
			}
		}
		if strings.Contains(got, "The answer") {
			t.Errorf("%s gives an answer", format)
		}
	}
	if got := render(t, "json", reporttest.NullTest(), screen.Options{}); !strings.Contains(got, `"noise_floor": 0.012`) {
		t.Errorf("json lacks the noise floor")
	}
}
