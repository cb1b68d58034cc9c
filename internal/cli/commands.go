package cli

import (
	"net/netip"
	"time"

	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/result"
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

// sampleLength is what a sample of a cell takes for its traffic, where it is not sliced: the
// campaign's seconds, or more for tools that keep to times of their own (whole seconds, and
// sockperf's late start), or until an MPI's program ends. What a tool does before and
// after that is not known.
func sampleLength(s campaign.Sampling, cell result.Cell) (time.Duration, error) {
	w, err := workload.Find(cell.Workload)
	if err != nil {
		return 0, err
	}
	params := workload.Params{Cell: cell, Warmup: s.Warmup(), Window: s.Window()}
	if mpi, ok := w.(workload.MPI); ok {
		return mpi.Takes(params), nil
	}
	length := s.Warmup() + s.Window()
	if len(w.Spec().Needs) == 0 {
		return length, nil
	}
	drive, err := w.Drive(params, netip.AddrPort{})
	return max(length, drive.WindowOffset+drive.Window), err
}

// toolTime is how much longer than the campaign's seconds a sample takes, on average over the
// cells; less than 0 where most of them end sooner on their own.
func toolTime(c campaign.Campaign, p plan.Plan) (time.Duration, error) {
	var sum time.Duration
	for _, cell := range p.Cells {
		length, err := sampleLength(c.Sampling, cell)
		if err != nil {
			return 0, err
		}
		sum += length - c.Sampling.Warmup() - c.Sampling.Window()
	}
	return sum / time.Duration(max(1, len(p.Cells))), nil
}
