package section

import (
	"fmt"
	"time"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/page"
	"github.com/cnibench/cnibench/internal/unit"
)

// environment is what stood when the campaign ran.
func environment(d *report.Document) []page.Element {
	e := d.Environment
	if e == nil {
		return []page.Element{page.Para("Unknown: there is no environment.json.")}
	}
	facts := &page.Table{Caption: "Machine and program", Columns: []page.Column{{Head: "what"}, {Head: "value", Wide: true}}}
	add := func(what, value string) {
		if value != "" {
			facts.Rows = append(facts.Rows, []page.Field{page.Text(what), page.Text(value)})
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
	for _, tool := range report.SortedKeys(e.Tools) {
		add(tool, e.Tools[tool])
	}
	out := []page.Element{{Table: facts}}
	if t := networkFacts(d); len(t.Rows) > 0 {
		out = append(out, page.Element{Table: t})
	}
	if t := settings("Settings of the machine", e.Host.Sysctls); t != nil {
		out = append(out, page.Element{Table: t})
	}
	if t := profileFacts(d); len(t.Rows) > 0 {
		out = append(out, page.Element{Table: t})
	}
	if t := placeFacts(d); len(t.Rows) > 0 {
		out = append(out, page.Element{Table: t})
	}
	if t := podStarts(d); len(t.Rows) > 0 {
		out = append(out, page.Element{Table: t})
	}
	return out
}

// podStarts is how each pod of a cluster came to run.
func podStarts(d *report.Document) *page.Table {
	t := &page.Table{Caption: "Pods of a cluster, until they ran",
		Columns: []page.Column{{Head: "pod"}, {Head: "has its node", Number: true}, {Head: "kubelet has it", Number: true}, {Head: "has its network", Number: true}, {Head: "its container runs", Number: true}},
		Notes:   []string{"Seconds after the API server took the pod, by the timestamps of scheduler, kubelet and runtime, which Kubernetes keeps in whole seconds: each is good to one. pod_setup measures the same finer, and in the lab step by step."}}
	for _, name := range report.SortedKeys(d.Environment.Places) {
		s := d.Environment.Places[name].PodStart
		if s == nil {
			continue
		}
		row := []page.Field{page.Text(name)}
		for _, v := range []*float64{s.ScheduledSeconds, s.TakenSeconds, s.NetworkSeconds, s.StartedSeconds} {
			if v == nil {
				row = append(row, page.Text("not reported"))
			} else {
				row = append(row, page.Text(fmt.Sprintf("%.0f s", *v)))
			}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func networkFacts(d *report.Document) *page.Table {
	t := &page.Table{Caption: "Networks", Columns: []page.Column{{Head: "network"}, {Head: "encapsulation"}, {Head: "model of", Wide: true}, {Head: "leaves out", Wide: true}}}
	for _, n := range report.SortedKeys(d.Environment.Networks) {
		f := d.Environment.Networks[n]
		of := f.ModelWithDistance()
		if !f.Rebuilt() {
			of = "nothing: it is what it says"
		}
		if f.Datapath != "" {
			of += "; carried by " + f.Datapath
		}
		row := []page.Field{page.Text(d.Name(n)), page.Text(orNone(f.Encapsulation)), page.Text(of), page.Text(f.LeavesOut)}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// placeFacts is one row for each value of each thing that the places reported
// themselves, with the places that said so.
func placeFacts(d *report.Document) *page.Table {
	t := &page.Table{Caption: "Places", Columns: []page.Column{{Head: "what", Wide: true}, {Head: "value"}, {Head: "where", Wide: true}}}
	said := map[string]map[string][]string{}
	add := func(what, value, place string) {
		if said[what] == nil {
			said[what] = map[string][]string{}
		}
		said[what][value] = append(said[what][value], place)
	}
	for _, name := range report.SortedKeys(d.Environment.Places) {
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
	for _, what := range report.SortedKeys(said) {
		for _, value := range report.SortedKeys(said[what]) {
			where := said[what][value]
			words := report.And(where)
			if len(where) == len(d.Environment.Places) && len(where) > 1 {
				words = fmt.Sprintf("all %d places", len(where))
			}
			t.Rows = append(t.Rows, []page.Field{page.Text(what), page.Text(value), page.Text(words)})
		}
	}
	return t
}

func settings(caption string, sysctls map[string]string) *page.Table {
	if len(sysctls) == 0 {
		return nil
	}
	t := &page.Table{Caption: caption, Columns: []page.Column{{Head: "setting"}, {Head: "value"}}}
	for _, k := range report.SortedKeys(sysctls) {
		t.Rows = append(t.Rows, []page.Field{page.Text(k), page.Text(sysctls[k])})
	}
	return t
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
