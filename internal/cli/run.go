package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cnibench/cnibench/internal/bench"
	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/format"
	"github.com/cnibench/cnibench/internal/report/screen"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed"
)

// runFlags are the flags of run.
type runFlags struct {
	testbed string
	hosts   hostFlags
	cluster clusterFlags
	image   string
	out     string
	resume  bool
	// elsewhere lets a run be resumed in another environment.
	elsewhere bool
	seed      uint64
	nullTest  bool
	live      bool
	dryRun    bool
	// file is the campaign file of -f.
	file string
	// output are the flags of the format, format what they ask for.
	output  outputFlags
	format  string
	cniPath []string
	// builtin replaces a campaign file; text is then the campaign, and that of a
	// file which --for changes.
	builtin builtinFlags
	text    []byte
	// yes starts a built-in campaign on a cluster without asking.
	yes bool
	// allowPrivileged lets pods have all rights on their nodes.
	allowPrivileged bool
	// allowTuning lets a lab change settings of the whole machine.
	allowTuning bool
	// study is what reproduce changes of a run; nil: nothing.
	study *study
}

// runLong is the help of run.
const runLong = `run measures every cell of a campaign in seeded random blocks, records each
sample at once, and stops when every figure has reached its target or the time
budget is spent. results/latest then points to the result.

Without a file it measures the quickstart: five pod networks in the lab, on this
machine. With --context NAME or --testbed kubernetes it measures the network of a
cluster, after it has stated what it will create there; --yes starts without asking.
cnibench init writes the same campaigns as YAML.

To resume an interrupted or killed run, use --resume --out DIR.

With --live you can read the growing report in a browser on this machine, at the
address that is printed (from elsewhere: ssh -L). A browser on the machine that
measures is a load on it.`

func runCommand(stdout, stderr io.Writer) *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run [CAMPAIGN.yaml]",
		Short: "measure what each network costs, and report it",
		Long:  runLong,
		Example: `  cnibench run
  cnibench run --network bridge,flannel/vxlan --workload tcp_rr --for 2m
  cnibench run --context admin@staging --yes
  cnibench run examples/quickstart.yaml --dry-run
  cnibench run examples/quickstart.yaml --resume --out results/latest`,
		Args: usageArgs(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(cmd.Flags()); err != nil {
				return err
			}
			path, err := f.campaignText(args, cmd.InOrStdin())
			if err != nil {
				return err
			}
			return runCampaign(cmd.Context(), path, f, cmd.InOrStdin(), stdout, stderr)
		},
	}
	f.add(cmd.Flags(), []string{formatTerminal, formatWide, formatJSON, formatYAML, "markdown"})
	f.builtin.add(cmd.Flags())
	cmd.Flags().StringVarP(&f.file, "file", "f", "", "the campaign file, in place of the argument; - is standard input")
	cmd.Flags().BoolVar(&f.yes, "yes", false, "start a built-in campaign on a cluster without asking")
	return cmd
}

// check refuses flags that contradict each other, and draws a seed where none is given.
func (f *runFlags) check(flags *pflag.FlagSet) error {
	seeded := flags.Changed("seed")
	var err error
	if f.format, _, err = f.output.resolve(flags); err != nil {
		return err
	}
	if f.dryRun && !slices.Contains(plainFormats(), f.format) {
		return usageError{fmt.Errorf("-o %s is for a result and --dry-run prints a plan: want one of %s", f.format, strings.Join(plainFormats(), ", "))}
	}
	if f.resume && f.out == "" {
		return usageError{errors.New("--resume needs --out DIR: the result directory to resume")}
	}
	if f.resume && seeded {
		return usageError{errors.New("--seed cannot be changed by --resume: the order is in the directory's plan.json")}
	}
	if f.elsewhere && !f.resume {
		return usageError{errors.New("--allow-changed-environment is for --resume: a new run has no environment yet")}
	}
	if f.live && f.dryRun {
		return usageError{errors.New("--live shows a measurement and --dry-run measures nothing: use one of them")}
	}
	if !seeded {
		f.seed = uint64(rand.Uint32())
	}
	return nil
}

// add defines the flags of run.
func (f *runFlags) add(flags *pflag.FlagSet, formats []string) {
	f.output.add(flags, formats)
	flags.StringVar(&f.testbed, "testbed", "", "where to run, in place of the campaign's: lab, hosts or kubernetes")
	f.hosts.add(flags)
	f.cluster.add(flags)
	flags.StringVar(&f.image, "image", "", "the image of cnibench that pods run, for testbeds kubernetes and hosts (default: the one of this version; see cnibench image)")
	flags.BoolVar(&f.allowPrivileged, "allow-privileged", false, "run privileged pods, which the probes counters and stacks need on a cluster")
	flags.BoolVar(&f.allowTuning, "allow-host-tuning", false, "let profiles change settings of the whole machine under a lab, with Ansible and tuned, and restore them; otherwise they change its namespaces only")
	flags.StringVar(&f.out, "out", "", "result directory (default results/NAME-DATE-TIME)")
	flags.BoolVar(&f.resume, "resume", false, "resume the run in --out; nothing is measured twice")
	flags.BoolVar(&f.elsewhere, "allow-changed-environment", false, "with --resume: resume although cnibench, kernel, processors or cluster differ from those of the recorded samples; the report warns of it")
	flags.Uint64Var(&f.seed, "seed", 0, "seed of the random order (default: a random one, recorded)")
	flags.BoolVar(&f.nullTest, "null-test", false, "measure each network twice and compare it with itself: the difference is this machine's noise")
	flags.BoolVar(&f.live, "live", false, "serve the growing report on loopback during the run")
	flags.BoolVar(&f.dryRun, "dry-run", false, "print the plan, the number of samples, the expected time and the tools' command lines, without measuring")
	flags.StringSliceVar(&f.cniPath, "cni-path", nil, "folders to search for CNI plugins, before the usual ones")
}

func runCampaign(ctx context.Context, path string, f runFlags, in io.Reader, stdout, stderr io.Writer) error {
	c, err := loadCampaign(path, f.text, f.testbed, stderr)
	if err != nil {
		return err
	}
	if f.resume && uncontrolled(f.out) {
		c = c.Uncontrolled()
	}
	if c.Testbed == campaign.Hosts && f.allowTuning {
		return usageError{errors.New("--allow-host-tuning requires testbed lab; hosts of an inventory are tuned without it")}
	}
	if c.Testbed != campaign.Hosts && f.hosts.inventory != "" {
		return usageError{fmt.Errorf("--inventory requires testbed hosts; this campaign uses %s", c.Testbed)}
	}
	if c.Testbed != campaign.Kubernetes && f.cluster != (clusterFlags{}) {
		return usageError{fmt.Errorf("--kubeconfig, --context and --namespace require testbed kubernetes; this campaign uses %s", c.Testbed)}
	}
	if f.image != "" && c.Testbed == "lab" {
		return usageError{errors.New("--image requires testbed kubernetes or hosts; this campaign uses lab")}
	}
	if f.allowPrivileged && c.Testbed == "lab" {
		return usageError{errors.New("--allow-privileged requires testbed kubernetes or hosts; this campaign uses lab")}
	}
	if c.Testbed == campaign.Kubernetes {
		if c, err = nameClusters(path, c, f); err != nil {
			return err
		}
	}
	if f.dryRun {
		c = namedPairs(c)
		var tuning time.Duration
		if c.Testbed == campaign.Hosts || f.allowTuning {
			tuning = tuneTime
		}
		return dryRun(stdout, c, newPlan(c, f), tuning, f.format)
	}
	for _, note := range c.Notes() {
		fmt.Fprintln(stderr, "note: "+note)
	}
	if c.Testbed == campaign.Kubernetes && path == builtinName {
		if err := announce(ctx, c, f, in, stderr); err != nil {
			return err
		}
	}
	if c.Testbed == campaign.Kubernetes {
		return runOnClusters(ctx, path, c, f, stdout, stderr)
	}
	runner := exec.NewRunner()
	defer runner.Close()
	if c.Testbed == campaign.Hosts {
		return runOnHosts(ctx, runner, path, c, f, stdout, stderr)
	}
	on, err := openLab(ctx, runner, c, f, stderr)
	if err != nil {
		return err
	}
	_, err = runOn(ctx, on, path, c, f, stdout, stderr)
	// Without a run, nothing else releases the machine.
	return errors.Join(err, on.Close(ctx))
}

// runOn measures on a testbed, shows the result and gives its directory.
func runOn(ctx context.Context, on testbed.Testbed, path string, c campaign.Campaign, f runFlags, stdout, stderr io.Writer) (string, error) {
	into, err := openResults(path, c, f, stderr)
	if err != nil {
		return "", err
	}
	sum, err := measure(ctx, c, on, into, f, stderr)
	if lost := (*testbed.LostError)(nil); f.hosts.keepGoing && sum.Stopped != "" && errors.As(err, &lost) {
		// All is measured that could be; the summary lists what is left to do on the host.
		return into.dir.Path, errors.Join(showRun(into.dir.Path, sum, f.format, stdout, stderr), into.dir.Close(), err)
	}
	if other := (*bench.ElsewhereError)(nil); errors.As(err, &other) {
		return "", errors.Join(usageError{fmt.Errorf("%s: cannot resume: %w\nresume it there, name a new directory with --out, or add --allow-changed-environment", f.out, err)}, into.dir.Close())
	}
	if err != nil {
		return "", interrupted(err, path, into.dir, sum.Records, f, stderr)
	}
	defer into.dir.Close()
	if f.study != nil {
		fmt.Fprintf(stderr, "stopped after %d blocks: %s\n", sum.Blocks, sum.Stopped)
		return into.dir.Path, f.study.show(into.dir.Path)
	}
	return into.dir.Path, showRun(into.dir.Path, sum, f.format, stdout, stderr)
}

func measure(ctx context.Context, c campaign.Campaign, on testbed.Testbed, into results, f runFlags, stderr io.Writer) (sum bench.Summary, err error) {
	seen := newProgress(stderr, time.Duration(c.Sampling.MaxSeconds*float64(time.Second)))
	defer seen.close()
	o := bench.Options{
		Sampling: c.Sampling, Plan: into.plan, Testbed: on, Store: into.dir, Observer: seen,
		Recorded: into.recorded, Before: into.environment, Version: version(), StoppingRule: newStoppingRule(c), WithoutProbes: withoutProbes(c), KeepGoing: f.hosts.keepGoing, AllowElsewhere: f.elsewhere,
	}
	if f.study != nil {
		o.Refused = f.study.refused
		if f.study.open != nil {
			o.StoppingRule, o.Settled = &claimStoppingRule{from: f.study.openFrom, open: f.study.open}, "every claim that can be decided here is decided"
			o.OnlyOpen = f.study.onlyOpen
		}
	}
	if f.live {
		shown, liveErr := showLive(c.Name, into, seen)
		if liveErr != nil {
			return bench.Summary{Records: len(into.recorded)}, liveErr
		}
		defer func() { err = errors.Join(err, shown.Close()) }()
		o.Observer = shown
	}
	sum, err = bench.Run(ctx, o)
	if sum.Records > 0 {
		err = errors.Join(err, linkLatest(into.dir.Path))
	}
	return sum, err
}

// showRun writes report.html and prints the answer.
func showRun(dir string, sum bench.Summary, name string, stdout, stderr io.Writer) error {
	in, err := readInput(dir, format.NeedsOf("html"))
	if err != nil {
		return err
	}
	html := filepath.Join(dir, result.ReportFile)
	if err := writeReport(html, "html", in, screen.Options{}); err != nil {
		return err
	}
	fmt.Fprintf(stderr, "stopped after %d blocks: %s\n", sum.Blocks, sum.Stopped)
	if sum.WallSeconds > 0 {
		fmt.Fprintf(stderr, "%.0f %% of the time was spent measuring (warm-up and window, from the third block on)\n", 100*sum.MeasuringSeconds/sum.WallSeconds)
	}
	if err := printReport(stdout, name, in, reportOptions(stdout)); err != nil {
		return err
	}
	fmt.Fprintf(stderr, "report: %s\n", html)
	if lost := failedSamples(in); lost > 0 {
		fmt.Fprintf(stderr, "%d samples failed, and no retry replaced them: cnibench report %s --long lists the reasons\n", lost, dir)
		return silentError{exitSamplesFailed}
	}
	return nil
}

// failedSamples counts the failed samples that no retry replaced.
func failedSamples(in report.Input) int {
	n := 0
	for _, s := range in.Analysis.Cells {
		n += s.Failed - s.Recovered
	}
	return n
}

// planned is the JSON of --dry-run.
type planned struct {
	plan.Plan
	Samples struct {
		Least int `json:"least"`
		Most  int `json:"most"`
	} `json:"samples"`
	ExpectedSeconds struct {
		Least float64 `json:"least"`
		Most  float64 `json:"most"`
	} `json:"expected_seconds"`
	Commands []commandLines `json:"commands,omitempty"`
}

// dryRun shows the plan; tuning is what changing a profile takes.
func dryRun(w io.Writer, c campaign.Campaign, p plan.Plan, tuning time.Duration, format string) error {
	out := planned{Plan: p}
	out.Samples.Least, out.Samples.Most = p.MinBlocks*len(p.Cells), p.MaxBlocks*len(p.Cells)
	tools, err := toolTime(c, p)
	if err != nil {
		return err
	}
	least, most := p.Estimate(c.Sampling, bench.Overhead+tools, tuning)
	out.ExpectedSeconds.Least, out.ExpectedSeconds.Most = least.Seconds(), most.Seconds()
	if out.Commands, err = commands(c, p); err != nil {
		return err
	}
	return printValue(w, format, out, func(w io.Writer) error {
		writePlan(w, c, out, least, most)
		return nil
	})
}

// writePlan writes a plan for a terminal; least and most are the expected time.
func writePlan(w io.Writer, c campaign.Campaign, out planned, least, most time.Duration) {
	p := out.Plan
	fmt.Fprintf(w, "%s: %d cells, %d to %d blocks, %d to %d samples, seed %d\n",
		c.Name, len(p.Cells), p.MinBlocks, p.MaxBlocks, out.Samples.Least, out.Samples.Most, p.Seed)
	fmt.Fprintf(w, "expected time: %s to %s\n", least.Round(time.Second), most.Round(time.Second))
	if words := pairWords(c, p); words != "" {
		fmt.Fprintln(w, words)
	}
	if c.Switched() {
		fmt.Fprintln(w, "networks are switched: all blocks of a cluster come before those of the next; the time that switching takes is not known")
	}
	fmt.Fprintf(w, "\nblock 1, in its order:\n")
	for _, s := range p.Block(1, nil) {
		cell := s.Cell
		mtu := fmt.Sprintf("MTU %d", cell.MTU)
		if cell.MTU == 0 { // of a cluster, where it is found out
			mtu = "MTU as found"
		}
		round := ""
		if s.Round > 0 {
			round = fmt.Sprintf("round %d  ", s.Round)
		}
		fmt.Fprintf(w, "  %s  %s%s %s %s, %s, %s, %s: %s\n", s.ID, round, ofCluster(cell), cell.Path, cell.Placement, cell.Link, cell.Profile, mtu, cell.Traffic())
	}
	for _, l := range out.Commands {
		fmt.Fprintf(w, "\n%s\n  server: %s\n  client: %s\n", l.Cell, l.Server, l.Client)
	}
}
