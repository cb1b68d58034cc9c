package workload

import (
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/traffic"
)

// strangeReports are what both ends report of a sample in which arrived packets of the
// run were received, and strangers in addition.
func strangeReports(t *testing.T, test string, sliced bool, arrived, strangers int64) (server, client traffic.Report) {
	t.Helper()
	server.Strangers = strangers
	server.WindowSeconds, client.WindowSeconds = 1, 1
	client.TCP = &traffic.TCPInfo{MSSBytes: 1000}
	switch test {
	case traffic.TCPStream, traffic.UDPStream:
		server.Bytes, client.SentBytes = new(1000*arrived), new(1000*arrived)
		server.Packets, server.Arrived, client.SentPackets = &arrived, &arrived, &arrived
	default:
		client.Transactions, client.Latency = &arrived, histogram(t, arrived, 1e9/arrived)
	}
	if sliced {
		client.Slices = []traffic.Slice{{Begin: 0, End: time.Second, Bytes: 1000 * arrived, SentBytes: 1000 * arrived, Packets: arrived, SentPackets: arrived, Transactions: arrived}}
	}
	return server, client
}

// A few strangers are a count, more than 1 % of what arrived are a warning with their
// share, and more than 10 % fail the sample.
func TestStrangersShare(t *testing.T) {
	for _, test := range []string{traffic.TCPStream, traffic.UDPStream, traffic.TCPRR, traffic.UDPRR, traffic.TCPCRR} {
		for _, sliced := range []bool{false, true} {
			for _, c := range []struct {
				strangers     int64
				warning, fail string // "": none
			}{
				{0, "", ""},
				{100, "100 strangers were refused: something else", ""},
				{102, "102 strangers were refused, 1.01 % of what arrived", ""},
				{1111, "1111 strangers were refused, 10 % of what arrived", ""},
				{1200, "", "1200 strangers were refused, 10.7 % of what arrived at the data port: above 10 %"},
			} {
				server, client := strangeReports(t, test, sliced, 10_000, c.strangers)
				p := params(result.Cell{Workload: test, MessageBytes: 1000, Streams: 1})
				p.Sliced = sliced
				w, err := Find(test)
				if err != nil {
					t.Fatal(err)
				}
				m, err := w.Parse(p, Output{Native: &server}, Output{Native: &client})
				if (err == nil) != (c.fail == "") || err != nil && !strings.Contains(err.Error(), c.fail) {
					t.Errorf("%s, sliced %v, %d strangers: error %v, want %q", test, sliced, c.strangers, err, c.fail)
				}
				if said := strings.Join(m.Warnings, "\n"); (said == "") != (c.warning == "") || !strings.Contains(said, c.warning) {
					t.Errorf("%s, sliced %v, %d strangers: warnings %q, want %q", test, sliced, c.strangers, said, c.warning)
				}
				if n := m.Metrics["strangers_refused"]; err == nil && n != float64(c.strangers) {
					t.Errorf("%s, sliced %v: %v strangers were refused, want %d", test, sliced, n, c.strangers)
				}
			}
		}
	}
}
