package workload

import (
	"cmp"
	"errors"
	"net/netip"
	"time"

	"github.com/cnibench/cnibench/internal/result"
)

// PodSetupName is the workload that adds pods in place of sending traffic.
const PodSetupName = result.PodSetupName

// PodSetup adds pods at once, in the lab by CNI ADD and on a cluster through the API server, waits
// until packets pass between each and another pod, and removes them. The testbed does that.
type PodSetup struct{}

// Spec describes the workload.
func (PodSetup) Spec() Spec {
	return Spec{
		Name:    PodSetupName,
		Summary: "pods added at once: how long until packets pass between each and another pod, and where that time goes",
		Primary: "pod_ready_mean_seconds",
		Factors: []string{"pods"},
	}
}

var errNoProgram = errors.New("pod_setup runs no program: the testbed itself adds the pods")

// Serve is an error: there is no program.
func (PodSetup) Serve(Params) (Program, error) { return Program{}, errNoProgram }

// Drive is an error: there is no program.
func (PodSetup) Drive(Params, netip.AddrPort) (Program, error) { return Program{}, errNoProgram }

// Parse is an error: there is no output.
func (PodSetup) Parse(Params, Output, Output) (Measurement, error) {
	return Measurement{}, errNoProgram
}

// PodsAdded makes a measurement of pods that were added at once. Steps that were
// not seen of every pod, or so late that they come out of order (on a machine that
// is busy), are absent.
func PodsAdded(set result.PodSetUp) (Measurement, error) {
	pods := set.Pods
	if len(pods) == 0 {
		return Measurement{}, errors.New("no pod was added")
	}
	m := Measurement{Metrics: map[string]float64{}, Warnings: set.Doubts}
	for name, bytes := range map[string]*float64{"pod_kernel_memory_bytes": set.KernelBytes, "pod_process_memory_bytes": set.ProcessBytes} {
		if bytes != nil {
			m.Metrics[name] = *bytes / float64(len(pods))
		}
	}
	ready := steps(pods, func(result.PodTimes) *time.Duration { return new(time.Duration) }, func(p result.PodTimes) *time.Duration { return p.Answered })
	if ready == nil {
		return m, errors.New("a pod never answered")
	}
	m.MeasuredSeconds = largest(ready)
	m.Metrics["pod_ready_max_seconds"] = m.MeasuredSeconds
	m.Metrics["pods_ready_per_second"] = float64(len(pods)) / m.MeasuredSeconds
	begin := func(result.PodTimes) *time.Duration { return new(time.Duration) }
	device := func(p result.PodTimes) *time.Duration { return p.Device }
	address := func(p result.PodTimes) *time.Duration { return p.Address }
	route := func(p result.PodTimes) *time.Duration { return p.Route }
	added := func(p result.PodTimes) *time.Duration { return p.Added }
	policy := func(p result.PodTimes) *time.Duration { return p.Policy }
	usable := func(p result.PodTimes) *time.Duration {
		return cmp.Or(p.Policy, p.Added, p.Started)
	}
	for _, s := range []struct {
		name     string
		from, to func(result.PodTimes) *time.Duration
	}{
		{"pod_ready_mean_seconds", begin, func(p result.PodTimes) *time.Duration { return p.Answered }},
		{"pod_allocated_mean_seconds", begin, func(p result.PodTimes) *time.Duration { return p.Allocated }},
		{"pod_device_mean_seconds", begin, device},
		{"pod_address_mean_seconds", device, address},
		{"pod_route_mean_seconds", address, route},
		{"pod_waiting_mean_seconds", route, added},
		{"pod_added_mean_seconds", begin, added},
		{"pod_policy_mean_seconds", added, policy},
		{"pod_started_mean_seconds", begin, func(p result.PodTimes) *time.Duration { return p.Started }},
		{"pod_answer_mean_seconds", usable, func(p result.PodTimes) *time.Duration { return p.Answered }},
		{"pod_removed_mean_seconds", begin, func(p result.PodTimes) *time.Duration { return p.Removed }},
	} {
		if all := steps(pods, s.from, s.to); all != nil {
			m.Metrics[s.name] = mean(all)
		}
	}
	m.PluginSeconds = pluginMeans(pods)
	return m, nil
}

// pluginMeans is the mean time of each plugin, by verb; one that did not run for
// every pod has none. A plugin that a list has twice counts with both times.
func pluginMeans(pods []result.PodTimes) map[string]map[string]float64 {
	var out map[string]map[string]float64
	ran := map[[2]string]int{}
	for _, p := range pods {
		seen := map[[2]string]bool{}
		for _, t := range p.Plugins {
			if out == nil {
				out = map[string]map[string]float64{}
			}
			if out[t.Verb] == nil {
				out[t.Verb] = map[string]float64{}
			}
			out[t.Verb][t.Plugin] += t.Took.Seconds() / float64(len(pods))
			seen[[2]string{t.Verb, t.Plugin}] = true
		}
		for k := range seen {
			ran[k]++
		}
	}
	for k, n := range ran {
		if n < len(pods) {
			delete(out[k[0]], k[1])
		}
		if len(out[k[0]]) == 0 {
			delete(out, k[0])
		}
	}
	return out
}

// steps are the seconds from one thing to the next of each pod; nil where that
// is not known of all, or where the order was another.
func steps(pods []result.PodTimes, from, to func(result.PodTimes) *time.Duration) []float64 {
	var all []float64
	for _, p := range pods {
		a, b := from(p), to(p)
		if a == nil || b == nil || *b < *a {
			return nil
		}
		all = append(all, (*b - *a).Seconds())
	}
	return all
}

func largest(xs []float64) float64 {
	most := xs[0]
	for _, x := range xs {
		most = max(most, x)
	}
	return most
}

func mean(xs []float64) float64 {
	var sum float64
	for _, x := range xs {
		sum += x
	}
	return sum / float64(len(xs))
}
