package result_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/cnibench/cnibench/internal/result"
)

// The schema that is published says the same of a record as Validate.
func TestSchemaAgreesWithValidate(t *testing.T) {
	schema, err := jsonschema.NewCompiler().Compile("../../docs/samples.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	one := 1.0
	ok := result.Sample{
		Schema: 1, ID: "b01-c000", Block: 1, Attempt: 1, Status: "ok", Started: time.Unix(0, 0).UTC(), RequestedSeconds: 1, MeasuredSeconds: &one,
		Cell:          result.Cell{Network: "host", Path: "host-to-host", Placement: "inter-host", Link: "unshaped", Profile: "default_settings", MTU: 1500, Workload: "tcp_rr", MessageBytes: 64, Streams: 1},
		Metrics:       map[string]float64{"transactions_per_second": 1},
		Histogram:     &result.Histogram{Unit: "nanoseconds", Count: 1, HDRBase64: "AA=="},
		Series:        &result.Series{IntervalSeconds: 0.1, ThroughputBitsPerSecond: []float64{0, 1}},
		Probes:        map[string]map[string]float64{"client_node": {"cpu_softirq_seconds": 1.2}, "client_node_idle": {"cpu_softirq_seconds": 0.1}},
		PluginSeconds: map[string]map[string]float64{"ADD": {"bridge": 0.02}},
		Machines:      map[string]string{"client_node": "7d8e"},
		Settings:      map[string]map[string]string{"server_node": {"net.ipv4.tcp_sack": "0"}},
		Tools:         map[string]string{"iperf3": "3.12"}, Raw: "raw/b01-c000", Warnings: []string{"loss"},
	}
	job := &result.Job{SlowestRank: 1, Operation: *ok.Histogram, Flows: ok.Histogram, Ranks: []result.Rank{
		{Rank: 0, Place: "pod1", Node: "node1", SlowestIn: 0, SentBytes: 8, ReceivedBytes: 8},
		{Rank: 1, Place: "pod2", Node: "node1", CPUs: []int{3}, SlowestIn: 1, Times: map[string]float64{"operation_time_mean_seconds": 1e-5}, Histogram: ok.Histogram, Conditions: map[string]string{"qdisc": "fq"}},
	}}
	change := func(f func(*result.Sample)) result.Sample { s := ok; f(&s); return s }
	strip := func(s *result.Sample) {
		s.Metrics, s.Histogram, s.Series, s.Probes, s.Machines, s.MeasuredSeconds = nil, nil, nil, nil, nil, nil
		s.Settings, s.PluginSeconds = nil, nil
	}
	for name, tc := range map[string]struct {
		sample result.Sample
		good   bool
	}{
		"ok":                  {ok, true},
		"failed":              {change(func(s *result.Sample) { strip(s); s.Status, s.Reason = "failed", "link is down" }), true},
		"unsupported":         {change(func(s *result.Sample) { strip(s); s.Status, s.Reason = "unsupported", "kernel has no ipip" }), true},
		"job":                 {change(func(s *result.Sample) { s.Job = job }), true},
		"job of one rank":     {change(func(s *result.Sample) { j := *job; j.SlowestRank, j.Ranks = 0, j.Ranks[:1]; s.Job = &j }), false},
		"failed with a job":   {change(func(s *result.Sample) { strip(s); s.Status, s.Reason, s.Job = "failed", "rank 1 is gone", job }), false},
		"no metrics":          {change(func(s *result.Sample) { s.Metrics = nil }), false},
		"no window":           {change(func(s *result.Sample) { s.MeasuredSeconds = nil }), false},
		"no reason":           {change(func(s *result.Sample) { strip(s); s.Status = "failed" }), false},
		"failed with metrics": {change(func(s *result.Sample) { s.Status, s.Reason = "failed", "x" }), false},
		"ok with a reason":    {change(func(s *result.Sample) { s.Reason = "x" }), false},
		"negative":            {change(func(s *result.Sample) { s.Metrics = map[string]float64{"transactions_per_second": -1} }), false},
		"negative time":       {change(func(s *result.Sample) { s.PluginSeconds = map[string]map[string]float64{"ADD": {"bridge": -1}} }), false},
		"newer schema":        {change(func(s *result.Sample) { s.Schema = result.Schema + 1 }), false},
		"unknown status":      {change(func(s *result.Sample) { s.Status = "fine" }), false},
		"no network":          {change(func(s *result.Sample) { s.Cell.Network = "" }), false},
		"block 0":             {change(func(s *result.Sample) { s.Block = 0 }), false},
	} {
		t.Run(name, func(t *testing.T) {
			line, err := json.Marshal(tc.sample)
			if err != nil {
				t.Fatal(err)
			}
			value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(line)))
			if err != nil {
				t.Fatal(err)
			}
			bySchema, byValidate := schema.Validate(value), tc.sample.Validate()
			if (bySchema == nil) != tc.good || (byValidate == nil) != tc.good {
				t.Errorf("want good=%v; schema says %v, Validate says %v", tc.good, bySchema, byValidate)
			}
		})
	}
}

// The schema that is published has every factor of a cell, and no other.
func TestSchemaHasEveryFactor(t *testing.T) {
	text, err := os.ReadFile("../../docs/samples.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Properties struct {
			Cell struct {
				Properties map[string]any `json:"properties"`
			} `json:"cell"`
		} `json:"properties"`
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	for _, f := range result.Factors() {
		if _, ok := schema.Properties.Cell.Properties[f.Name]; !ok {
			t.Errorf("docs/samples.schema.json lacks the factor %s", f.Name)
		}
		delete(schema.Properties.Cell.Properties, f.Name)
	}
	for name := range schema.Properties.Cell.Properties {
		t.Errorf("docs/samples.schema.json has %s, which is no factor", name)
	}
}
