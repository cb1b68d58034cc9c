package recommend

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/page"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/estimate"
	"github.com/cnibench/cnibench/internal/stat/rank"
	"github.com/cnibench/cnibench/internal/unit"
)

// jobWords say what a job is judged by, and where the times of its operations come from.
func jobWords(j rank.JobAnswer) []string {
	p := j.Profile
	first := fmt.Sprintf("Judged by the time of the job %s: %d ranks, %d on a node, %s", p.Name, p.Ranks, p.RanksPerNode, report.Count(len(p.Operations), "kind of operation", "kinds of operations"))
	if p.ComputeSeconds > 0 {
		first += ", and " + unit.Value(p.ComputeSeconds, "s") + " of computing, which is the same on all networks"
	}
	if n := len(j.Settings); n > 1 {
		first += fmt.Sprintf("; in %d settings, each counting the same", n)
	}
	out := []string{first + "."}
	for _, source := range []rank.JobSource{rank.FromMeasured, rank.FromModel, rank.FromFarModel} {
		var names []string
		for _, sources := range j.Sources {
			for i, s := range sources {
				if name := p.Operations[i].Words(); s == source && !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
		}
		if len(names) == 0 {
			continue
		}
		list := strings.Join(names, ", ")
		switch source {
		case rank.FromMeasured:
			out = append(out, "Measured: "+list+".")
		case rank.FromModel:
			out = append(out, "Predicted by Hockney's model of the round trips: "+list+". The model leaves out late ranks, shared CPUs and congestion.")
		default:
			out = append(out, "Predicted, for messages larger than the model was fitted to: "+list+". Measure tcp_rr with messages of that size, or the operation.")
		}
	}
	return out
}

// jobCosts are what the job takes on each network, a table for each setting.
func jobCosts(d *report.Document, r rank.Recommendation) []page.Table {
	if r.Job == nil {
		return nil
	}
	var out []page.Table
	for i, s := range r.Job.Settings {
		t := page.Table{Columns: []page.Column{{Head: "network"}, {Head: "job", Sub: "seconds", Number: true}}}
		if len(r.Job.Settings) > 1 {
			t.Caption = settingWords(s) + ":"
		}
		for k, op := range r.Job.Profile.Operations {
			t.Columns = append(t.Columns, page.Column{Head: fmt.Sprintf("%g × %s", op.Count, op.Words()), Sub: string(r.Job.Sources[i][k]), Number: true})
		}
		for _, c := range r.Job.Costs {
			if c.Setting != i {
				continue
			}
			row := []page.Field{page.Text(d.Option(c.Option)), estimateField(c.Total)}
			for _, e := range c.Operations {
				row = append(row, estimateField(e))
			}
			t.Rows = append(t.Rows, row)
		}
		out = append(out, t)
	}
	return out
}

func estimateField(e estimate.Estimate) page.Field {
	return page.Field{Text: unit.Estimate(e.Value, report.Halfwidth(e), "s"), Value: &e.Value}
}

// settingWords name what differs between the settings of a job.
func settingWords(c result.Cell) string {
	words := fmt.Sprintf("link %s, MTU %d", c.Link, c.MTU)
	for _, more := range []string{c.Family, c.CPUs, c.CongestionControl} {
		if more != "" {
			words += ", " + more
		}
	}
	return words
}
