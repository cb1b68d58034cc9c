package result

import (
	"errors"
	"fmt"
	"math"

	"github.com/cnibench/cnibench/internal/unit"
)

// Validate reports what is wrong with a record. Records that do not pass are
// neither written nor read.
func (s Sample) Validate() error { return s.validate(knownMetrics()) }

// knownMetrics are the names that a record may have.
func knownMetrics() map[string]bool {
	known := map[string]bool{}
	for _, m := range unit.Metrics() {
		known[m.Name] = true
	}
	return known
}

func (s *Sample) validate(known map[string]bool) error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if s.Schema < 1 || s.Schema > Schema {
		bad("schema %d, want 1 to %d", s.Schema, Schema)
	}
	if s.ID == "" || s.Block < 1 || s.Attempt < 1 {
		bad("id %q, block %d, attempt %d: all are needed, from 1", s.ID, s.Block, s.Attempt)
	}
	if s.Cell.Network == "" || s.Cell.Workload == "" {
		bad("the cell has no network or no workload")
	}
	switch s.Status {
	case StatusOK:
		if s.Reason != "" {
			bad("status ok with a reason: %s", s.Reason)
		}
		if len(s.Metrics) == 0 || s.MeasuredSeconds == nil {
			bad("status ok without metrics or measured_seconds")
		}
	case StatusFailed, StatusUnsupported:
		if s.Reason == "" {
			bad("status %s without a reason", s.Status)
		}
		if len(s.Metrics) > 0 || s.Histogram != nil || s.Slices != nil || s.Explaining != nil || s.Series != nil || s.PluginSeconds != nil || s.Job != nil || s.MeasuredSeconds != nil {
			bad("status %s with measured values", s.Status)
		}
	default:
		bad("unknown status %q", s.Status)
	}
	if s.Job != nil {
		if err := s.Job.validate(); err != nil {
			errs = append(errs, err)
		}
	}
	if s.MeasuredSeconds != nil && !(*s.MeasuredSeconds > 0 && *s.MeasuredSeconds < math.MaxFloat64) {
		bad("measured_seconds is %v", *s.MeasuredSeconds)
	}
	for name, v := range s.Metrics {
		if !known[name] {
			bad("unknown metric %q", name)
		}
		if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
			bad("metric %s is %v", name, v)
		}
	}
	for verb, plugins := range s.PluginSeconds {
		for name, v := range plugins {
			if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
				bad("plugin_seconds of %s on %s is %v", name, verb, v)
			}
		}
	}
	return errors.Join(errs...)
}
