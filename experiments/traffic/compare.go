package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"text/tabwriter"

	"github.com/aclements/go-moremath/stats"

	"github.com/cnibench/cnibench/internal/result"
)

// comparison is one figure, as the native engine and as others measure it.
type comparison struct {
	name   string
	metric string
	// unit and divisor are for people.
	unit    string
	divisor float64
	// better is 1 where more is better, -1 where less is.
	better int
	// goal is the ratio native / other that is to be reached.
	goal float64
	// cpus is where both ends of every contender run: a value of result.Cell.CPUs.
	// Left to the scheduler, ends that wait for each other have two speeds (same CPU or
	// not), and the comparison would be of the scheduler's choices.
	cpus       string
	contenders []contender // the first is native
}

type contender struct {
	label string
	cell  result.Cell
	// scale makes the metric the same thing for all: sockperf's latency is half
	// a round trip.
	scale float64
}

func comparisons() []comparison {
	native := func(cell result.Cell) contender { return contender{"native", cell, 1} }
	stream := func(bytes int) comparison {
		return comparison{
			name: fmt.Sprintf("TCP stream %d B", bytes), metric: "throughput_bits_per_second", unit: "Gbit/s", divisor: 1e9, better: 1, goal: 1, cpus: result.CPUsApart,
			contenders: []contender{
				native(result.Cell{Workload: "tcp_stream", MessageBytes: bytes, Streams: 1}),
				{"iperf3", result.Cell{Workload: "iperf3", Protocol: "tcp", MessageBytes: bytes, Streams: 1}, 1},
				{"netperf", result.Cell{Workload: "netperf", Test: "TCP_STREAM", MessageBytes: bytes}, 1},
			},
		}
	}
	datagrams := func(cpus string) comparison {
		return comparison{
			name: "UDP 64 B", metric: "packets_per_second", unit: "k packets/s", divisor: 1e3, better: 1, goal: 1.5, cpus: cpus,
			contenders: []contender{
				native(result.Cell{Workload: "udp_stream", MessageBytes: 64, Streams: 1}),
				{"iperf3", result.Cell{Workload: "iperf3", Protocol: "udp", MessageBytes: 64, Streams: 1}, 1},
				{"netperf", result.Cell{Workload: "netperf", Test: "UDP_STREAM", MessageBytes: 64}, 1},
				{"sockperf", result.Cell{Workload: "sockperf", Test: "throughput", Protocol: "udp", MessageBytes: 64}, 1},
			},
		}
	}
	rr := func(name, workload, test, protocol string) comparison {
		return comparison{
			name: name, metric: "latency_mean_seconds", unit: "µs", divisor: 1e-6, better: -1, goal: 1.02, cpus: result.CPUsSame,
			contenders: []contender{
				native(result.Cell{Workload: workload, MessageBytes: 64, Streams: 1}),
				{"netperf", result.Cell{Workload: "netperf", Test: test, MessageBytes: 64, ResponseBytes: 64}, 1},
				{"sockperf × 2", result.Cell{Workload: "sockperf", Test: "ping-pong", Protocol: protocol, MessageBytes: 64}, 2},
			},
		}
	}
	return []comparison{
		stream(1472),
		stream(65536),
		datagrams(result.CPUsSame),
		datagrams(result.CPUsApart),
		rr("TCP_RR 64 B", "tcp_rr", "TCP_RR", "tcp"),
		rr("UDP_RR 64 B", "udp_rr", "UDP_RR", "udp"),
		{
			name: "TCP_CRR 64 B", metric: "transactions_per_second", unit: "k/s", divisor: 1e3, better: 1, goal: 1, cpus: result.CPUsSame,
			contenders: []contender{
				native(result.Cell{Workload: "tcp_crr", MessageBytes: 64, Streams: 1}),
				{"netperf", result.Cell{Workload: "netperf", Test: "TCP_CRR", MessageBytes: 64, ResponseBytes: 64}, 1},
			},
		},
	}
}

func (c comparison) show(v float64) string { return fmt.Sprintf("%.4g %s", v/c.divisor, c.unit) }

// outcome is what came of a comparison: one value per contender and round.
type outcome struct {
	comparison
	values   [][]float64
	loss     [][]float64
	failures []int
}

// interval is a geometric mean with its 95 % t interval on the logarithms.
type interval struct{ mid, low, high float64 }

func geometric(values []float64) interval {
	logs := make([]float64, len(values))
	for i, v := range values {
		logs[i] = math.Log(v)
	}
	n := float64(len(logs))
	if n == 0 {
		return interval{math.NaN(), math.NaN(), math.NaN()}
	}
	s := stats.Sample{Xs: logs}
	mean, half := s.Mean(), math.Inf(1)
	if n > 1 {
		half = stats.InvCDF(stats.TDist{V: n - 1})(0.975) * s.StdDev() / math.Sqrt(n)
	}
	return interval{math.Exp(mean), math.Exp(mean - half), math.Exp(mean + half)}
}

// ratio is native / contender i, round by round.
func (o outcome) ratio(i int) interval {
	ratios := make([]float64, len(o.values[0]))
	for r := range ratios {
		ratios[r] = o.values[0][r] / o.values[i][r]
	}
	return geometric(ratios)
}

// verdict compares a ratio with the goal.
func (o outcome) verdict(r interval) string {
	low, high, goal := r.low, r.high, o.goal
	if o.better < 0 {
		low, high, goal = 1/r.high, 1/r.low, 1/o.goal
	}
	switch {
	case low >= goal:
		return "reached"
	case high < goal:
		return "missed"
	default:
		return "undecided"
	}
}

// places says where the ends of a comparison ran.
func places(cpus string) string {
	switch cpus {
	case result.CPUsSame:
		return "one CPU"
	case result.CPUsApart:
		return "a CPU each"
	default:
		return "any CPU"
	}
}

// rows are the lines of the table.
func (o outcome) rows() [][]string {
	var rows [][]string
	for i, c := range o.contenders {
		g := geometric(o.values[i])
		row := []string{o.name + ", " + places(o.cpus), c.label, o.show(g.mid), "", "", "", "", ""}
		if i > 0 {
			r := o.ratio(i)
			sign := "≥"
			if o.better < 0 {
				sign = "≤"
			}
			row[3], row[4], row[5], row[6] = fmt.Sprintf("%.3f", r.mid), fmt.Sprintf("%.3f … %.3f", r.low, r.high), fmt.Sprintf("%s %.2f", sign, o.goal), o.verdict(r)
		}
		if o.metric == "packets_per_second" {
			row[7] = fmt.Sprintf("loss %.1f %%", 100*(stats.Sample{Xs: o.loss[i]}).Mean())
		}
		if o.failures[i] > 0 {
			row[7] += fmt.Sprintf(" %d failed", o.failures[i])
		}
		rows = append(rows, row)
	}
	return rows
}

func header() []string {
	return []string{"figure", "tool", "geometric mean", "native / tool", "95 % interval", "goal", "verdict", "notes"}
}

func table(w io.Writer, all []outcome) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(cells []string) {
		for _, c := range cells {
			fmt.Fprintf(t, "%s\t", c)
		}
		fmt.Fprintln(t)
	}
	line(header())
	for _, o := range all {
		for _, row := range o.rows() {
			line(row)
		}
	}
	t.Flush()
}

// The markers around the table in a Markdown file.
const (
	from = "<!-- bench-traffic: begin -->\n"
	to   = "<!-- bench-traffic: end -->"
)

// describe says what machine it was, and how busy with other things.
func describe() (string, error) {
	kernel, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return "", err
	}
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("Linux %s, %d CPUs; 15-minute load average at the end %s, of which the benchmark itself makes about 1.5.", bytes.TrimSpace(kernel), runtime.NumCPU(), bytes.Fields(load)[2]), nil
}

// writeMarkdown replaces the table in a file.
func writeMarkdown(path string, all []outcome, o options) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, ok := bytes.Cut(raw, []byte(from))
	_, after, ok2 := bytes.Cut(rest, []byte(to))
	if !ok || !ok2 {
		return errors.New(path + " has no place for the table: it needs the two bench-traffic markers")
	}
	var b bytes.Buffer
	b.Write(before)
	machine, err := describe()
	if err != nil {
		return err
	}
	fmt.Fprintf(&b, "%s%d rounds, %.3g s each, in random order within each round. %s\n\n", from, o.rounds, o.seconds, machine)
	line := func(cells []string) {
		for _, c := range cells {
			fmt.Fprintf(&b, "| %s ", c)
		}
		b.WriteString("|\n")
	}
	line(header())
	line([]string{"---", "---", "---:", "---:", "---:", "---", "---", "---"})
	for _, out := range all {
		for _, row := range out.rows() {
			line(row)
		}
	}
	b.WriteString(to)
	b.Write(after)
	return os.WriteFile(path, b.Bytes(), 0o644)
}
