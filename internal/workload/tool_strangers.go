package workload

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// Published tools have weaker ways than the native engine to keep strangers out. What
// can be seen of a stranger in their output is read here.

// errStrangers is why a sample fails in which strangers took more of a tool's server than
// strangersBound.
var errStrangers = errors.New("the server's port was used by strangers")

// stderrKept is how much of a tool's stderr an agent keeps, bytes. One that is almost
// full may have lost lines.
const stderrKept = 64 << 10

// toolStrangers compares n messages or requests of strangers with the sample's own.
// It gives a warning, none where n is 0, or an error that wraps errStrangers.
func toolStrangers(n, own float64, what string) (warnings []string, err error) {
	if n <= 0 {
		return nil, nil
	}
	share := n / (n + own)
	said := fmt.Sprintf("%.0f %s of strangers, %.3g %% of what arrived", n, what, 100*share)
	switch {
	case share > strangersBound:
		return nil, fmt.Errorf("%w: %s: above %.0f %% the figures are not believed; find what sends to it, or measure where it does not", errStrangers, said, 100*strangersBound)
	case share > strangersDoubt:
		return []string{said + ": the figures may be off by as much; find what sends to the server's port, or measure where it does not"}, nil
	}
	return []string{said + ": something else sends to the server's port; find it, or measure where it does not"}, nil
}

// httpStrangers counts the requests that nginx refused, from its log on stderr.
func httpStrangers(m metrics, log string, own float64) ([]string, error) {
	n := float64(strings.Count(log, "access forbidden by rule"))
	if n == 0 {
		return nil, nil
	}
	if len(log) > stderrKept-1024 {
		return nil, fmt.Errorf("%w: nginx refused %.0f requests and more than its log holds; find what sends to it, or measure where it does not", errStrangers, n)
	}
	warnings, err := toolStrangers(n, own, "requests")
	return warnings, errors.Join(err, m.put("strangers_refused", n))
}

// sockperfStrangers compares what a server received with what its client sent. sockperf
// serves everybody, so what is more came from strangers. A server that was killed says
// nothing.
func sockperfStrangers(server string, sent float64) ([]string, error) {
	received, err := sockperfFind(server, "messages received (the server's)", `Total (\d+) messages received and handled`)
	if err == nil {
		return toolStrangers(received[0]-sent, sent, "messages")
	}
	return nil, nil
}

// iperf3Taken says whom an iperf3 server served in place of its client: it serves one test,
// which a stranger may take. "" where it served its client, or nobody.
func iperf3Taken(client, server Output) string {
	type end struct {
		Start struct {
			Cookie   string `json:"cookie"`
			Accepted *struct {
				Host string `json:"host"`
			} `json:"accepted_connection"`
		} `json:"start"`
	}
	var from, to end
	// A client that was killed has printed nothing, and may have been the one served.
	if json.Unmarshal([]byte(client.Stdout), &from) != nil || json.Unmarshal([]byte(server.Stdout), &to) != nil {
		return ""
	}
	if to.Start.Accepted == nil || to.Start.Cookie == from.Start.Cookie && from.Start.Cookie != "" {
		return ""
	}
	host, err := netip.ParseAddr(to.Start.Accepted.Host)
	if err != nil || host.Unmap().String() == client.Source {
		return ""
	}
	return fmt.Sprintf("the server's one test was taken by another client, at %s: find it, or measure where it is not", host)
}
