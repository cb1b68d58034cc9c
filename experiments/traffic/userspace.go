package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/network/instructions"
	"github.com/cnibench/cnibench/internal/result"
)

// countedSteps is how many instructions of a thread are counted.
const countedSteps = 20_000

// triesPerEnd is how often an end is tried.
const triesPerEnd = 5

// counted is a test whose threads are counted, and the counted instructions of all
// that a packet or transaction takes on the shortest path.
type counted struct {
	cell  result.Cell
	total string // a column of internal/network/instructions.csv; "": it was not counted
}

// moves are the system calls that a test's packets or transactions are counted by.
type moves int

const (
	batches      moves = iota // sendmmsg and recvmmsg, by how many datagrams they moved
	transactions              // each end's send
)

func movesOf(cell result.Cell) moves {
	if cell.Workload == "udp_stream" {
		return batches
	}
	return transactions
}

func countedTests() []counted {
	return []counted{
		{result.Cell{Workload: "udp_stream", MessageBytes: 64, Streams: 1}, "udp_stream"},
		{result.Cell{Workload: "tcp_rr", MessageBytes: 64, Streams: 1}, "tcp_rr"},
		{result.Cell{Workload: "tcp_crr", MessageBytes: 64, Streams: 1}, ""},
	}
}

// userspace counts the instructions that the engine's own threads execute in user space
// for each packet or transaction: the busiest thread of each end goes step by step.
func userspace(ctx context.Context, w io.Writer, runner *exec.Runner, congestion string) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "traffic\tclient\tserver\tin user space\tin all\tshare")
	for _, test := range countedTests() {
		var each [2]float64
		for end := range each {
			var err error
			for range triesPerEnd {
				if each[end], err = steppedAlone(ctx, runner, congestion, test.cell, end); err == nil {
					break
				}
			}
			if err != nil {
				return fmt.Errorf("%s: %w", test.cell.Workload, err)
			}
		}
		own := each[0] + each[1]
		all, share := "not counted", ""
		if total, ok := instructions.Of("host", test.total, result.InterHost); ok {
			all, share = fmt.Sprintf("%.0f", total), fmt.Sprintf("%.2f %%", 100*own/total)
		}
		fmt.Fprintf(t, "%s\t%.0f\t%.0f\t%.0f\t%s\t%s\n", test.cell.Workload, each[0], each[1], own, all, share)
	}
	return t.Flush()
}

// steppedAlone is stepped on a path of its own. A thread that Go's scheduler had just
// asked to make room waits for one that does not run: then the agents are killed.
func steppedAlone(ctx context.Context, runner *exec.Runner, congestion string, cell result.Cell, end int) (n float64, err error) {
	p, err := buildPath(ctx, runner, congestion)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	return p.stepped(ctx, cell, end)
}

// stepped runs a sample and counts, in the middle of it, what the busiest thread of one
// end (0: the client, 1: the server) executes for each packet or transaction.
func (p *path) stepped(ctx context.Context, cell result.Cell, end int) (float64, error) {
	const length = 20 * time.Second
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	over := make(chan struct{})
	go func() {
		defer close(over)
		_, _ = p.sample(ctx, cell, length) // it is slowed and cut short: nothing of it is used
	}()
	defer func() { cancel(); <-over }()
	select {
	case <-over:
		return 0, errors.New("the sample ended before its threads were counted")
	case <-time.After(2 * time.Second):
	}
	agents, err := children()
	if err != nil {
		return 0, err
	}
	if len(agents) != 2 {
		return 0, fmt.Errorf("%d programs run, want two agents", len(agents))
	}
	thread, err := busiest(agents[1-end]) // the server's agent was started first
	if err != nil {
		return 0, err
	}
	steps, done, err := stepThrough(agents[1-end], thread, countedSteps, movesOf(cell))
	if err != nil {
		for _, pid := range agents {
			err = errors.Join(err, unix.Kill(pid, unix.SIGKILL))
		}
		return 0, err
	}
	if done == 0 {
		return 0, errors.New("the thread sent and received nothing while it was counted")
	}
	return float64(steps) / float64(done), nil
}

// children are the programs that this one started, oldest first.
func children() ([]int, error) {
	files, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		return nil, err
	}
	var all []int
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // a thread that has ended
		}
		for field := range strings.FieldsSeq(string(text)) {
			if pid, err := strconv.Atoi(field); err == nil {
				all = append(all, pid)
			}
		}
	}
	slices.Sort(all)
	return all, nil
}

// busiest is the thread of a process that uses most CPU time within a moment.
func busiest(pid int) (int, error) {
	before, err := ticks(pid)
	if err != nil {
		return 0, err
	}
	time.Sleep(200 * time.Millisecond)
	after, err := ticks(pid)
	if err != nil {
		return 0, err
	}
	thread, most := 0, int64(-1)
	for id, n := range after {
		if d := n - before[id]; d > most {
			thread, most = id, d
		}
	}
	return thread, nil
}

// ticks is the CPU time of each thread of a process, in nanoseconds.
func ticks(pid int) (map[int]int64, error) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("the threads of process %d cannot be read (%w)", pid, err)
	}
	all := map[int]int64{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // a thread that has ended
		}
		run, _, _ := bytes.Cut(text, []byte(" "))
		n, err := strconv.ParseInt(string(run), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		id, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			return nil, err
		}
		all[id] = n
	}
	return all, nil
}
