package explain

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/reporttest"
	"github.com/cnibench/cnibench/internal/report/screen"
	"github.com/cnibench/cnibench/internal/result"
)

// messages is a campaign of round trips of five sizes and of two operations on two
// networks. The truth: α is 20 µs on host and 26 µs on bridge, β 2 and 1 GB/s; bridge
// takes 10 µs more for messages that need a second packet. Operations take twice what
// their messages take.
func messages() report.Input {
	in := report.Input{Campaign: campaign.Campaign{Name: "messages", Sampling: reporttest.Sampling()}, Environment: reporttest.FixtureEnvironment(), Dir: "results/m"}
	random := rand.New(rand.NewPCG(8, 9))
	noisy := func(v float64) float64 { return v * math.Exp(0.01*random.NormFloat64()) }
	var samples []result.Sample
	for block := 1; block <= 8; block++ {
		for _, network := range []string{"host", "bridge"} {
			alpha, beta, second := 20e-6, 2e9, 0.0
			if network == "bridge" {
				alpha, beta, second = 26e-6, 1e9, 10e-6
			}
			add := func(c result.Cell, metrics map[string]float64) {
				sec := 1.0
				c.CPUs = result.CPUsApart
				samples = append(samples, result.Sample{Schema: 2, ID: fmt.Sprintf("b%02d-c%03d", block, len(samples)), Block: block, Attempt: 1, Cell: c, Status: result.StatusOK,
					RequestedSeconds: 1, MeasuredSeconds: &sec, Metrics: metrics})
			}
			for _, n := range []int{1, 256, 1448, 8192, 65536} {
				t := alpha + float64(n)/beta
				if n > 1448 {
					t += second
				}
				rtt := noisy(2 * t)
				add(reporttest.CellOf(network, "tcp_rr", n), map[string]float64{"latency_mean_seconds": rtt, "transactions_per_second": 1 / rtt})
			}
			for _, algorithm := range []string{"ring", "recursive_doubling"} {
				c := reporttest.CellOf(network, "all_gather", 4096)
				c.Streams, c.Ranks, c.RanksPerNode, c.Algorithm = 0, 8, 2, algorithm
				steps := map[string]float64{"ring": 7, "recursive_doubling": 3}[algorithm]
				add(c, map[string]float64{"operation_time_mean_seconds": noisy(2 * (steps*alpha + 7*4096/beta)), "ranks_per_cpu": 4})
			}
		}
	}
	return reporttest.Analyse(in, samples)
}

func TestExplainMessagesGolden(t *testing.T) {
	reporttest.Golden(t, *update, "explain-messages.txt", explain(t, messages(), screen.Options{Width: 120, Unicode: true}))
	text := explain(t, messages(), screen.Options{Width: 80})
	for _, r := range text {
		if r > 127 {
			t.Errorf("%q is on a screen that has ASCII only", r)
		}
	}
}

// The misfit is reported for the network that has it, and the numbers are the truth's.
func TestExplainMessages(t *testing.T) {
	text := strings.Join(strings.Fields(explain(t, messages(), screen.Options{Width: 400, Unicode: true})), " ")
	for _, want := range []string{
		"! bridge: the times are not a straight line",
		"host, CPUs apart 20.", "GB/s",
		"Up to 4 ranks shared a CPU",
		"What that predicts for operations with 8 ranks 2 per node",
		"all_gather 4096 B ring",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	if strings.Contains(text, "! host: the times") {
		t.Error("host's times are a straight line")
	}
}

// Programs get the same numbers.
func TestExplainMessagesJSON(t *testing.T) {
	var b bytes.Buffer
	if err := WriteJSON(&b, messages()); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Messages []struct {
			Cell  result.Cell                        `json:"cell"`
			Alpha struct{ Value, Low, High float64 } `json:"alpha_seconds"`
			Beta  *struct{ Value float64 }           `json:"beta_bytes_per_second"`
		} `json:"messages"`
		Jobs []struct {
			Ratio struct{ Value float64 } `json:"ratio"`
		} `json:"jobs"`
	}
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Messages) != 2 || len(got.Jobs) != 4 {
		t.Fatalf("%d models, %d predictions", len(got.Messages), len(got.Jobs))
	}
	for _, m := range got.Messages {
		if m.Cell.Network == result.HostNetwork && !(m.Alpha.Low < 20e-6 && 20e-6 < m.Alpha.High && m.Beta != nil && math.Abs(m.Beta.Value/2e9-1) < 0.02) {
			t.Errorf("host: %+v", m)
		}
	}
}
