package workload

import (
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/traffic"
	"github.com/cnibench/cnibench/internal/unit"
)

func TestUpdated(t *testing.T) {
	changes := []result.ServiceChange{{Began: 1e9, Took: 30 * time.Millisecond}, {Began: 2e9, Took: 50 * time.Millisecond}}
	seen := func(at ...traffic.Switch) Output {
		return Output{Native: &traffic.Report{Switches: append([]traffic.Switch{{At: 5e8, Mark: FirstMark}}, at...)}}
	}
	there, back := traffic.Switch{At: 1e9 + 20e6, Mark: OtherMark}, traffic.Switch{At: 2e9 + 60e6, Mark: FirstMark}
	m := Measurement{Metrics: map[string]float64{}}
	if err := Updated(&m, changes, seen(there, back)); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{
		"service_update_mean_seconds": 0.04, "service_update_max_seconds": 0.06, "service_programmed_mean_seconds": 0.04, "service_updates": 2,
	} {
		if got := m.Metrics[name]; got < want-1e-9 || got > want+1e-9 {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
		if _, known := unit.FindMetric(name); !known {
			t.Errorf("%s is no metric", name)
		}
	}
	early := there
	early.At = 1e9 - 1
	for name, c := range map[string]struct {
		changes []result.ServiceChange
		client  Output
		reason  string
	}{
		"no report":       {changes, Output{}, "was not changed"},
		"no change":       {nil, seen(), "was not changed"},
		"not seen":        {changes, seen(), "was changed 2 times, and new connections reached another endpoint than before 0 times"},
		"one seen":        {changes, seen(there), "1 times"},
		"and back again":  {changes, seen(there, back, there, back), "4 times"},
		"other first":     {changes, Output{Native: &traffic.Report{Switches: []traffic.Switch{there, back}}}, "no connection reached the service's first endpoint"},
		"before it began": {changes, seen(early, back), "change 1 of the service"},
		"wrong endpoint":  {changes, seen(back, there), "change 1 of the service: a connection reached endpoint 1"},
	} {
		m := Measurement{Metrics: map[string]float64{}}
		err := Updated(&m, c.changes, c.client)
		if err == nil || !strings.Contains(err.Error(), c.reason) || len(m.Metrics) > 0 {
			t.Errorf("%s: %v, with %v", name, err, m.Metrics)
		}
	}
}

// Both servers have the client's token and marks of their own.
func TestServiceUpdatePrograms(t *testing.T) {
	u := NewServiceUpdate()
	p := params(result.Cell{Workload: result.ServiceUpdateName, MessageBytes: 64, Streams: 1})
	first, err := u.Serve(p)
	if err != nil {
		t.Fatal(err)
	}
	other, err := u.ServeOther(p)
	if err != nil {
		t.Fatal(err)
	}
	if first.Native.Token != other.Native.Token || first.Native.Mark == other.Native.Mark || first.Native.Test != traffic.TCPCRR {
		t.Errorf("the servers are %+v and %+v", first.Native, other.Native)
	}
	if Sliceable(p.Cell) {
		t.Error("its samples come in slices")
	}
}

func TestFirstPackets(t *testing.T) {
	one := traffic.Report{WindowSeconds: 1, Transactions: new(int64(10_000)), Latency: histogram(t, 10_000, 100_000), Connect: histogram(t, 10_000, 40_000)}
	w := TCPCRR()
	m, err := w.Parse(params(result.Cell{Workload: "tcp_crr", MessageBytes: 64, Streams: 1}), Output{Native: &traffic.Report{}}, Output{Native: &one})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"first_packet_mean_seconds", "first_packet_min_seconds", "first_packet_p50_seconds", "first_packet_p99_seconds", "first_packet_max_seconds"} {
		if got := m.Metrics[name]; got < 39.9e-6 || got > 40.1e-6 {
			t.Errorf("%s is %v", name, got)
		}
		if _, known := unit.FindMetric(name); !known {
			t.Errorf("%s is no metric", name)
		}
	}
	if len(m.Warnings) > 0 {
		t.Errorf("warnings %q", m.Warnings)
	}
	one.Connect.MaxNanoseconds = 1_030_000_000
	if m, err = w.Parse(params(result.Cell{Workload: "tcp_crr", MessageBytes: 64, Streams: 1}), Output{Native: &traffic.Report{}}, Output{Native: &one}); err != nil {
		t.Fatal(err)
	}
	if len(m.Warnings) != 1 || !strings.Contains(m.Warnings[0], "a connection waited 1.03 s for its first answer, and a SYN without an answer is sent again after a second") {
		t.Errorf("warnings %q", m.Warnings)
	}
	one.Connect = nil // an older agent's
	if m, err = w.Parse(params(result.Cell{Workload: "tcp_crr", MessageBytes: 64, Streams: 1}), Output{Native: &traffic.Report{}}, Output{Native: &one}); err != nil {
		t.Fatal(err)
	}
	if got, there := m.Metrics["first_packet_mean_seconds"]; there {
		t.Errorf("what nobody measured is %v", got)
	}
}
