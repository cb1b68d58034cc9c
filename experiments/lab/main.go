// Command lab measures how fast the lab brings pods up by real CNI ADDs and
// takes them down again, next to Mininet's hosts on one Linux bridge, in
// alternation.
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/cni"
	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/testbed/lab"
	"github.com/cnibench/cnibench/internal/testbed/lab/state"
)

//go:embed mininet_hosts.py
var mininetHosts string

func main() {
	rounds := flag.Int("rounds", 5, "how often each is measured")
	pods := flag.Int("pods", 50, "pods on one node, and Mininet's hosts")
	large := flag.Bool("large", false, "1,000 pods on 20 nodes instead, without Mininet")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout, *rounds, *pods, *large)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "experiments/lab:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, w io.Writer, rounds, pods int, large bool) error {
	r := exec.NewRunner()
	defer r.Close()
	o := lab.Options{Runner: r, CNIPath: cni.SearchPath(""), Verb: "bench-lab"}
	if large {
		return thousand(ctx, w, o, rounds)
	}
	return compare(ctx, w, o, rounds, pods)
}

// times are those of one round.
type times struct{ up, down time.Duration }

func thousand(ctx context.Context, w io.Writer, o lab.Options, rounds int) error {
	fmt.Fprintln(w, "1,000 pods on 20 nodes, bridge + host-local, real CNI ADD and DEL")
	fmt.Fprintf(w, "%-7s %9s %9s\n", "round", "up", "down")
	for i := range rounds {
		t, err := labRound(ctx, o, slices.Repeat([]int{50}, 20))
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%-7d %8.2fs %8.2fs\n", i+1, t.up.Seconds(), t.down.Seconds())
	}
	return nil
}

// needs gives an error that names what Mininet lacks here. Its package only suggests
// bridge-utils, without which its Linux bridges fail one by one.
func needs() error {
	for program, what := range map[string]string{"mn": "mininet", "brctl": "bridge-utils"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("%s is missing (there is no %s): apt-get install mininet bridge-utils", what, program)
		}
	}
	return nil
}

func compare(ctx context.Context, w io.Writer, o lab.Options, rounds, pods int) error {
	if err := needs(); err != nil {
		return err
	}
	fmt.Fprintf(w, "%d pods on one node (lab: bridge + host-local, real CNI ADD and DEL) and %d Mininet hosts on one Linux bridge\n", pods, pods)
	fmt.Fprintf(w, "%-7s %9s %9s    %9s %9s\n", "round", "lab up", "down", "mininet up", "down")
	var ours, theirs []times
	for i := range rounds {
		a, err := labRound(ctx, o, []int{pods})
		if err != nil {
			return err
		}
		b, err := mininetRound(ctx, o.Runner, pods)
		if err != nil {
			return err
		}
		ours, theirs = append(ours, a), append(theirs, b)
		row(w, strconv.Itoa(i+1), a, b)
	}
	a, b := median(ours), median(theirs)
	row(w, "median", a, b)
	fmt.Fprintf(w, "mininet takes %.1f times as long up and %.1f times as long down\n", b.up.Seconds()/a.up.Seconds(), b.down.Seconds()/a.down.Seconds())
	if a.up >= b.up || a.down >= b.down {
		return errors.New("the lab is not faster than Mininet")
	}
	return nil
}

func row(w io.Writer, name string, a, b times) {
	fmt.Fprintf(w, "%-7s %8.2fs %8.2fs    %9.2fs %8.2fs\n", name, a.up.Seconds(), a.down.Seconds(), b.up.Seconds(), b.down.Seconds())
}

// labRound is all that `lab up` and `lab down` do.
func labRound(ctx context.Context, o lab.Options, pods []int) (times, error) {
	var t times
	begin := time.Now()
	info, err := lab.Up(ctx, o, []state.Spec{{
		Network: "bridge", Link: "unshaped", Profile: lab.DefaultProfile, MTU: 1500, Pods: pods,
	}})
	if err != nil {
		return t, err
	}
	t.up = time.Since(begin)
	there := 0
	for _, p := range info.Places {
		if p.Kind == "pod" && len(p.Addresses) == 1 {
			there++
		}
	}
	begin = time.Now()
	gone, err := lab.Down(ctx, o, info.ID)
	t.down = time.Since(begin)
	want := 0
	for _, n := range pods {
		want += n
	}
	if there != want {
		err = errors.Join(err, fmt.Errorf("%d of %d pods have an address", there, want))
	}
	return t, errors.Join(err, gone.Detach)
}

// mininetRound runs Mininet in a namespace of its own: it makes its bridge
// where it runs.
func mininetRound(ctx context.Context, r *exec.Runner, hosts int) (t times, err error) {
	ns, err := netns.New(fmt.Sprintf("cnb-mininet-%06x", rand.Uint32()&0xffffff))
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, ns.Delete()) }()
	res, err := r.Run(ctx, exec.Cmd{Argv: []string{"/usr/bin/python3", "-", strconv.Itoa(hosts)}, NetNS: ns.Path, Stdin: strings.NewReader(mininetHosts)})
	if err != nil {
		return t, err
	}
	var up, down float64
	if _, err := fmt.Sscan(string(res.Stdout), &up, &down); err != nil {
		return t, fmt.Errorf("mininet printed %q: %w", res.Stdout, err)
	}
	seconds := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	return times{seconds(up), seconds(down)}, nil
}

func median(all []times) times {
	by := func(get func(times) time.Duration) time.Duration {
		var d []time.Duration
		for _, t := range all {
			d = append(d, get(t))
		}
		slices.Sort(d)
		return d[len(d)/2]
	}
	return times{by(func(t times) time.Duration { return t.up }), by(func(t times) time.Duration { return t.down })}
}
