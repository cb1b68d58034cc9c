package workload

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/traffic"
)

// ManyEnds is a workload whose operations have a part for each rank of a job.
type ManyEnds struct{ spec Spec }

// DefaultRanks is the number of ranks where a campaign names none.
const DefaultRanks = 4

// manyEnds makes one by its test in the engine.
func manyEnds(test, summary string, messageBytes int) ManyEnds {
	s := Spec{
		Name: test, Summary: summary, Primary: "operation_time_mean_seconds",
		Factors:               []string{"ranks", "ranks_per_node", "cpus", "congestion_control"},
		SetsCongestionControl: true,
		DefaultCPUs:           result.CPUsApart,
		DefaultMessageBytes:   messageBytes,
		ManyEnds:              true,
	}
	if messageBytes > 0 {
		s.Factors = append(s.Factors, "message_bytes")
		s.MostMessageBytes = 1 << 20
	}
	if s.Algorithms, _ = traffic.JobAlgorithms(test); len(s.Algorithms) > 0 {
		s.Factors = append(s.Factors, "algorithm")
	}
	return ManyEnds{s}
}

// Spec describes the workload.
func (w ManyEnds) Spec() Spec { return w.spec }

var errManyEnds = errors.New("a workload with many ends has ranks and neither a client nor a server")

// Serve is an error: there are ranks.
func (ManyEnds) Serve(Params) (Program, error) { return Program{}, errManyEnds }

// Drive is an error: there are ranks.
func (ManyEnds) Drive(Params, netip.AddrPort) (Program, error) { return Program{}, errManyEnds }

// Parse is an error: ParseRanks reads what ranks counted.
func (ManyEnds) Parse(Params, Output, Output) (Measurement, error) {
	return Measurement{}, errManyEnds
}

// Rank is the engine's configuration for one rank; local is its place among the ranks of
// its machine, from 0. The error says what the cell asks for that cannot be run.
func (w ManyEnds) Rank(p Params, rank, local int) (traffic.JobConfig, error) {
	c := p.Cell
	cfg := traffic.JobConfig{
		Test: w.spec.Name, Algorithm: c.Algorithm, Token: p.Token, Rank: rank, Ranks: c.Ranks, LocalRank: local,
		MessageBytes: c.MessageBytes, Warmup: p.Warmup, Window: p.Window, Placement: c.CPUs, CongestionControl: c.CongestionControl,
	}
	checked := cfg
	if checked.Token == "" {
		checked.Token = noToken
	}
	return cfg, checked.Validate()
}

// noToken stands for the token of a run that is only checked.
const noToken = "00000000000000000000000000000000"

// CheckRanks returns an error that says what of a choice cannot be run, as a campaign is
// read; 0 bytes for a workload without messages.
func (s Spec) CheckRanks(test, algorithm string, ranks, messageBytes int) error {
	exact, name := s.Ranks(test), s.Name
	if _, own := s.ExactRanksByTest[test]; own {
		name += " " + test
	}
	switch {
	case exact > 0 && ranks != exact:
		return fmt.Errorf("%s has %d ranks, found %d", name, exact, ranks)
	case s.MostRanks > 0 && ranks > s.MostRanks:
		return fmt.Errorf("%s has at most %d ranks, found %d", s.Name, s.MostRanks, ranks)
	case len(s.Needs) > 0: // no test of the engine
		return nil
	}
	return traffic.JobConfig{
		Test: s.Name, Algorithm: algorithm, Token: noToken, Ranks: ranks, MessageBytes: messageBytes, Window: time.Second,
	}.Validate()
}

// RankOutput is what one rank counted, and where it ran.
type RankOutput struct {
	traffic.JobReport
	// Place and Node are those of testbed.Place; Machine is one name for all places that
	// share their CPUs.
	Place, Node, Machine string
}

// ParseRanks reads what all ranks counted, in their order. Times are those of the slowest
// rank of each operation, as a job waits for that one.
func (w ManyEnds) ParseRanks(p Params, ranks []RankOutput) (Measurement, error) {
	if len(ranks) != p.Cell.Ranks || len(ranks) < 2 {
		return Measurement{}, fmt.Errorf("%d of %d ranks gave a report", len(ranks), p.Cell.Ranks)
	}
	root := ranks[0]
	for i, r := range ranks {
		if r.Operations != root.Operations {
			return Measurement{}, fmt.Errorf("rank %d counted %d operations and rank 0 %d", i, r.Operations, root.Operations)
		}
	}
	switch {
	case root.Operations == 0 || root.Slowest == nil || root.WindowSeconds <= 0:
		return Measurement{}, errors.New("no operation was over inside the measured window")
	case len(root.SlowestIn) != len(ranks):
		return Measurement{}, fmt.Errorf("rank 0 counted the slowest of %d ranks, and there are %d", len(root.SlowestIn), len(ranks))
	}
	m := Measurement{MeasuredSeconds: root.WindowSeconds, Metrics: map[string]float64{"operations": float64(root.Operations)}}
	if err := timesOf(m.Metrics, "operation_time", root.Slowest); err != nil {
		return m, err
	}
	m.Job = &result.Job{SlowestRank: slowest(root.SlowestIn), Operation: *histogramOf(root.Slowest)}
	var sent int64
	for i, r := range ranks {
		one, err := w.rankOf(i, ranks)
		if err != nil {
			return m, err
		}
		m.Job.Ranks = append(m.Job.Ranks, one)
		sent = max(sent, r.SentBytes)
		m.strangers(r)
	}
	m.Metrics["rank_sent_bytes_per_operation"] = float64(sent) / float64(root.Operations)
	m.shared(ranks)
	return m, m.flows(w.spec.Name, ranks)
}

// rankOf is the record of one rank. Its times are those of its own part, or of its flow
// where the root of incast saw that end.
func (w ManyEnds) rankOf(i int, ranks []RankOutput) (result.Rank, error) {
	r := ranks[i]
	out := result.Rank{
		Rank: i, Place: r.Place, Node: r.Node, CPUs: r.CPUs, SlowestIn: ranks[0].SlowestIn[i],
		SentBytes: r.SentBytes, ReceivedBytes: r.ReceivedBytes, Conditions: r.Conditions,
	}
	h := r.Own
	if w.spec.Name == traffic.Incast {
		h = nil
		if i < len(ranks[0].Flows) {
			h = ranks[0].Flows[i]
		}
	}
	if h == nil {
		return out, nil
	}
	out.Histogram = histogramOf(h)
	out.Times = map[string]float64{}
	return out, timesOf(out.Times, "operation_time", h)
}

func histogramOf(h *traffic.Histogram) *result.Histogram {
	return &result.Histogram{Unit: "nanoseconds", Count: h.Count, HDRBase64: h.HDRBase64}
}

// slowest is the rank that was the slowest most often; of equal ones the first.
func slowest(counts []int64) int {
	at := 0
	for i, n := range counts {
		if n > counts[at] {
			at = i
		}
	}
	return at
}

// timesOf gives the mean and percentiles of a histogram, seconds; percentiles that it has
// too few values for are absent.
func timesOf(to map[string]float64, name string, h *traffic.Histogram) error {
	hist, err := hdrhistogram.Decode([]byte(h.HDRBase64))
	if err != nil {
		return fmt.Errorf("the histogram of %s: %w", strings.ReplaceAll(name, "_", " "), err)
	}
	to[name+"_mean_seconds"], to[name+"_stddev_seconds"] = h.MeanNanoseconds/1e9, h.StddevNanoseconds/1e9
	to[name+"_min_seconds"], to[name+"_max_seconds"] = float64(h.MinNanoseconds)/1e9, float64(h.MaxNanoseconds)/1e9
	for _, q := range []struct {
		name    string
		percent float64
		least   int64
	}{{"p50", 50, 1}, {"p90", 90, 10}, {"p99", 99, 100}} {
		if h.Count >= q.least {
			to[name+"_"+q.name+"_seconds"] = float64(hist.ValueAtQuantile(q.percent)) / 1e9
		}
	}
	return nil
}

// flows records the completion times of the flows of incast and outcast, all together.
func (m *Measurement) flows(test string, ranks []RankOutput) error {
	var flows []*traffic.Histogram
	switch test {
	case traffic.Incast:
		flows = ranks[0].Flows
	case traffic.Outcast:
		for _, r := range ranks[1:] {
			flows = append(flows, r.Own)
		}
	default:
		return nil
	}
	all, err := traffic.MergeHistograms(flows)
	if err != nil || all == nil {
		return errors.Join(err, errIf(all == nil, "no flow was counted"))
	}
	m.Job.Flows = histogramOf(all)
	return timesOf(m.Metrics, "flow_completion", all)
}

func errIf(is bool, text string) error {
	if is {
		return errors.New(text)
	}
	return nil
}

// strangers records what came to a rank's port without the token.
func (m *Measurement) strangers(r RankOutput) {
	if r.Strangers > 0 {
		m.Metrics["strangers_refused"] += float64(r.Strangers)
		m.Warnings = append(m.Warnings, fmt.Sprintf("%d strangers were refused at %s: something else sends to the data port; find it, or measure where it is not", r.Strangers, r.Place))
	}
}

// shared records how many ranks shared a CPU, and warns, once for each machine, where
// ranks have fewer CPUs than they are.
func (m *Measurement) shared(ranks []RankOutput) {
	var machines []string
	for _, r := range ranks {
		if !slices.Contains(machines, r.Machine) {
			machines = append(machines, r.Machine)
		}
	}
	for _, name := range machines {
		number, allowed := 0, 0
		var cpus []int
		for _, r := range ranks {
			if r.Machine != name {
				continue
			}
			number++
			allowed = r.AllowedCPUs
			for _, cpu := range r.CPUs {
				if !slices.Contains(cpus, cpu) {
					cpus = append(cpus, cpu)
				}
			}
		}
		used := min(len(cpus), allowed)
		if used < 1 {
			continue
		}
		m.Metrics["ranks_per_cpu"] = max(m.Metrics["ranks_per_cpu"], float64(number)/float64(used))
		if number > used {
			m.Warnings = append(m.Warnings, fmt.Sprintf("%d ranks shared %s of one machine: their times contain waiting for each other's CPU time; use fewer ranks, or a machine with a CPU for each", number, cpusInWords(used)))
		}
	}
}

func cpusInWords(n int) string {
	if n == 1 {
		return "1 CPU"
	}
	return fmt.Sprintf("%d CPUs", n)
}
