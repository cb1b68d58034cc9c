package rank

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/dataset"
	"github.com/cnibench/cnibench/internal/stat/estimate"
	"github.com/cnibench/cnibench/internal/stat/job"
)

// JobAnswer is what a job's operations take on each network.
type JobAnswer struct {
	Profile job.Profile `json:"profile"`
	// Settings are the situations that it was predicted for: cells without a network and
	// without traffic.
	Settings []result.Cell `json:"settings"`
	// Sources tell where the times of each operation come from, by setting and operation.
	Sources [][]JobSource `json:"sources"`
	Costs   []JobCost     `json:"costs"`
}

// JobSource is where the times of an operation come from, the same for all networks.
type JobSource string

// The sources.
const (
	// FromMeasured: the operation itself was measured.
	FromMeasured JobSource = "measured"
	// FromModel: Hockney's model of the network's round trips predicts it.
	FromModel JobSource = "model"
	// FromFarModel: it has larger messages than the model was fitted to.
	FromFarModel JobSource = "model, larger messages than were measured"
)

// JobCost is what the job takes on one network, in one setting.
type JobCost struct {
	Option
	// Setting is an index of JobAnswer.Settings.
	Setting int `json:"setting"`
	// Total is the time of the job, seconds, Operations that of each operation, as often
	// as it occurs.
	Total      estimate.Estimate   `json:"total_seconds"`
	Operations []estimate.Estimate `json:"operations_seconds"`
}

// jobSeries are the times of a job's operations on one network in one setting, by block.
type jobSeries struct {
	measured, model [][]estimate.Point // by operation; empty where there is none
	far             []bool
}

// jobAnalysis predicts a job from a campaign.
type jobAnalysis struct {
	*dataset.Dataset
	profile  job.Profile
	models   []job.Hockney
	settings []result.Cell
	answer   JobAnswer
}

// rankJob ranks the networks by what a job takes on them.
func rankJob(c *dataset.Dataset, profile job.Profile) (GoalRanking, *JobAnswer, error) {
	j := &jobAnalysis{Dataset: c, profile: profile, models: job.Models(c), answer: JobAnswer{Profile: profile}}
	out := GoalRanking{Goal: HPC, Ranked: []GoalRanked{}}
	j.findSettings()
	if len(j.settings) == 0 {
		return out, nil, j.nothing(nil)
	}
	options := j.options()
	var in []goalOption
	series := map[Option][]jobSeries{}
	for _, o := range append(slices.Clone(options), j.hosts(options)...) {
		for _, s := range j.settings {
			series[o] = append(series[o], j.seriesOf(o, s))
		}
	}
	j.chooseSources(options, series)
	for _, o := range options {
		if why := j.lacks(series[o]); why != "" {
			out.LeftOut = append(out.LeftOut, LeftOut{o, why})
			continue
		}
		in = append(in, j.total(o, series[o]))
	}
	if len(in) == 0 {
		return out, nil, j.nothing(out.LeftOut)
	}
	for _, s := range j.settings {
		out.Settings = append(out.Settings, Setting{Cell: s, Metric: jobSeconds})
	}
	out.given = map[string]goalOption{}
	for _, o := range j.hosts(options) {
		if j.lacks(series[o]) == "" {
			out.given[o.Cluster] = j.total(o, series[o])
		}
	}
	j.answer.Settings = j.settings
	rankGoal(c, &out, in)
	return out, &j.answer, nil
}

// jobSeconds is what a job is judged by: its predicted time.
const jobSeconds = "job_seconds"

// findSettings finds the situations in which any of the operations was measured, or, where
// none was, those of the models. One path counts: between nodes, from pod to pod.
func (j *jobAnalysis) findSettings() {
	var all []result.Cell
	add := func(c result.Cell) {
		if s := jobSetting(c); !c.IsBaseline() && isOption(c) && !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	for _, d := range j.Cells {
		if len(d.OK) > 0 && slices.ContainsFunc(j.profile.Operations, func(o job.Operation) bool { return j.profile.Is(d.Cell, o) }) {
			add(d.Cell)
		}
	}
	if len(all) == 0 {
		for _, h := range j.models {
			add(h.Cell)
		}
	}
	best := func(c result.Cell) int {
		return 2*count(c.Placement == result.InterHost) + count(c.Path == result.PathPodToPod)
	}
	most := 0
	for _, s := range all {
		most = max(most, best(s))
	}
	for _, s := range all {
		if best(s) == most && (len(j.settings) == 0 || s.Path == j.settings[0].Path && s.Placement == j.settings[0].Placement) {
			j.settings = append(j.settings, s)
		}
	}
}

// jobSetting is the situation of a cell: all but the network and the traffic.
func jobSetting(c result.Cell) result.Cell {
	s := settingOf(job.WithoutTraffic(c))
	s.CPUs, s.CongestionControl = c.CPUs, c.CongestionControl
	return s
}

// options are the networks that something of the campaign is about.
func (j *jobAnalysis) options() []Option {
	var all []Option
	for _, d := range j.Cells {
		if o := optionOf(d.Cell); !d.Cell.IsBaseline() && isOption(d.Cell) && !slices.Contains(all, o) {
			all = append(all, o)
		}
	}
	slices.SortFunc(all, Option.compare)
	return all
}

// hosts are the bare networks under the options, one for each cluster: with the profile
// that all have, or else with the node's own settings.
func (j *jobAnalysis) hosts(options []Option) []Option {
	var all []Option
	for _, o := range options {
		host := Option{result.HostNetwork, o.Profile, o.Cluster}
		if slices.ContainsFunc(options, func(p Option) bool { return p.Profile != o.Profile }) {
			host.Profile = result.DefaultProfile
		}
		if !slices.Contains(all, host) {
			all = append(all, host)
		}
	}
	return all
}

// SeriesOf are the times of all operations of an option in a setting.
func (j *jobAnalysis) seriesOf(o Option, setting result.Cell) jobSeries {
	var out jobSeries
	at := o.in(setting)
	for _, op := range j.profile.Operations {
		var measured, model []estimate.Point
		for _, d := range j.Cells {
			if len(d.OK) > 0 && j.profile.Is(d.Cell, op) && job.WithoutTraffic(d.Cell) == job.WithoutTraffic(at) && job.SameConditions(d.Cell, at) {
				measured = d.Series("operation_time_mean_seconds")
			}
		}
		cell := at
		cell.Workload, cell.Algorithm, cell.MessageBytes, cell.Ranks, cell.RanksPerNode = op.Operation, op.Algorithm, op.MessageBytes, j.profile.Ranks, j.profile.RanksPerNode
		far := false
		if h := job.ModelFor(cell, j.models); h != nil {
			model = h.Times(cell)
			far = op.MessageBytes > h.Sizes[len(h.Sizes)-1].MessageBytes
		}
		out.measured, out.model, out.far = append(out.measured, measured), append(out.model, model), append(out.far, far)
	}
	return out
}

// chooseSources chooses for each setting and operation where its times come from: from
// the source that more networks have, so that all are predicted alike; measured ones where
// as many have both.
func (j *jobAnalysis) chooseSources(options []Option, series map[Option][]jobSeries) {
	for s := range j.settings {
		sources := make([]JobSource, len(j.profile.Operations))
		for i := range sources {
			measured, modelled, far := 0, 0, false
			for _, o := range options {
				one := series[o][s]
				measured += count(len(one.measured[i]) > 0)
				modelled += count(len(one.model[i]) > 0)
				far = far || one.far[i]
			}
			switch {
			case measured >= modelled:
				sources[i] = FromMeasured
			case far:
				sources[i] = FromFarModel
			default:
				sources[i] = FromModel
			}
		}
		j.answer.Sources = append(j.answer.Sources, sources)
	}
}

// times are those of an operation by the chosen source.
func (j *jobAnalysis) times(all []jobSeries, setting, operation int) []estimate.Point {
	if j.answer.Sources[setting][operation] == FromMeasured {
		return all[setting].measured[operation]
	}
	return all[setting].model[operation]
}

// lacks says what of a job is not known of an option; "" where all is.
func (j *jobAnalysis) lacks(all []jobSeries) string {
	var missing []string
	for s := range j.settings {
		var series [][]estimate.Point
		for i, op := range j.profile.Operations {
			times := j.times(all, s, i)
			if words := op.Words(); len(times) == 0 && !slices.Contains(missing, words) {
				missing = append(missing, words)
			}
			series = append(series, times)
		}
		if len(missing) == 0 && len(estimate.Common(series)[0]) == 0 {
			return "no block has all of the operations"
		}
	}
	if len(missing) == 0 {
		return ""
	}
	return "neither measured nor predicted: " + strings.Join(missing, ", ")
}

// total is what the job takes on an option that lacks nothing. Its costs are noted.
func (j *jobAnalysis) total(o Option, all []jobSeries) goalOption {
	out := goalOption{Option: o}
	for s := range j.settings {
		var series [][]estimate.Point
		for i, op := range j.profile.Operations {
			times := slices.Clone(j.times(all, s, i))
			for k := range times {
				times[k].Value *= op.Count
			}
			series = append(series, times)
		}
		series = estimate.Common(series)
		cost := JobCost{Option: o, Setting: s}
		for _, times := range series {
			cost.Operations = append(cost.Operations, j.Tables.Mean(times))
		}
		whole := slices.Clone(estimate.Sum(series))
		logs := make([]estimate.Point, len(whole))
		for k := range whole {
			whole[k].Value += j.profile.ComputeSeconds
			block, _ := slices.BinarySearch(j.Blocks, whole[k].Block)
			logs[k] = estimate.Point{Block: block, Value: -math.Log(whole[k].Value)}
		}
		cost.Total = j.Tables.Mean(whole)
		j.answer.Costs = append(j.answer.Costs, cost)
		out.logs = append(out.logs, logs)
	}
	return out
}

// nothing says what to measure for the job.
func (j *jobAnalysis) nothing(left []LeftOut) error {
	var lines []string
	for _, op := range j.profile.Operations {
		lines = append(lines, "\n  - "+j.profile.Workload(op))
	}
	text := fmt.Sprintf("no network has all operations of the job %s: add its operations to the campaign's workloads:%s\nor tcp_rr with message_bytes of three sizes or more, from which they are predicted", j.profile.Name, strings.Join(lines, ""))
	for _, l := range left {
		text += fmt.Sprintf("\n  %s: %s", l.Option, l.Why)
	}
	return errors.New(text)
}
