package workload

import (
	"fmt"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/cnibench/cnibench/internal/traffic"
)

// synAgain is after what time a SYN without an answer is sent again, nanoseconds (RFC 6298).
const synAgain = 1_000_000_000

// firstPackets takes how long the first packets of connections waited for their answers. What
// happens for the first packet alone, such as the choice of a service's endpoint, is in it.
func (p *parser) firstPackets(h *traffic.Histogram) error {
	if h == nil || h.Count == 0 {
		return nil
	}
	hist, err := hdrhistogram.Decode([]byte(h.HDRBase64))
	if err != nil {
		return fmt.Errorf("the histogram of first packets: %w", err)
	}
	p.set("first_packet_mean_seconds", h.MeanNanoseconds/1e9)
	p.set("first_packet_min_seconds", float64(h.MinNanoseconds)/1e9)
	p.set("first_packet_p50_seconds", float64(hist.ValueAtQuantile(50))/1e9)
	if h.Count >= 100 {
		p.set("first_packet_p99_seconds", float64(hist.ValueAtQuantile(99))/1e9)
	}
	p.set("first_packet_max_seconds", float64(h.MaxNanoseconds)/1e9)
	if h.MaxNanoseconds >= synAgain {
		p.warn("a connection waited %.3g s for its first answer, and a SYN without an answer is sent again after a second: look at the server's nstat, where TcpExtPAWSTimewait counts those refused for an earlier connection in TIME_WAIT, as where addresses are translated, and at what the path loses", float64(h.MaxNanoseconds)/1e9)
	}
	return nil
}
