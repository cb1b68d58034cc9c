package bench

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/traffic"
	"github.com/cnibench/cnibench/internal/workload"
)

// conditionCPUs is the name of where an end ran, in a record.
const conditionCPUs = "cpus"

// conditionsOf records the conditions that were in force at both ends, and doubts a
// sample that was measured under others than it asked for.
func conditionsOf(s *result.Sample, client, server workload.Output) {
	for _, end := range []struct {
		name string
		out  workload.Output
	}{{result.ClientNode, client}, {result.ServerNode, server}} {
		in := maps.Clone(end.out.Conditions)
		if in == nil {
			in = map[string]string{}
		}
		cpus := end.out.CPUs
		if n := end.out.Native; n != nil {
			maps.Copy(in, n.Conditions)
			cpus = n.CPUs
		}
		if len(cpus) > 0 {
			in[conditionCPUs] = list(cpus)
		}
		if len(in) == 0 {
			continue
		}
		if s.Conditions == nil {
			s.Conditions = map[string]map[string]string{}
		}
		s.Conditions[end.name] = in
	}
	s.Warnings = append(s.Warnings, doubtsOf(s)...)
}

func list(cpus []int) string {
	var all []string
	for _, cpu := range cpus {
		all = append(all, fmt.Sprint(cpu))
	}
	return strings.Join(all, ",")
}

// doubtsOf are warnings about conditions: cause and cure in one line each.
func doubtsOf(s *result.Sample) []string {
	var out []string
	add := func(format string, args ...any) {
		if w := fmt.Sprintf(format, args...); !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	client, server := s.Conditions[result.ClientNode], s.Conditions[result.ServerNode]
	switch s.Cell.CPUs {
	case result.CPUsSame:
		if a, b := client[conditionCPUs], server[conditionCPUs]; a != b || strings.Contains(a, ",") {
			add("cpus: same asked for one CPU, and the ends ran on %s and %s: allow both ends the same CPUs", orUnknown(a), orUnknown(b))
		}
	case result.CPUsApart:
		if a, b := client[conditionCPUs], server[conditionCPUs]; strings.Contains(a, ",") || strings.Contains(b, ",") {
			add("cpus: apart asked for one CPU each, and the ends ran on %s and %s", orUnknown(a), orUnknown(b))
		}
	}
	if s.Cell.Datagrams() {
		return out
	}
	for _, end := range []map[string]string{client, server} {
		algorithm, qdisc := end[traffic.ConditionCongestionControl], end[agent.ConditionQdisc]
		if algorithm == "bbr" && qdisc != "" && qdisc != "fq" {
			add("bbr without the qdisc fq (it is %s): TCP paces with a timer for each segment, and that timer is measured; use congestion_control: [cubic], or tc qdisc replace dev DEVICE root fq", qdisc)
		}
		if asked := s.Cell.CongestionControl; asked != "" && algorithm != "" && algorithm != asked {
			add("congestion_control: %s was asked for, and %s was in force", asked, algorithm)
		}
	}
	return out
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown CPUs"
	}
	return "CPU " + s
}
