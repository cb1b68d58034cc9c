// Command instructions counts the instructions that each network of the lab takes
// per packet, where there are no hardware counters: Debian's stock kernel runs in
// qemu, whose clock is made to advance by one nanosecond for each instruction
// (-icount), and the labs are built in there. What it prints is docs/instructions.md.
//
//	go run ./experiments/instructions -o docs/instructions.md   # needs root; takes half an hour
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/labtest/vm"
	"github.com/cnibench/cnibench/internal/network/catalog"
	"github.com/cnibench/cnibench/internal/tunnel"
)

func main() {
	if handled, status := inside(os.Args, os.Stdout, os.Stderr); handled {
		os.Exit(status)
	}
	samples := flag.Int("samples", 10, "how often each traffic is counted")
	out := flag.String("o", "", "file to write; without, the output")
	networks := flag.String("networks", "", "names, with commas between; all that can be counted without")
	ladder := flag.String("ladders", "", "names, with commas between: count the steps up to these networks and nothing else")
	toServices := flag.Bool("services", false, "count datagrams to services and nothing else")
	probes := flag.Bool("probes", false, "count what the probes cost and nothing else")
	real := flag.Bool("real", false, "count real networks, and their models beside them, and nothing else; -networks then takes words of their names")
	backports := flag.Bool("backports", false, "with -real: count the networks that need the kernel of Debian's backports, on it")
	packets := flag.Int("packets", 500, "packets, or transactions, of each sample")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	var err error
	switch {
	case *real:
		err = runReal(ctx, *out, strings.FieldsFunc(*networks, func(r rune) bool { return r == ',' }), *backports, *samples, *packets)
	case *ladder != "":
		tops := strings.Split(*ladder, ",")
		err = runPart(ctx, *out, ladderPlan(tops, *samples, *packets), func(w io.Writer, got counted, _ plan) { ladders(w, got, tops) })
	case *toServices:
		err = runPart(ctx, *out, servicePlan(*samples, *packets), serviceReport)
	case *probes:
		err = runPart(ctx, *out, fullProbePlan(), probeReport)
	default:
		err = run(ctx, *out, *networks, *samples, *packets)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "instructions:", err)
		os.Exit(1)
	}
}

// run counts all, prints each count as it comes, and writes the report.
func run(ctx context.Context, to, networks string, samples, packets int) error {
	r := exec.NewRunner()
	defer r.Close()
	var names []string
	for _, n := range catalog.List() {
		if n.Cgroup == nil { // its programs must be in a cgroup of their own, which this one is not
			names = append(names, n.Name)
		}
	}
	// Weave's loads the kernel's openvswitch. From then on every namespace takes as many
	// instructions more as one that tracks connections.
	slices.SortStableFunc(names, func(a, b string) int {
		switch left, right := strings.HasPrefix(a, "weave/"), strings.HasPrefix(b, "weave/"); {
		case left == right:
			return 0
		case left:
			return 1
		}
		return -1
	})
	if networks != "" {
		names = strings.Split(networks, ",")
	}
	p := fullPlan(names, samples, packets)
	got, err := countInVM(ctx, r, p, os.Stderr)
	if err != nil {
		return err
	}
	// Ten times the packets: here a window of a few would be over at once.
	here, err := countHere(ctx, plan{Settings: []setting{knownChange()}, Samples: samples, Packets: 10 * packets}, os.Stderr)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	report(&b, got, here, p)
	return write(&b, to)
}

// runPart counts a plan and writes its own report.
func runPart(ctx context.Context, to string, p plan, report func(io.Writer, counted, plan)) error {
	r := exec.NewRunner()
	defer r.Close()
	got, err := countInVM(ctx, r, p, os.Stderr)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	report(&b, got, p)
	return write(&b, to)
}

func write(b *bytes.Buffer, to string) error {
	if to == "" {
		_, err := b.WriteTo(os.Stdout)
		return err
	}
	return os.WriteFile(to, b.Bytes(), 0o644)
}

// countVerb is the first argument of this program in the virtual machine; a plan
// follows.
const countVerb = "count"

// inside is what this program also is: the part that runs in the virtual machine and, for
// labs there, a CNI plugin and flannel's tunnel.
func inside(args []string, stdout, stderr io.Writer) (handled bool, status int) {
	if handled, status := catalog.RunAsPlugin(args[0], os.Environ()); handled {
		return true, status
	}
	if len(args) != 3 {
		return false, 0
	}
	var err error
	switch args[1] {
	case "tunnel": // the words that a lab starts it with
		err = tunnel.ServeArg(context.Background(), args[2], os.Stdin)
	case countVerb:
		var p plan
		if err = json.Unmarshal([]byte(args[2]), &p); err == nil {
			err = carryOut(context.Background(), p, stdout)
		}
	default:
		return false, 0
	}
	if err != nil {
		fmt.Fprintln(stderr, err)
		return true, 1
	}
	return true, 0
}

// counted is all that was said of a plan.
type counted struct {
	kernel  string
	loops   []loop
	counts  []count
	probed  []probed
	reading *ruleReading
}

// countInVM carries a plan out in the virtual machine. progress gets each
// count as it comes.
func countInVM(ctx context.Context, r *exec.Runner, p plan, progress io.Writer) (counted, error) {
	cache, err := vm.CacheDir()
	if err != nil {
		return counted{}, err
	}
	fetch := vm.FetchKernel
	if p.Backports {
		fetch = vm.FetchBackports
	}
	kernel, err := fetch(ctx, r, cache)
	if err != nil {
		return counted{}, err
	}
	self, err := os.Executable()
	if err != nil {
		return counted{}, err
	}
	p.Alone = true
	args, err := json.Marshal(p)
	if err != nil {
		return counted{}, err
	}
	m := vm.Machine{Runner: r, Kernel: kernel, CPUs: 1, MemoryMiB: 2048, CountInstructions: true}
	if len(p.Agents) > 0 {
		m.MemoryMiB = 8192 // all that a Kubernetes writes is in memory too
	}
	c := collector{progress: progress}
	err = m.Run(ctx, vm.Program{Path: self, Args: []string{countVerb, string(args)}}, &c)
	c.got.kernel = kernel.Version
	return c.got, errors.Join(err, c.err())
}

// countHere carries a plan out on this machine's own kernel, where a nanosecond
// is one.
func countHere(ctx context.Context, p plan, progress io.Writer) (counted, error) {
	c := collector{progress: progress}
	err := carryOut(ctx, p, &c)
	return c.got, errors.Join(err, c.err())
}

// collector reads lines as they are written.
type collector struct {
	progress io.Writer
	got      counted
	rest     bytes.Buffer
	unread   bytes.Buffer // what was no JSON
}

func (c *collector) Write(b []byte) (int, error) {
	c.rest.Write(b)
	for {
		end := bytes.IndexByte(c.rest.Bytes(), '\n')
		if end < 0 {
			return len(b), nil
		}
		text := c.rest.Next(end + 1)
		var l line
		if err := json.Unmarshal(text, &l); err != nil {
			c.unread.Write(text)
			continue
		}
		switch {
		case l.Loop != nil:
			c.got.loops = append(c.got.loops, *l.Loop)
		case l.Count != nil:
			c.got.counts = append(c.got.counts, *l.Count)
			fmt.Fprintln(c.progress, l.Count)
		case l.Reading != nil:
			c.got.reading = l.Reading
		case l.Probed != nil:
			c.got.probed = append(c.got.probed, *l.Probed)
			fmt.Fprintf(c.progress, "%+v\n", *l.Probed)
		}
	}
}

func (c *collector) err() error {
	c.unread.Write(c.rest.Bytes())
	if c.unread.Len() == 0 {
		return nil
	}
	return fmt.Errorf("it also said:\n%s", c.unread.Bytes())
}

// String is a count in a line.
func (c count) String() string {
	name := subject{c.Network, c.Nodes, c.Rules, c.Services}.String()
	if c.Failed != "" {
		return name + ": " + c.Failed
	}
	xs := c.perPacket()
	return fmt.Sprintf("%s, %s %s: %s (CV %.2f %%)", name, c.Traffic.Workload, c.Traffic.Placement, meanOf(xs), 100*variation(xs))
}

func (c count) perPacket() []float64 {
	var xs []float64
	for _, s := range c.Samples {
		xs = append(xs, s.perPacket())
	}
	return xs
}
