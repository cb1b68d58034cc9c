package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed"
	"github.com/cnibench/cnibench/internal/workload"
)

// mpiJob is one attempt at a sample of a workload of MPI.
type mpiJob struct {
	work    workload.MPI
	params  workload.Params
	hosts   []workload.MPIHost
	places  []testbed.Place // of the hosts
	session agent.ServeResult
	// outputs are those of the hosts; the first is the launcher's.
	outputs []workload.Output
	errs    []error // of the hosts' calls
}

// manyEnds measures a sample whose ends are ranks.
func (r *run) manyEnds(ctx context.Context, s *result.Sample, w workload.Workload) error {
	switch w := w.(type) {
	case workload.MPI:
		return r.mpi(ctx, s, w)
	case workload.ManyEnds:
		return r.job(ctx, s, w)
	}
	return fmt.Errorf("%s has ranks, and nothing runs them", s.Cell.Workload)
}

// mpi measures a sample whose ranks a launcher of MPI starts. The launcher runs at the
// place of rank 0; what it would start over a remote shell is run by the agents.
func (r *run) mpi(ctx context.Context, s *result.Sample, w workload.MPI) error {
	ranks, err := r.ranksOf(ctx, s.Cell)
	if err != nil {
		return err
	}
	j := &mpiJob{work: w, params: workload.Params{Cell: s.Cell, Warmup: r.Sampling.Warmup(), Window: r.Sampling.Window()}}
	j.group(ranks)
	j.outputs, j.errs = make([]workload.Output, len(j.hosts)), make([]error, len(j.hosts))
	err = errors.Join(r.runMPI(ctx, j), r.saveMPI(s, j))
	if err != nil {
		return err
	}
	m, err := w.ParseJob(j.params, j.hosts, j.outputs)
	if err != nil {
		return j.located(err)
	}
	s.MeasuredSeconds, s.Metrics, s.Tools, s.Warnings = &m.MeasuredSeconds, m.Metrics, m.Tools, m.Warnings
	r.versionsOf(s, j.places[0], w.Spec())
	last := len(j.hosts) - 1
	ends := testbed.Ends{Client: j.places[0], Server: j.places[last]}
	profileOf(s, ends)
	mtuOf(s, ends)
	j.conditions(s)
	for _, o := range j.outputs {
		s.Warnings = append(s.Warnings, o.Doubts...)
	}
	return nil
}

// versionsOf records those of the programs that the cell needs, as they were found before
// the first block.
func (r *run) versionsOf(s *result.Sample, at testbed.Place, spec workload.Spec) {
	have := r.tools[toolsKey(at, spec)]
	for _, t := range spec.Needs {
		if v := have[t.Name]; v != "" && t.NeededBy(s.Cell.Test) {
			s.Tools[t.Name] = v
		}
	}
}

// ranksOf gives the places of a cell's ranks.
func (r *run) ranksOf(ctx context.Context, cell result.Cell) ([]testbed.Rank, error) {
	gatherer, ok := r.Testbed.(testbed.Gatherer)
	if !ok {
		return nil, fmt.Errorf("this testbed has no places for the ranks of %s: measure it in the lab", cell.Workload)
	}
	return gatherer.Ranks(ctx, cell)
}

// group makes one host of all ranks that share an address; they share the agent of the
// first.
func (j *mpiJob) group(ranks []testbed.Rank) {
	local := map[string]int{} // ranks so far, by machine
	for i, rank := range ranks {
		at := slices.IndexFunc(j.hosts, func(h workload.MPIHost) bool { return h.Address == rank.Address })
		if at < 0 {
			at = len(j.hosts)
			j.hosts, j.places = append(j.hosts, workload.MPIHost{Address: rank.Address}), append(j.places, rank.Place)
		}
		id := machine(rank.Place)
		j.hosts[at].Ranks = append(j.hosts[at].Ranks, i)
		j.hosts[at].LocalRanks = append(j.hosts[at].LocalRanks, local[id])
		local[id]++
	}
}

// runMPI runs the launcher and its daemons to their end. Whatever happens, nothing of them
// is left running.
func (r *run) runMPI(ctx context.Context, j *mpiJob) (err error) {
	launch, err := j.work.Launch(j.params, j.hosts)
	if err != nil {
		return err
	}
	bound := launch.Timeout + patience
	ctx, cancel := context.WithTimeoutCause(ctx, bound, fmt.Errorf("no end after %v", bound))
	defer cancel()
	defer r.watchAlive(ctx, j.places...)()
	defer func() {
		if err != nil {
			j.cancel(ctx)
		}
	}()
	if err := j.places[0].Agent.Call(ctx, agent.MethodServe, agent.ServeParams{Program: launch}, &j.session); err != nil {
		return j.located(fmt.Errorf("launcher at %s: %w", j.places[0].Name, err))
	}
	daemons, err := j.work.Daemons(j.params, j.hosts, j.session.Commands)
	if err != nil {
		return err
	}
	driving, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	early := make(chan struct{}) // closed when a daemon has ended before the launcher
	var once sync.Once
	var wait sync.WaitGroup
	for _, d := range daemons {
		wait.Go(func() {
			j.drive(driving, d)
			once.Do(func() { close(early) })
		})
	}
	if j.launcher(ctx, early) {
		stop(errOthers)
		wait.Wait()
		return errStalled
	}
	// Daemons end with their launcher.
	timer := time.AfterFunc(failureGrace, func() { stop(errOthers) })
	defer timer.Stop()
	wait.Wait()
	return j.err()
}

// drive runs a daemon to its end. The output of the launcher's place is the launcher's.
func (j *mpiJob) drive(ctx context.Context, d workload.MPIDaemon) {
	var out workload.Output
	err := j.places[d.Host].Agent.Call(ctx, agent.MethodDrive, agent.DriveParams{Program: d.Program}, &out)
	switch {
	case errors.Is(err, errOthers):
	case err != nil:
		j.errs[d.Host] = err
	case d.Host > 0:
		j.outputs[d.Host] = out
	}
}

// launcherWait is how long a launcher may take to end after the first of its daemons.
const launcherWait = 3 * time.Second

// launcher waits for the launcher's end, or ends it launcherWait after the first daemon, or at
// once where the job hangs, which it reports.
func (j *mpiJob) launcher(ctx context.Context, early <-chan struct{}) (hangs bool) {
	stalled, unwatch := j.watchStalled(ctx)
	defer unwatch()
	a := j.places[0].Agent
	over := make(chan error, 1)
	go func() { over <- a.Call(ctx, agent.MethodWait, agent.WaitParams{Session: j.session.Session}, nil) }()
	var err error
	select {
	case err = <-over:
	case <-stalled:
		hangs = true
	case <-early:
		select {
		case err = <-over:
		case <-time.After(launcherWait):
		}
	}
	if err == nil {
		err = a.Call(ctx, agent.MethodFinish, agent.FinishParams{Session: j.session.Session}, &j.outputs[0])
	}
	if err != nil {
		j.errs[0] = errors.Join(err, j.errs[0])
	}
	return hangs
}

// err is why the job cannot be read. The agents that are gone come first: they are the
// cause of what the launcher says.
func (j *mpiJob) err() error {
	var all []error
	for i, err := range j.errs {
		if err != nil {
			all = append(all, fmt.Errorf("ranks %v at %s: %w", j.hosts[i].Ranks, j.places[i].Name, err))
		}
	}
	return errors.Join(all...)
}

// located adds the names of the places whose addresses an error has.
func (j *mpiJob) located(err error) error {
	var names []string
	for i, h := range j.hosts {
		if strings.Contains(err.Error(), h.Address.String()) {
			names = append(names, fmt.Sprintf("%s is %s", h.Address, j.places[i].Name))
		}
	}
	if len(names) == 0 {
		return err
	}
	return fmt.Errorf("%w (%s)", err, strings.Join(names, ", "))
}

// cancel ends what is left at all places. An agent that does not answer is replaced when
// the next sample asks for its place.
func (j *mpiJob) cancel(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	var wait sync.WaitGroup
	for _, p := range j.places {
		if p.Agent.Alive() {
			wait.Go(func() { _ = p.Agent.Call(ctx, agent.MethodCancel, agent.CancelParams{}, nil) }) // see above
		}
	}
	wait.Wait()
}

// saveMPI keeps what the launcher and the daemons printed.
func (r *run) saveMPI(s *result.Sample, j *mpiJob) error {
	err := r.saveRaw(s, workload.Output{}, j.outputs[0])
	for i, out := range j.outputs[1:] {
		if len(out.Argv) > 0 {
			err = errors.Join(err, r.Store.SaveRaw(rawName(s), fmt.Sprintf("rank%d", j.hosts[1+i].Ranks[0]), out.Argv, out.Stdout, out.Stderr))
		}
	}
	return err
}

// conditions records those of the first and the last place, and how many ranks shared a
// CPU.
func (j *mpiJob) conditions(s *result.Sample) {
	of := *s
	of.Cell.CPUs = "" // see below
	conditionsOf(&of, j.outputs[0], j.outputs[len(j.outputs)-1])
	s.Conditions, s.Warnings = of.Conditions, of.Warnings
	ranks, cpus := map[string]int{}, map[string][]int{} // by machine
	for i, h := range j.hosts {
		id := machine(j.places[i])
		ranks[id] += len(h.Ranks)
		for _, cpu := range j.outputs[i].CPUs {
			if !slices.Contains(cpus[id], cpu) {
				cpus[id] = append(cpus[id], cpu)
			}
		}
	}
	for id, n := range ranks {
		used := len(cpus[id])
		if used == 0 {
			continue // the scheduler chose
		}
		s.Metrics["ranks_per_cpu"] = max(s.Metrics["ranks_per_cpu"], float64(n)/float64(used))
		if n > used {
			s.Warnings = append(s.Warnings, fmt.Sprintf("%d ranks shared the CPUs %s of one machine: their times contain waiting for each other's CPU time; use fewer ranks, or a machine with a CPU for each", n, list(cpus[id])))
		}
	}
}
