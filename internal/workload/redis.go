package workload

import (
	"encoding/csv"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// Redis is redis-benchmark against a real redis-server.
//
// redis-benchmark counts requests, not seconds: it makes 100,000 of them over
// 50 connections by default, and that is what publications did; so
// does this, whatever the campaign's seconds. The record has the seconds that
// it took. As found by running 7.0: refused connections make it spin for ever,
// hence the time limit.
type Redis struct{}

const (
	redisRequests = 100_000 // redis-benchmark's default
	// redisKey is what redis-benchmark writes and reads unless it is asked to
	// use random keys.
	redisKey = "key:__rand_int__"
	// redisLimit allows 100,000 requests at 1,667 a second.
	redisLimit = 60 * time.Second
	// redisWindow is shorter than 100,000 requests take on any machine of today.
	redisWindow = 400 * time.Millisecond
)

// Spec describes redis-benchmark.
func (Redis) Spec() Spec {
	return Spec{
		Name:    "redis",
		Summary: "redis-benchmark on a redis-server; 100,000 requests however long they take",
		Primary: "requests_per_second",
		Needs: []Tool{
			{Name: "redis-benchmark", Package: "redis-tools", Version: []string{"redis-benchmark", "--version"}},
			{Name: "redis-server", Package: "redis-server", Version: []string{"redis-server", "--version"}},
		},
		Factors:             []string{"message_bytes", "streams", "cpus", "congestion_control"},
		DefaultCPUs:         sameCPU,
		Tests:               []string{"get", "set"},
		DefaultMessageBytes: 3,  // its -d
		DefaultStreams:      50, // its -c
	}
}

// Serve is a redis-server that keeps nothing. For get the value must be there
// before the first request, or empty answers would be measured: it is loaded
// from an append-only file, which a server that is only read never writes to.
func (Redis) Serve(p Params) (Program, error) {
	argv := []string{"redis-server", "{dir}/" + redisConfig, "--port", "{port}", "--bind", "{bind}", "--protected-mode", "yes", "--daemonize", "no", "--save", "", "--dir", "{dir}"}
	serve := Program{Port: true, Ready: "tcp", AnyAddress: anyAddress(p.Cell), Files: map[string]string{redisConfig: redisSettings(p.Token)}}
	if p.Cell.Test == "get" {
		argv = append(argv, "--appendonly", "yes", "--appendfilename", "appendonly.aof")
		value := strings.Repeat("x", max(p.Cell.MessageBytes, 1))
		serve.Files["appendonly.aof"] = redisCommand("SELECT", "0") + redisCommand("SET", redisKey, value)
	} else {
		argv = append(argv, "--appendonly", "no")
	}
	serve.Argv = argv
	return redisTimed(serve), nil
}

// redisConfig is the file with what no argument shall show.
const redisConfig = "redis.conf"

// redisSettings admit only who knows the sample's token, and take away the commands that
// reach beyond keys: files, other servers, code. The names are those of 6.2 and later, as
// an unknown one is an error. redis-benchmark asks for CONFIG, and goes on without.
func redisSettings(token string) string {
	var b strings.Builder
	if token != "" {
		fmt.Fprintf(&b, "requirepass %s\n", token)
	}
	for _, command := range []string{
		"CONFIG", "MODULE", "DEBUG", "SHUTDOWN", "REPLICAOF", "SLAVEOF", "MIGRATE", "EVAL", "EVALSHA", "SCRIPT", "ACL", "SAVE", "BGSAVE", "BGREWRITEAOF",
	} {
		fmt.Fprintf(&b, "rename-command %s \"\"\n", command)
	}
	return b.String()
}

// redisCommand is a command as the Redis protocol and its append-only file have it.
func redisCommand(words ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(words))
	for _, w := range words {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(w), w)
	}
	return b.String()
}

func redisTimed(p Program) Program {
	p = timed(p, 0, redisWindow+2*toolEdge)
	p.Timeout += redisLimit
	return p
}

// Drive is redis-benchmark.
func (Redis) Drive(p Params, server netip.AddrPort) (Program, error) {
	host, port := target(server)
	c := p.Cell
	argv := []string{"redis-benchmark", "-h", host, "-p", port}
	if p.Token != "" {
		argv = append(argv, "-a", p.Token)
	}
	if c.MessageBytes > 0 {
		argv = append(argv, "-d", strconv.Itoa(c.MessageBytes))
	}
	argv = append(argv, "-t", c.Test)
	if c.Streams > 0 {
		argv = append(argv, "-c", strconv.Itoa(c.Streams))
	}
	return redisTimed(Program{Argv: append(argv, "-n", strconv.Itoa(redisRequests), "--csv")}), nil
}

// Parse reads the CSV by the names in its header.
func (Redis) Parse(p Params, server, client Output) (Measurement, error) {
	if err := over(client, server, redisReason(client)); err != nil {
		return Measurement{}, err
	}
	row, err := redisRow(client.Stdout, strings.ToUpper(p.Cell.Test))
	if err != nil {
		return Measurement{}, notUnderstood("redis-benchmark", client.ToolVersion, err.Error())
	}
	m := metrics{}
	rate, err := number(row["rps"])
	if err == nil && rate == 0 {
		err = errors.New("no request was answered")
	}
	if err != nil {
		return Measurement{}, notUnderstood("redis-benchmark", client.ToolVersion, "rps: "+err.Error())
	}
	err = m.put("requests_per_second", rate)
	for _, c := range []struct{ name, column string }{
		{"latency_mean_seconds", "avg_latency_ms"}, {"latency_min_seconds", "min_latency_ms"}, {"latency_p50_seconds", "p50_latency_ms"},
		{"latency_p99_seconds", "p99_latency_ms"}, {"latency_max_seconds", "max_latency_ms"},
	} {
		s, ok := row[c.column]
		if !ok {
			continue
		}
		v, bad := number(s)
		if bad != nil {
			bad = fmt.Errorf("%s: %w", c.column, bad)
		}
		err = errors.Join(err, bad, m.put(c.name, v/1000))
	}
	if err != nil {
		return Measurement{}, notUnderstood("redis-benchmark", client.ToolVersion, err.Error())
	}
	return Measurement{MeasuredSeconds: redisRequests / rate, Metrics: m, Tools: versions(client, server)}, nil
}

// redisReason is what redis-benchmark says on stderr while it goes on.
func redisReason(o Output) string {
	for line := range strings.Lines(o.Stderr + "\n" + o.Stdout) {
		for _, sign := range []string{"Could not connect", "Error from server", "Error: ", "Unexpected error"} {
			if strings.Contains(line, sign) {
				return clip(strings.TrimSpace(line))
			}
		}
	}
	return ""
}

// redisRow is the row of a test, by the header's names.
func redisRow(out, test string) (map[string]string, error) {
	records, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("no CSV: %w", err)
	}
	if len(records) == 0 || len(records[0]) < 2 || records[0][0] != "test" || records[0][1] != "rps" {
		return nil, errors.New(`no header of "test","rps",… (redis-benchmark 6.2 and later print one)`)
	}
	var row map[string]string
	for _, r := range records[1:] {
		if r[0] != test {
			continue
		}
		if row != nil {
			return nil, fmt.Errorf("two rows of %s", test)
		}
		row = map[string]string{}
		for i, name := range records[0] {
			row[name] = r[i]
		}
	}
	if row == nil {
		return nil, fmt.Errorf("no row of %s", test)
	}
	return row, nil
}
