package cli_test

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/cnibench/cnibench/internal/cli"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/result"
)

// The promise of a report over many records: 100,000 in 300 MB. (Three seconds
// are the other half of it; how long it takes here is what the benchmark says.)
const (
	manyRecords   = 100_000
	peakMegabytes = 300
)

// BenchmarkReport100000 is `cnibench report` over the records of 495 cells in
// 203 blocks, each as long as the native engine's.
func BenchmarkReport100000(b *testing.B) {
	dir := b.TempDir()
	if err := writeRecords(dir, manyRecords); err != nil {
		b.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, result.SamplesFile))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(info.Size())
	peak := 0.0
	for b.Loop() {
		if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil { // resets VmHWM, see proc(5)
			b.Fatal(err)
		}
		if status := cli.Main([]string{"report", dir}, io.Discard, os.Stderr); status != 0 {
			b.Fatalf("status %d", status)
		}
		peak = max(peak, peakMemory(b))
	}
	b.ReportMetric(peak, "peak-MB")
	if peak > peakMegabytes {
		b.Errorf("%.0f MB at the peak, at most %d are promised", peak, peakMegabytes)
	}
}

// peakMemory is the most memory that this process had, in MB.
func peakMemory(tb testing.TB) float64 {
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		tb.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		var kb float64
		if _, err := fmt.Sscanf(line, "VmHWM: %f kB", &kb); err == nil {
			return kb * 1024 / 1e6
		}
	}
	tb.Fatal("/proc/self/status tells no VmHWM")
	return 0
}

// writeRecords makes a result directory with n records: four networks and their
// baseline, and the quickstart's mix of traffics, two streams to one of round
// trips.
func writeRecords(dir string, n int) error {
	var cells []result.Cell
	for bytes := 1; bytes <= 33; bytes++ {
		for i, workload := range []string{"tcp_rr", "tcp_stream", "tcp_stream"} {
			for _, network := range []string{"host", "bridge", "flannel/vxlan", "flannel/host-gw", "macvlan"} {
				c := result.Cell{Network: network, Path: result.PathPodToPod, Placement: result.InterHost, Link: "unshaped",
					Profile: "default_settings", MTU: 1500, Workload: workload, MessageBytes: bytes, Streams: 1 + i/2}
				if network == result.HostNetwork {
					c = c.Baseline()
				}
				cells = append(cells, c)
			}
		}
	}
	blocks := (n + len(cells) - 1) / len(cells)
	p := plan.Plan{Schema: plan.Schema, Cells: cells, MinBlocks: 5, MaxBlocks: blocks, SampleSeconds: 1}
	d, err := result.Create(dir, []byte("name: many\nnetworks: [host, bridge]\nworkloads: [{name: tcp_rr}]\n"), p)
	if err != nil {
		return err
	}
	if err := d.Close(); err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(dir, result.SamplesFile))
	if err != nil {
		return err
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	enc := json.NewEncoder(w)
	r := rand.New(rand.NewPCG(1, 1))
	histograms, err := makeHistograms(r, 64)
	if err != nil {
		return err
	}
	for i := range n {
		block := 1 + i/len(cells)
		idle := probed(rand.New(rand.NewPCG(2, uint64(block))), 0.3) // one for each block
		s := record(r, cells[i%len(cells)], block, i%len(cells), histograms)
		s.Probes[result.ClientNode+result.IdleSuffix], s.Probes[result.ServerNode+result.IdleSuffix] = idle, idle
		if err := enc.Encode(s); err != nil {
			return err
		}
	}
	return w.Flush()
}

// record is a sample as the native engine makes them.
func record(r *rand.Rand, c result.Cell, block, cell int, histograms []*result.Histogram) result.Sample {
	const machine = "436fe809-dc08-438e-8b92-40aa6009bcc1"
	second, noise := 1.0, math.Exp(0.02*r.NormFloat64())
	s := result.Sample{
		Schema: result.Schema, ID: fmt.Sprintf("b%03d-c%03d", block, cell), Block: block, Attempt: 1, Cell: c, Status: result.StatusOK,
		Started: time.Unix(1_790_000_000, 0).UTC().Add(time.Duration(block*500+cell) * time.Second), RequestedSeconds: 1, MeasuredSeconds: &second,
		Metrics:  map[string]float64{"client_mtu_bytes": 1500, "server_mtu_bytes": 1500},
		Probes:   map[string]map[string]float64{result.ClientNode: probed(r, 1), result.ServerNode: probed(r, 1)},
		Machines: map[string]string{result.ClientNode: machine, result.ServerNode: machine},
	}
	values := map[string]float64{"retransmits": 3, "sent_throughput_bits_per_second": 2e10 * noise, "tcp_cwnd_packets": 356, "tcp_mss_bytes": 1448,
		"tcp_pacing_rate_bits_per_second": 4e10 * noise, "tcp_rtt_seconds": 5e-5 * noise, "throughput_bits_per_second": 2e10 * noise}
	if c.Workload == "tcp_rr" {
		s.Histogram = histograms[r.IntN(len(histograms))]
		values = map[string]float64{"latency_max_seconds": 4e-3 * noise, "latency_mean_seconds": 3.3e-5 * noise, "latency_min_seconds": 1.5e-5,
			"latency_p50_seconds": 1.8e-5, "latency_p90_seconds": 1.9e-5 * noise, "latency_p99_seconds": 7e-5, "latency_p999_seconds": 3e-3 * noise,
			"latency_stddev_seconds": 1.8e-4 * noise, "transactions": 30_000, "transactions_per_second": 30_000 / noise}
	} else {
		s.Series = &result.Series{IntervalSeconds: 0.1}
		for range 10 {
			s.Series.ThroughputBitsPerSecond = append(s.Series.ThroughputBitsPerSecond, math.Round(2e10*noise))
		}
	}
	for k, v := range values {
		s.Metrics[k] = v
	}
	return s
}

// probed is what the probes of one end read.
func probed(r *rand.Rand, seconds float64) map[string]float64 {
	out := map[string]float64{"window_seconds": seconds, "cpu_busiest_core_ratio": r.Float64(), "process_cpu_seconds": r.Float64(), "ksoftirqd_cpu_seconds": 3e-4}
	for _, mode := range []string{"user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"} {
		out["cpu_"+mode+"_seconds"] = math.Round(100*r.Float64()) / 100
	}
	return out
}

// makeHistograms makes some distributions of 30,000 round trips.
func makeHistograms(r *rand.Rand, n int) ([]*result.Histogram, error) {
	var out []*result.Histogram
	for range n {
		h := hdrhistogram.New(1, 60_000_000_000, 3)
		for range 30_000 {
			if err := h.RecordValue(int64(20_000 * math.Exp(0.15*math.Abs(r.NormFloat64())) * (1 + 10*math.Pow(r.Float64(), 200)))); err != nil {
				return nil, err
			}
		}
		raw, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
		if err != nil {
			return nil, err
		}
		text := string(raw)
		if _, err := base64.StdEncoding.DecodeString(text); err != nil {
			return nil, err
		}
		out = append(out, &result.Histogram{Unit: "nanoseconds", Count: 30_000, HDRBase64: text})
	}
	return out, nil
}
