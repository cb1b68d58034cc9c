package workload

import (
	"math"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/traffic"
	"github.com/cnibench/cnibench/internal/unit"
)

// histogram has n values of some nanoseconds.
func histogram(t *testing.T, n, value int64) *traffic.Histogram {
	t.Helper()
	h := hdrhistogram.New(1, 60_000_000_000, 3)
	if err := h.RecordValues(value, n); err != nil {
		t.Fatal(err)
	}
	raw, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		t.Fatal(err)
	}
	return &traffic.Histogram{Count: n, HDRBase64: string(raw), MeanNanoseconds: float64(value), MinNanoseconds: value, MaxNanoseconds: value}
}

func params(c result.Cell) Params {
	return Params{Cell: c, Warmup: 100 * time.Millisecond, Window: time.Second, Token: strings.Repeat("ab", 16)}
}

func TestNativeParse(t *testing.T) {
	streamed := traffic.Report{WindowSeconds: 1, Bytes: new(int64(125e6)), SeriesInterval: 100 * time.Millisecond, SeriesBitsPerSecond: []float64{1e9}}
	sent := traffic.Report{WindowSeconds: 1, SentBytes: new(int64(126e6)), TCP: &traffic.TCPInfo{Retransmits: 3, MSSBytes: 1448}}
	datagrams := traffic.Report{WindowSeconds: 1, Bytes: new(int64(99_000 * 100)), Packets: new(int64(99_000)), Arrived: new(int64(99_500)), Reordered: new(int64(2)), Duplicated: new(int64(1)), JitterSeconds: new(1e-5)}
	sentDatagrams := traffic.Report{WindowSeconds: 1, SentBytes: new(int64(100_000 * 100)), SentPackets: new(int64(100_000))}
	asked := func(n, latency, lost int64) traffic.Report {
		return traffic.Report{WindowSeconds: 1, Transactions: &n, TransactionsLost: &lost, Latency: histogram(t, n, latency)}
	}
	busy := map[string]float64{"cpu_busiest_core_ratio": 0.99}
	for _, c := range []struct {
		name           string
		cell           result.Cell
		server, client Output
		want           map[string]float64
		absent         []string
		warning        string // "": none
	}{
		{
			name: "tcp_stream", cell: result.Cell{Workload: "tcp_stream", MessageBytes: 1472, Streams: 1},
			server: Output{Native: &streamed}, client: Output{Native: &sent},
			want:   map[string]float64{"throughput_bits_per_second": 1e9, "sent_throughput_bits_per_second": 1.008e9, "retransmits": 3, "tcp_mss_bytes": 1448},
			absent: []string{"tcp_pacing_rate_bits_per_second", "packets_lost", "reverse_throughput_bits_per_second"},
		},
		{
			name: "tcp_stream reverse", cell: result.Cell{Workload: "tcp_stream", MessageBytes: 1472, Streams: 1, Direction: "reverse"},
			server: Output{Native: &sent}, client: Output{Native: &streamed},
			want: map[string]float64{"throughput_bits_per_second": 1e9},
		},
		{
			name: "sender and receiver differ", cell: result.Cell{Workload: "tcp_stream", MessageBytes: 1472, Streams: 1},
			server: Output{Native: &streamed}, client: Output{Native: &traffic.Report{WindowSeconds: 1, SentBytes: new(int64(150e6))}},
			want: map[string]float64{"throughput_bits_per_second": 1e9}, warning: "sender and receiver differ",
		},
		{
			name: "strangers", cell: result.Cell{Workload: "tcp_stream", MessageBytes: 1472, Streams: 1},
			server: Output{Native: &traffic.Report{WindowSeconds: 1, Bytes: new(int64(125e6)), Strangers: 7}}, client: Output{Native: &sent},
			want: map[string]float64{"strangers_refused": 7}, warning: "7 strangers",
		},
		{
			name: "udp_stream", cell: result.Cell{Workload: "udp_stream", MessageBytes: 100, Streams: 1},
			server: Output{Native: &datagrams}, client: Output{Native: &sentDatagrams},
			want: map[string]float64{"packets_sent": 100_000, "packets_received": 99_000, "packets_lost": 500, "loss_ratio": 0.005, "packets_reordered": 2, "packets_duplicated": 1, "jitter_seconds": 1e-5, "packets_per_second": 99_000},
		},
		{
			name: "rate reached", cell: result.Cell{Workload: "udp_stream", MessageBytes: 100, Streams: 1, RateBitsPerSecond: 80.01e6},
			server: Output{Native: &datagrams}, client: Output{Native: &sentDatagrams},
			want: map[string]float64{"achieved_rate_bits_per_second": 80e6},
		},
		{
			name: "rate not reached", cell: result.Cell{Workload: "udp_stream", MessageBytes: 100, Streams: 1, RateBitsPerSecond: 90e6},
			server: Output{Native: &datagrams}, client: Output{Native: &sentDatagrams, Probes: busy},
			want: map[string]float64{"achieved_rate_bits_per_second": 80e6}, warning: "its CPU is full",
		},
		{
			name: "tcp_rr", cell: result.Cell{Workload: "tcp_rr", MessageBytes: 64, Streams: 2},
			server: Output{Native: &traffic.Report{}}, client: Output{Native: new(asked(40_000, 50_000, 0))},
			want: map[string]float64{"transactions_per_second": 40_000, "latency_mean_seconds": 50e-6, "latency_max_seconds": 50e-6},
		},
		{
			name: "rate × round trip", cell: result.Cell{Workload: "tcp_rr", MessageBytes: 64, Streams: 2},
			server: Output{Native: &traffic.Report{}}, client: Output{Native: new(asked(30_000, 50_000, 0))},
			want: map[string]float64{"transactions": 30_000}, warning: "rate × round trip is 0.75",
		},
		{
			name: "few round trips", cell: result.Cell{Workload: "udp_rr", MessageBytes: 64, Streams: 1},
			server: Output{Native: &traffic.Report{}}, client: Output{Native: new(asked(50, 1_000_000, 4))},
			want: map[string]float64{"transactions_lost": 4}, absent: []string{"latency_p99_seconds", "latency_p999_seconds"}, warning: "too few for latency_p99",
		},
		{
			name: "open loop", cell: result.Cell{Workload: "tcp_rr", MessageBytes: 64, Streams: 2, RatePerSecond: 2000},
			server: Output{Native: &traffic.Report{}}, client: Output{Native: new(asked(1999, 40_000, 0))},
			want: map[string]float64{"achieved_rate_per_second": 1999},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, err := Find(c.cell.Workload)
			if err != nil {
				t.Fatal(err)
			}
			m, err := w.Parse(params(c.cell), c.server, c.client)
			if err != nil {
				t.Fatal(err)
			}
			if m.MeasuredSeconds != 1 {
				t.Errorf("measured %v s", m.MeasuredSeconds)
			}
			for name, want := range c.want {
				if got, ok := m.Metrics[name]; !ok || math.Abs(got-want) > 1e-3*want {
					t.Errorf("%s is %v, want %v", name, got, want)
				}
			}
			for name := range m.Metrics {
				if _, ok := unit.FindMetric(name); !ok {
					t.Errorf("%s is no known metric", name)
				}
			}
			for _, name := range c.absent {
				if v, ok := m.Metrics[name]; ok {
					t.Errorf("%s was not measured, and is %v", name, v)
				}
			}
			if said := strings.Join(m.Warnings, "\n"); (said == "") != (c.warning == "") || !strings.Contains(said, c.warning) {
				t.Errorf("warnings: %q, want %q", said, c.warning)
			}
		})
	}
}

func TestNativeParseRefuses(t *testing.T) {
	w := TCPStream()
	cell := result.Cell{Workload: "tcp_stream", MessageBytes: 1472, Streams: 1}
	sent := Output{Native: &traffic.Report{WindowSeconds: 1, SentBytes: new(int64(1))}}
	for name, server := range map[string]Output{
		"no report": {}, "no bytes counted": {Native: &traffic.Report{WindowSeconds: 1}},
		"nothing received": {Native: &traffic.Report{WindowSeconds: 1, Bytes: new(int64(0))}},
	} {
		if m, err := w.Parse(params(cell), server, sent); err == nil {
			t.Errorf("%s: %+v", name, m)
		}
	}
	// More arrived than was sent.
	cell.Workload = "udp_stream"
	_, err := UDPStream().Parse(params(cell),
		Output{Native: &traffic.Report{WindowSeconds: 1, Bytes: new(int64(20)), Packets: new(int64(2)), Arrived: new(int64(2)), Duplicated: new(int64(0))}},
		Output{Native: &traffic.Report{WindowSeconds: 1, SentBytes: new(int64(10)), SentPackets: new(int64(1))}})
	if err == nil {
		t.Error("more datagrams arrived than were sent, and no error")
	}
}

func TestNativePrograms(t *testing.T) {
	p := params(result.Cell{Workload: "tcp_stream", MessageBytes: 1472, PinCPUs: true})
	serve, err := TCPStream().Serve(p)
	if err != nil {
		t.Fatal(err)
	}
	drive, err := TCPStream().Drive(p, netip.AddrPort{})
	if err != nil {
		t.Fatal(err)
	}
	if serve.Native.CPUs[0] != 1 || drive.Native.CPUs[0] != 0 || serve.Native.Streams != 1 || serve.Timeout < time.Second {
		t.Errorf("got %+v and %+v", serve.Native, drive.Native)
	}
	p.Cell.Streams = 1000
	if _, err := TCPStream().Serve(p); err == nil {
		t.Error("1,000 streams, and no error")
	}
}
