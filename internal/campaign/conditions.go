package campaign

import (
	"fmt"
	"slices"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/workload"
)

// Lab is the testbed of network namespaces on this machine.
const Lab = "lab"

// LabAlgorithm is the congestion control of a lab: the kernel's own default. The
// machine's may be another: bbr without the qdisc fq paces with a timer for each
// segment, and that timer is then what is measured.
const LabAlgorithm = "cubic"

// The factors that are conditions, by their names in records.
const (
	cpusKey       = "cpus"
	congestionKey = "congestion_control"
)

// checkConditions refuses conditions that make no sense on a testbed, and fills in
// those that the file leaves to it.
func (d *decoder) checkConditions(where keyPath, w *Workload, spec workload.Spec, testbed string) {
	w.Asked = Conditions{w.has(cpusKey), w.has(congestionKey)}
	if slices.Contains(w.Values["pin_cpus"], any(true)) && w.Asked.CPUs {
		d.fail(where.with("pin_cpus"), "leave pin_cpus out", "cpus and pin_cpus both place the ends")
	}
	if testbed != Lab && w.Asked.CongestionControl && !spec.SetsCongestionControl && slices.ContainsFunc(w.Values[congestionKey], func(v any) bool { return v != result.AsIs }) {
		d.fail(where.with(congestionKey), "write as-is, and set net.ipv4.tcp_congestion_control on the machines", "%s cannot set its congestion control, and this testbed does not do it", spec.Name)
	}
	w.fillConditions(spec, testbed)
}

// fillConditions gives the conditions that the file leaves open their values for a
// testbed.
func (w *Workload) fillConditions(spec workload.Spec, testbed string) {
	if takes(spec, cpusKey) && !w.Asked.CPUs {
		w.set(cpusKey, result.CPUsFree)
		if testbed == Lab && !slices.Contains(w.Values["pin_cpus"], any(true)) {
			w.set(cpusKey, spec.CPUsFor(w.firstTest()))
		}
	}
	if takes(spec, congestionKey) && !w.Asked.CongestionControl {
		w.set(congestionKey, result.AsIs)
		if testbed == Lab {
			w.set(congestionKey, LabAlgorithm)
		}
	}
}

func (w *Workload) firstTest() string {
	if tests := w.texts("test"); len(tests) > 0 {
		return tests[0]
	}
	return ""
}

// On is the campaign on another testbed than its file names: conditions that the
// file leaves open are those of that testbed.
func (c Campaign) On(testbed string, known Known) Campaign {
	c.Testbed = testbed
	c.Workloads = slices.Clone(c.Workloads)
	for i := range c.Workloads {
		if spec, ok := known.workload(c.Workloads[i].Name); ok {
			c.Workloads[i].fillConditions(spec, testbed)
		}
	}
	return c
}

// InLabs is a campaign for clusters that are labs' Kubernetes: they inherit this
// machine's congestion control as a lab does, so what the file leaves open is a lab's.
// Tools without a flag for it keep what the pods have.
func (c Campaign) InLabs(known Known) Campaign {
	c.Workloads = slices.Clone(c.Workloads)
	for i := range c.Workloads {
		w := &c.Workloads[i]
		if spec, ok := known.workload(w.Name); ok && spec.SetsCongestionControl && takes(spec, congestionKey) && !w.Asked.CongestionControl {
			w.set(congestionKey, LabAlgorithm)
		}
	}
	return c
}

// Uncontrolled is the campaign as versions before conditions were factors ran it:
// what its file leaves open is as the system has it, and samples are one long
// window each.
func (c Campaign) Uncontrolled() Campaign {
	c.Sampling.SliceSeconds, c.Sampling.ExplainSeconds = 0, 0
	c.Workloads = slices.Clone(c.Workloads)
	for i := range c.Workloads {
		w := &c.Workloads[i]
		if w.has(cpusKey) && !w.Asked.CPUs {
			w.set(cpusKey, result.CPUsFree)
		}
		if w.has(congestionKey) && !w.Asked.CongestionControl {
			w.set(congestionKey, result.AsIs)
		}
	}
	return c
}

// checkPlacement refuses to put both ends on one CPU where they are on two machines.
func (d *decoder) checkPlacement(c *Campaign) {
	if c.Testbed == Lab {
		return
	}
	apart := slices.ContainsFunc(c.Paths, func(p Path) bool { return p.Placement == result.InterHost })
	for i, w := range c.Workloads {
		at := slices.Index(w.Values[cpusKey], any(result.CPUsSame))
		if at >= 0 && apart {
			d.fail(keyPath{"workloads", i}.with(cpusKey).with(at), "write apart or free, or measure paths inside a node alone",
				"%s", fmt.Sprintf("the ends of a path between nodes are on two machines, which have no CPU in common: %s", result.CPUsSame))
		}
	}
}
