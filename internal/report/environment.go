package report

import (
	"fmt"
	"time"

	"github.com/cnibench/cnibench/internal/unit"
)

// environment is what stood when the campaign ran.
func environment(d *document) []block {
	e := d.Environment
	if e == nil {
		return []block{para("Unknown: there is no environment.json.")}
	}
	facts := &table{Caption: "Machine and program", Columns: []column{{Head: "what"}, {Head: "value", Wide: true}}}
	add := func(what, value string) {
		if value != "" {
			facts.Rows = append(facts.Rows, []cell{text(what), text(value)})
		}
	}
	add("testbed", e.Testbed)
	add("kernel", e.Host.Kernel)
	add("operating system", e.Host.OS)
	add("processor", e.Host.CPUModel)
	if e.Host.CPUs > 0 {
		add("processors", fmt.Sprint(e.Host.CPUs))
	}
	if e.Host.MemoryBytes > 0 {
		add("memory", unit.Value(float64(e.Host.MemoryBytes), "B"))
	}
	add("cnibench that measured", e.Version)
	if !e.Started.IsZero() {
		add("started", e.Started.UTC().Format(time.RFC3339))
	}
	if !e.Finished.IsZero() {
		add("finished", e.Finished.UTC().Format(time.RFC3339))
	}
	for _, tool := range sortedKeys(e.Tools) {
		add(tool, e.Tools[tool])
	}
	out := []block{{Table: facts}}
	if t := d.networkFacts(); len(t.Rows) > 0 {
		out = append(out, block{Table: t})
	}
	if t := settings("Settings of the machine", e.Host.Sysctls); t != nil {
		out = append(out, block{Table: t})
	}
	if t := d.profileFacts(); len(t.Rows) > 0 {
		out = append(out, block{Table: t})
	}
	if t := d.placeFacts(); len(t.Rows) > 0 {
		out = append(out, block{Table: t})
	}
	if t := d.podStarts(); len(t.Rows) > 0 {
		out = append(out, block{Table: t})
	}
	return out
}

// podStarts is how each pod of a cluster came to run.
func (d *document) podStarts() *table {
	t := &table{Caption: "Pods of a cluster, until they ran",
		Columns: []column{{Head: "pod"}, {Head: "has its node", Number: true}, {Head: "kubelet has it", Number: true}, {Head: "has its network", Number: true}, {Head: "its container runs", Number: true}},
		Notes:   []string{"Seconds after the API server took the pod, by the timestamps of scheduler, kubelet and runtime, which Kubernetes keeps in whole seconds: each is good to one. pod_setup in the lab measures the same finer, and step by step."}}
	for _, name := range sortedKeys(d.Environment.Places) {
		s := d.Environment.Places[name].PodStart
		if s == nil {
			continue
		}
		row := []cell{text(name)}
		for _, v := range []*float64{s.ScheduledSeconds, s.TakenSeconds, s.NetworkSeconds, s.StartedSeconds} {
			if v == nil {
				row = append(row, text("not told"))
			} else {
				row = append(row, text(fmt.Sprintf("%.0f s", *v)))
			}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func (d *document) networkFacts() *table {
	t := &table{Caption: "Networks", Columns: []column{{Head: "network"}, {Head: "encapsulation"}, {Head: "model of", Wide: true}, {Head: "leaves out", Wide: true}}}
	for _, n := range sortedKeys(d.Environment.Networks) {
		f := d.Environment.Networks[n]
		of := f.Model
		if !f.Rebuilt() {
			of = "nothing: it is what it says"
		}
		if f.Datapath != "" {
			of += "; carried by " + f.Datapath
		}
		row := []cell{text(d.name(n)), text(orNone(f.Encapsulation)), text(of), text(f.LeavesOut)}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// placeFacts is one row for each value of each thing that the places said of
// themselves, with the places that said so.
func (d *document) placeFacts() *table {
	t := &table{Caption: "Places", Columns: []column{{Head: "what", Wide: true}, {Head: "value"}, {Head: "where", Wide: true}}}
	said := map[string]map[string][]string{}
	add := func(what, value, place string) {
		if said[what] == nil {
			said[what] = map[string][]string{}
		}
		said[what][value] = append(said[what][value], place)
	}
	for _, name := range sortedKeys(d.Environment.Places) {
		p := d.Environment.Places[name]
		if p.Kernel != "" {
			add("kernel", p.Kernel, name)
		}
		for dev, mtu := range p.MTUs {
			add("MTU of "+dev, fmt.Sprint(mtu), name)
		}
		for k, v := range p.Offloads {
			add("offload "+k, v, name)
		}
		for k, v := range p.Sysctls {
			add(k, v, name)
		}
	}
	for _, what := range sortedKeys(said) {
		for _, value := range sortedKeys(said[what]) {
			where := said[what][value]
			words := and(where)
			if len(where) == len(d.Environment.Places) && len(where) > 1 {
				words = fmt.Sprintf("all %d places", len(where))
			}
			t.Rows = append(t.Rows, []cell{text(what), text(value), text(words)})
		}
	}
	return t
}

func settings(caption string, sysctls map[string]string) *table {
	if len(sysctls) == 0 {
		return nil
	}
	t := &table{Caption: caption, Columns: []column{{Head: "setting"}, {Head: "value"}}}
	for _, k := range sortedKeys(sysctls) {
		t.Rows = append(t.Rows, []cell{text(k), text(sysctls[k])})
	}
	return t
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
