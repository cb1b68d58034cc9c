package cli

import (
	"net/netip"
	"time"

	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/workload"
)

// commandLines are the tools of one workload's cells as they will be run.
type commandLines struct {
	Cell   string `json:"cell"`
	Server string `json:"server"`
	Client string `json:"client"`
}

// commands gives, for each distinct traffic that a tool makes, the command
// lines of both ends. Addresses, ports and folders are chosen at run time; here
// they are "{address}", "{port}" and "{dir}".
func commands(c campaign.Campaign, p plan.Plan) ([]commandLines, error) {
	var out []commandLines
	seen := map[string]bool{}
	for _, cell := range p.Cells {
		w, err := workload.Find(cell.Workload)
		if err != nil {
			return nil, err
		}
		if len(w.Spec().Needs) == 0 || cell.HasManyEnds() || seen[cell.Traffic()] { // the launcher's line depends on the ranks' addresses
			continue
		}
		seen[cell.Traffic()] = true
		params := workload.Params{Cell: cell, Warmup: c.Sampling.Warmup(), Window: c.Sampling.Window()}
		serve, err := w.Serve(params)
		if err != nil {
			return nil, err
		}
		drive, err := w.Drive(params, netip.AddrPort{})
		if err != nil {
			return nil, err
		}
		out = append(out, commandLines{
			Cell:   cell.Traffic(),
			Server: exec.Cmd{Argv: serve.Argv, Env: serve.Env}.String(),
			Client: exec.Cmd{Argv: drive.Argv, Env: drive.Env}.String(),
		})
	}
	return out, nil
}

// toolTime is how much longer than the campaign's seconds a sample takes, on
// average over the cells, as tools keep to times of their own: whole seconds, and
// sockperf's late start. What a tool does before and after them is not known.
func toolTime(c campaign.Campaign, p plan.Plan) (time.Duration, error) {
	var sum time.Duration
	for _, cell := range p.Cells {
		w, err := workload.Find(cell.Workload)
		if err != nil {
			return 0, err
		}
		if len(w.Spec().Needs) == 0 || cell.HasManyEnds() {
			continue
		}
		drive, err := w.Drive(workload.Params{Cell: cell, Warmup: c.Sampling.Warmup(), Window: c.Sampling.Window()}, netip.AddrPort{})
		if err != nil {
			return 0, err
		}
		sum += max(0, drive.WindowOffset+drive.Window-c.Sampling.Warmup()-c.Sampling.Window())
	}
	return sum / time.Duration(max(1, len(p.Cells))), nil
}
