package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"time"

	"github.com/cnibench/cnibench/internal/agent"
	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/scratch"
	"github.com/cnibench/cnibench/internal/testbed"
	"github.com/cnibench/cnibench/internal/testbed/lab"
	"github.com/cnibench/cnibench/internal/traffic"
	"github.com/cnibench/cnibench/internal/workload"
)

//go:embed mpi/alltoall.c
var source []byte

// compile makes the program that times MPI_Alltoall, in a temporary folder that tools of
// other users can read.
func compile(ctx context.Context, runner *exec.Runner) (program string, remove func() error, err error) {
	const compiler = "mpicc.openmpi"
	if _, err := exec.LookPath(compiler); err != nil {
		return "", nil, fmt.Errorf("%s is not installed: apt-get install libopenmpi-dev, or leave Open MPI out with -mpi=false", compiler)
	}
	dir, remove, err := scratch.Fresh("cnb-hpc-*")
	if err != nil {
		return "", nil, err
	}
	c := filepath.Join(dir, "alltoall.c")
	program = filepath.Join(dir, "alltoall")
	err = errors.Join(os.Chmod(dir, 0o755), os.WriteFile(c, source, 0o644))
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		if _, err = runner.Run(ctx, exec.Cmd{Argv: []string{compiler, "-O2", "-o", program, c}}); err != nil {
			err = fmt.Errorf("compile the program that times MPI_Alltoall (apt-get install libopenmpi-dev, or leave Open MPI out with -mpi=false): %w", err)
		}
	}
	if err != nil {
		return "", nil, errors.Join(err, remove())
	}
	return program, remove, nil
}

// roundTrips is a sample of tcp_rr.
func roundTrips(ctx context.Context, l *lab.Lab, p workload.Params) (workload.Measurement, error) {
	w := workload.TCPRR()
	ends, err := l.Ends(ctx, p.Cell)
	if err != nil {
		return workload.Measurement{}, err
	}
	serve, err := w.Serve(p)
	if err != nil {
		return workload.Measurement{}, err
	}
	var session agent.ServeResult
	if err := ends.Server.Agent.Call(ctx, agent.MethodServe, agent.ServeParams{Program: serve}, &session); err != nil {
		return workload.Measurement{}, err
	}
	target := netip.AddrPortFrom(ends.ServerAddress, session.Port)
	drive, err := w.Drive(p, target)
	if err != nil {
		return workload.Measurement{}, err
	}
	var server, client workload.Output
	err = ends.Client.Agent.Call(ctx, agent.MethodDrive, agent.DriveParams{Program: drive, Server: target.String()}, &client)
	err = errors.Join(err, ends.Server.Agent.Call(ctx, agent.MethodFinish, agent.FinishParams{Session: session.Session}, &server))
	if err != nil {
		return workload.Measurement{}, err
	}
	return w.Parse(p, server, client)
}

// native is a sample of all_to_all.
func native(ctx context.Context, l *lab.Lab, p workload.Params) (workload.Measurement, error) {
	w, ok := workload.AllToAll().(workload.ManyEnds)
	if !ok {
		return workload.Measurement{}, errors.New("all_to_all has no ranks")
	}
	ranks, err := l.Ranks(ctx, p.Cell)
	if err != nil {
		return workload.Measurement{}, err
	}
	sessions, answers := make([]agent.ServeResult, len(ranks)), make([]agent.RankResult, len(ranks))
	var addresses []string
	for i, rank := range ranks {
		cfg, err := w.Rank(p, i, i) // a lab is one machine
		if err != nil {
			return workload.Measurement{}, err
		}
		if err := rank.Agent.Call(ctx, agent.MethodJoin, agent.JoinParams{Job: cfg}, &sessions[i]); err != nil {
			return workload.Measurement{}, err
		}
		addresses = append(addresses, netip.AddrPortFrom(rank.Address, sessions[i].Port).String())
	}
	err = together(len(ranks), func(i int) error {
		err := ranks[i].Agent.Call(ctx, agent.MethodRank, agent.RankParams{Session: sessions[i].Session, Ranks: addresses}, &answers[i])
		if err == nil && answers[i].Failed != nil {
			err = answers[i].Failed
		}
		return err
	})
	if err != nil {
		return workload.Measurement{}, err
	}
	var outputs []workload.RankOutput
	for i, a := range answers {
		outputs = append(outputs, workload.RankOutput{JobReport: *a.Report, Place: ranks[i].Name, Node: ranks[i].Node, Machine: "this"})
	}
	return w.ParseRanks(p, outputs)
}

// together calls f for all numbers below n at the same time.
func together(n int, f func(i int) error) error {
	errs := make([]error, n)
	var wait sync.WaitGroup
	for i := range n {
		wait.Go(func() { errs[i] = f(i) })
	}
	wait.Wait()
	return errors.Join(errs...)
}

// openMPI is a sample of MPI_Alltoall: the launcher of mpi_hpcc with another program.
func openMPI(ctx context.Context, l *lab.Lab, p workload.Params, program string) (workload.Measurement, error) {
	ranks, err := l.Ranks(ctx, p.Cell)
	if err != nil {
		return workload.Measurement{}, err
	}
	w := workload.MPIHPCC()
	launched := p
	launched.Cell.Workload, launched.Cell.MessageBytes, launched.Cell.MatrixSize = w.Spec().Name, 0, workload.DefaultMatrixSize
	hosts, places := hostsOf(ranks)
	launch, err := w.Launch(launched, hosts)
	if err != nil {
		return workload.Measurement{}, err
	}
	const ofHPCC = 3 // sh -c SCRIPT
	launch.Argv = append(launch.Argv[:len(launch.Argv)-ofHPCC], program, strconv.Itoa(p.Cell.MessageBytes), fmt.Sprint(p.Warmup.Seconds()), fmt.Sprint(p.Window.Seconds()))
	launch.Launch.Begun = "cnibench: begun"
	launch.MeasuredAddress = hosts[0].Address.String()
	var session agent.ServeResult
	if err := places[0].Agent.Call(ctx, agent.MethodServe, agent.ServeParams{Program: launch}, &session); err != nil {
		return workload.Measurement{}, err
	}
	daemons, err := w.Daemons(launched, hosts, session.Commands)
	if err != nil {
		return workload.Measurement{}, err
	}
	err = together(len(daemons), func(i int) error {
		var out workload.Output
		d := daemons[i]
		return places[d.Host].Agent.Call(ctx, agent.MethodDrive, agent.DriveParams{Program: d.Program}, &out)
	})
	var out workload.Output
	err = errors.Join(err, places[0].Agent.Call(ctx, agent.MethodWait, agent.WaitParams{Session: session.Session}, nil),
		places[0].Agent.Call(ctx, agent.MethodFinish, agent.FinishParams{Session: session.Session}, &out))
	if err != nil {
		return workload.Measurement{}, err
	}
	return parse(out, p)
}

// hostsOf makes one host of all ranks that share an address.
func hostsOf(ranks []testbed.Rank) (hosts []workload.MPIHost, places []testbed.Place) {
	at := map[netip.Addr]int{}
	for i, rank := range ranks {
		k, known := at[rank.Address]
		if !known {
			k = len(hosts)
			at[rank.Address] = k
			hosts, places = append(hosts, workload.MPIHost{Address: rank.Address}), append(places, rank.Place)
		}
		hosts[k].Ranks, hosts[k].LocalRanks = append(hosts[k].Ranks, i), append(hosts[k].LocalRanks, i)
	}
	return hosts, places
}

// parse reads what the program printed.
func parse(out workload.Output, p workload.Params) (workload.Measurement, error) {
	found := regexp.MustCompile(`cnibench: (\d+) operations, (\S+) seconds`).FindStringSubmatch(out.Stdout)
	if found == nil || out.ExitCode != 0 || out.Killed != "" {
		return workload.Measurement{}, fmt.Errorf("mpirun ended with status %d%s: %s", out.ExitCode, out.Killed, workload.LastLines(out))
	}
	operations, err1 := strconv.ParseFloat(found[1], 64)
	mean, err2 := strconv.ParseFloat(found[2], 64)
	if err := errors.Join(err1, err2); err != nil {
		return workload.Measurement{}, err
	}
	if sent := traffic.JobSentBytes(traffic.JobConfig{Test: traffic.AllToAll, Algorithm: traffic.Pairwise, Ranks: p.Cell.Ranks, MessageBytes: p.Cell.MessageBytes}); out.Device == nil || out.Device.SentBytes < float64(sent)*operations {
		return workload.Measurement{}, errors.New("the measured device carried less than the operations send: MPI used another transport")
	}
	return workload.Measurement{MeasuredSeconds: p.Window.Seconds(), Metrics: map[string]float64{"operations": operations, "operation_time_mean_seconds": mean}}, nil
}
