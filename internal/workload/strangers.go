package workload

import (
	"fmt"

	"github.com/cnibench/cnibench/internal/traffic"
)

// Strangers on a data port cost the server time that the measured traffic then does
// not get. A stranger's packet takes about as much of it as one of the run's own, so
// their share of what arrived is how far a figure may be off.
const (
	// strangersDoubt is the share above which a sample has a warning of its own.
	strangersDoubt = 0.01
	// strangersBound is the share above which a sample fails: networks differ by
	// less than such a figure may be off.
	strangersBound = 0.1
	// usualMSS is the payload of a TCP segment at an MTU of 1500, bytes, where the
	// sender read none.
	usualMSS = 1448
)

// strangers records how many strangers were refused. own is how many datagrams,
// transactions or segments of the run arrived while it was measured. It gives an
// error where the strangers were too many for the sample to be believed.
func (p *parser) strangers(own float64) error {
	n := float64(p.server.Strangers) + float64(p.client.Strangers)
	if n <= 0 {
		return nil
	}
	p.set("strangers_refused", n)
	share := n / (n + own)
	switch {
	case share > strangersBound:
		return fmt.Errorf("%.0f strangers were refused, %.3g %% of what arrived at the data port: above %.0f %% the figures are not believed; find what sends to the data port, or measure where it does not", n, 100*share, 100*strangersBound)
	case share > strangersDoubt:
		p.warn("%.0f strangers were refused, %.3g %% of what arrived at the data port: the figures may be off by as much; find what sends to the data port, or measure where it does not", n, 100*share)
	default:
		p.warn("%.0f strangers were refused: something else sends to the data port; find it, or measure where it is not", n)
	}
	return nil
}

// arrived is how many packets of a run with one long window arrived in it: datagrams,
// requests, or the segments that TCP needs for its bytes.
func (p *parser) arrived() float64 {
	own := p.segments(p.server.BackgroundBytes)
	switch p.cfg.Test {
	case traffic.TCPStream:
		return own + p.segments(p.receiver.Bytes) + p.segments(p.sender.Bytes)
	case traffic.UDPStream:
		return own + counted(p.receiver.Packets) + counted(p.sender.Packets)
	case traffic.LatencyUnderLoad:
		return own + p.segments(p.receiver.Bytes) + counted(p.client.Transactions)
	default:
		return own + counted(p.client.Transactions)
	}
}

// arrivedInSlices is the same for the slices of a sample together.
func (p *parser) arrivedInSlices(s sliceSum) float64 {
	switch p.cfg.Test {
	case traffic.TCPStream:
		return p.segments(new(s.Bytes + s.ReverseBytes))
	case traffic.UDPStream:
		return float64(s.Packets) + float64(s.ReverseBytes)/float64(p.cfg.MessageBytes)
	default:
		return float64(s.Transactions)
	}
}

// segments is how many TCP segments have so many bytes.
func (p *parser) segments(bytes *int64) float64 {
	mss := float64(usualMSS)
	for _, r := range []traffic.Report{p.server, p.client} {
		if r.TCP != nil && r.TCP.MSSBytes > 0 {
			mss = r.TCP.MSSBytes
		}
	}
	return counted(bytes) / mss
}

// counted is a count; one that is absent is 0.
func counted(n *int64) float64 {
	if n == nil {
		return 0
	}
	return float64(*n)
}
