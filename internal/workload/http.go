package workload

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

// HTTP is wrk against nginx, which serves one file of a fixed size. Its test
// "close" opens a connection for every request.
type HTTP struct{}

// Spec describes the HTTP load.
func (HTTP) Spec() Spec {
	return Spec{
		Name:    "http",
		Summary: "wrk on an nginx, kept connections or one per request; whole seconds, no warm-up",
		Primary: "requests_per_second",
		Needs: []Tool{
			{Name: "wrk", Package: "wrk", Version: []string{"wrk", "-v"}},
			{Name: "nginx", Package: "nginx-light", Version: []string{"nginx", "-v"}},
		},
		Factors:             []string{"message_bytes", "streams", "cpus", "congestion_control"},
		DefaultCPUs:         sameCPU,
		Tests:               []string{"keep-alive", "close"},
		DefaultMessageBytes: 1024,
		DefaultStreams:      10, // wrk's -c
	}
}

// httpFile is the path of the one file, which only the sample's own client knows.
func httpFile(token string) string {
	if token == "" {
		return "body"
	}
	return "body-" + token
}

// nginxConfig serves one path; any other request is refused and written to stderr, where
// httpStrangers counts it. A connection that sends nothing is closed. It keeps connections as long as the client does, and everything
// that nginx writes in its scratch folder. Where the agent is root it starts nginx as
// another user; where it cannot, the workers stay root, as they must read that folder.
const nginxConfig = `daemon off;
user root;
worker_processes auto;
error_log stderr warn;
pid {dir}/nginx.pid;
events { worker_connections 4096; }
http {
  access_log off;
  sendfile on;
  keepalive_requests 1000000000;
  client_header_timeout 5s;
  client_body_temp_path {dir}/body-temp;
  proxy_temp_path {dir}/proxy-temp;
  fastcgi_temp_path {dir}/fastcgi-temp;
  uwsgi_temp_path {dir}/uwsgi-temp;
  scgi_temp_path {dir}/scgi-temp;
  server {
    listen {listen};
    root {dir};
    location / { deny all; }
    location = /{file} { }
  }
}
`

// Serve is nginx in the foreground.
func (HTTP) Serve(p Params) (Program, error) {
	file := httpFile(p.Token)
	return timed(Program{
		Argv: []string{"nginx", "-p", "{dir}", "-c", "{dir}/nginx.conf"}, AnyAddress: anyAddress(p.Cell),
		Files: map[string]string{
			"nginx.conf": strings.ReplaceAll(nginxConfig, "{file}", file),
			file:         strings.Repeat("x", p.Cell.MessageBytes),
		},
		Port: true, Ready: "tcp",
	}, 0, seconds(wholeSeconds(p.Window))), nil
}

// Drive is wrk. Every thread of wrk has the same number of connections, so two
// threads (its default) are for even numbers only.
func (HTTP) Drive(p Params, server netip.AddrPort) (Program, error) {
	host, port := target(server)
	connections, threads := max(p.Cell.Streams, 1), 1
	if connections%2 == 0 {
		threads = 2
	}
	length := wholeSeconds(p.Window)
	argv := []string{"wrk", "-t", strconv.Itoa(threads), "-c", strconv.Itoa(connections), "-d", strconv.Itoa(length) + "s", "--latency"}
	if p.Cell.Test == "close" {
		argv = append(argv, "-H", "Connection: close")
	}
	argv = append(argv, "http://"+net.JoinHostPort(host, port)+"/"+httpFile(p.Token))
	// wrk leaves out requests that were never answered.
	return timed(Program{Argv: argv, StillThere: true}, 0, seconds(length)), nil
}

// Parse reads wrk's text.
func (HTTP) Parse(p Params, server, client Output) (Measurement, error) {
	if err := over(client, server, ""); err != nil {
		return Measurement{}, err
	}
	m := metrics{}
	measured, warnings, err := wrkText(m, client.Stdout)
	if err != nil {
		return Measurement{}, notUnderstood("wrk", client.ToolVersion, err.Error())
	}
	doubts, err := httpStrangers(m, server.Stderr, m["requests_per_second"]*measured)
	if err != nil {
		return Measurement{}, err
	}
	warnings = append(warnings, doubts...)
	return Measurement{MeasuredSeconds: measured, Metrics: m, Tools: versions(client, server), Warnings: warnings}, nil
}

// wrkFind gives the words of the one line that matches.
func wrkFind(text, what, pattern string) ([]string, error) {
	found := regexp.MustCompile(`(?m)^\s*`+pattern+`\s*$`).FindAllStringSubmatch(text, 2)
	if len(found) != 1 {
		return nil, fmt.Errorf("%d lines of %s where one was expected", len(found), what)
	}
	return found[0][1:], nil
}

// wrkText reads a report. Its latencies are wrk's own: it adds some for requests
// that it holds to have been late (stats_correct in its sources), so that mean ×
// rate is more than the number of connections.
func wrkText(m metrics, text string) (measured float64, warnings []string, err error) {
	total, err1 := wrkFind(text, "requests", `(\d+) requests in (\S+), \S+ read`)
	rate, err2 := wrkFind(text, "Requests/sec", `Requests/sec:\s+(\S+)`)
	transfer, err3 := wrkFind(text, "Transfer/sec", `Transfer/sec:\s+(\S+)`)
	latency, err4 := wrkFind(text, "Latency", `Latency\s+(\S+)\s+(\S+)\s+(\S+)\s+\S+%`)
	if err := errors.Join(err1, err2, err3, err4, whole(text)); err != nil {
		return 0, nil, err
	}
	if strings.Contains(text, "Non-2xx") {
		answers, err := wrkFind(text, "Non-2xx", `Non-2xx or 3xx responses: (\d+)`)
		return 0, nil, errors.Join(fmt.Errorf("%s of %s requests were answered with an error", answers, total[0]), err)
	}
	requests, err1 := number(total[0])
	perSecond, err2 := number(rate[0])
	_, err3 = wrkSeconds(total[1])
	bytes, err4 := wrkBytes(transfer[0])
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return 0, nil, err
	}
	if requests == 0 || perSecond == 0 {
		return 0, nil, errors.New("no request was answered")
	}
	// Its rate has more digits than its time.
	measured = requests / perSecond
	err = errors.Join(
		m.put("requests_per_second", perSecond), m.put("throughput_bits_per_second", bytes*8),
		wrkLatency(m, text, latency))
	warnings, bad := wrkErrors(m, text, requests)
	return measured, warnings, errors.Join(err, bad)
}

func wrkLatency(m metrics, text string, latency []string) error {
	var errs []error
	put := func(name, s string) {
		v, err := wrkSeconds(s)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
			return
		}
		errs = append(errs, m.put(name, v))
	}
	put("latency_mean_seconds", latency[0])
	put("latency_stddev_seconds", latency[1])
	put("latency_max_seconds", latency[2])
	for _, q := range []struct{ name, percent string }{
		{"latency_p50_seconds", "50"}, {"latency_p90_seconds", "90"}, {"latency_p99_seconds", "99"},
	} {
		value, err := wrkFind(text, q.percent+"%", q.percent+`%\s+(\S+)`)
		if err != nil {
			return err
		}
		put(q.name, value[0])
	}
	return errors.Join(errs...)
}

// wrkErrors reads the line that wrk prints only when a socket failed.
func wrkErrors(m metrics, text string, requests float64) (warnings []string, err error) {
	if !strings.Contains(text, "Socket errors") {
		return nil, nil
	}
	counts, err := wrkFind(text, "Socket errors", `Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)`)
	if err != nil {
		return nil, err
	}
	var sum float64
	for _, s := range counts {
		n, err := number(s)
		if err != nil {
			return nil, err
		}
		sum += n
	}
	warning := fmt.Sprintf("in addition to %.0f answered requests wrk had socket errors: connect %s, read %s, write %s, timeout %s; its rate and latency leave those out: use fewer streams, or look at the path", requests, counts[0], counts[1], counts[2], counts[3])
	return []string{warning}, m.put("requests_failed", sum)
}

// wrkSeconds reads a time: a number and its unit (units.c of wrk).
func wrkSeconds(s string) (float64, error) {
	return withUnit(s, []scale{{"us", 1e6}, {"ms", 1e3}, {"s", 1}, {"m", 1.0 / 60}, {"h", 1.0 / 3600}})
}

// wrkBytes reads an amount of bytes; its prefixes are powers of 1024.
func wrkBytes(s string) (float64, error) {
	return withUnit(s, []scale{{"KB", 1.0 / (1 << 10)}, {"MB", 1.0 / (1 << 20)}, {"GB", 1.0 / (1 << 30)}, {"TB", 1.0 / (1 << 40)}, {"B", 1}})
}

// scale is a unit, and how many of it make one base unit.
type scale struct {
	unit string
	per  float64
}

// withUnit reads a number that its unit follows at once.
func withUnit(s string, scales []scale) (float64, error) {
	digits := strings.TrimRight(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ%/")
	for _, c := range scales {
		if s[len(digits):] == c.unit {
			v, err := number(digits)
			return v / c.per, err
		}
	}
	return 0, fmt.Errorf("%q has no unit that is known", clip(s))
}
