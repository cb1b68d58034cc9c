package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/paper"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/report/reproduction"
	"github.com/cnibench/cnibench/internal/report/screen"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/scratch"
	"github.com/cnibench/cnibench/papers"
)

// reproduceFlags are the flags of reproduce: those of run, and its own.
type reproduceFlags struct {
	run    runFlags
	budget time.Duration
	quick  bool
	from   []string
	papers string
}

const (
	// The files that reproduce writes next to the records.
	reproductionHTML     = "reproduction.html"
	reproductionMarkdown = "reproduction.md"
	// quickSuffix follows a paper's id in the name of campaigns that earlier versions
	// made of a part of it.
	quickSuffix = "-quick"
	// quickBudget is what --quick stands for, and leastBudget what a block needs.
	quickBudget = 10 * time.Minute
	leastBudget = 10 * time.Second
)

func reproduceCommand(stdout, stderr io.Writer) *cobra.Command {
	var f reproduceFlags
	cmd := &cobra.Command{
		Use:   "reproduce PAPER",
		Short: "repeat a published study and judge its claims",
		Long: `reproduce runs the campaign of a published study. It shows each table and figure next
to the measured values, and gives each claim a verdict: reproduced, reproduced in part
(all that could be measured here shows it), contradicted, undecided (with the number of
blocks that would decide it), not measured (the time budget left it out) or not
measurable here (with the reason).

"cnibench list papers" lists the studies. Before it starts, reproduce lists the claims
that this testbed can decide. With --for, it uses short samples, and measures the cells
of as many claims as fit into that time. It stops measuring cells whose claims are decided.
--dry-run prints the plan and the time. --from measures nothing: it compares the
records of any campaign with the study.

Some studies make claims about the networks' own agents, which a lab does not run.
--testbed kubernetes then measures these claims alone, on the clusters that the study's
kubernetes.yaml names. To judge all claims together, give --from twice: the records of
the lab, and those of the clusters.`,
		Example: `  cnibench reproduce volpert2022 --for 10m
  cnibench reproduce spiderpool-v0.8 --dry-run
  cnibench reproduce lim2020 --from results/lim2020-1`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := loadPaper(args[0], f.papers)
			if err != nil {
				return err
			}
			if err := f.check(cmd.Flags()); err != nil {
				return err
			}
			if len(f.from) > 0 {
				return f.show(p, f.from, f.run.out, stdout, stderr)
			}
			return f.measure(cmd.Context(), p, stdout, stderr)
		},
	}
	flags := cmd.Flags()
	f.run.add(flags, []string{formatTerminal, formatJSON, formatYAML, "html", "markdown"})
	flags.DurationVar(&f.budget, "for", 0, "decide as many claims as this time allows, such as 10m (default: all claims, for the time in the study's campaign)")
	flags.BoolVar(&f.quick, "quick", false, "deprecated: the same as --for 10m")
	flags.StringArrayVar(&f.from, "from", nil, "measure nothing: compare the records in the result directory `DIR` with the study; a second --from adds those of a Kubernetes; --out writes the reports to a directory")
	flags.StringVar(&f.papers, "papers", "", "folder of papers to use instead of the built-in ones")
	for _, name := range []string{"quick", "null-test"} {
		flags.Lookup(name).Hidden = true
	}
	return cmd
}

// check refuses flags that contradict each other.
func (f *reproduceFlags) check(flags *pflag.FlagSet) error {
	if err := f.run.check(flags); err != nil {
		return err
	}
	if f.quick && f.budget == 0 {
		f.budget = quickBudget
	}
	switch {
	case f.run.nullTest:
		return usageError{errors.New("--null-test is for cnibench run: a study makes no claim about a network compared with itself")}
	case f.budget != 0 && f.budget < leastBudget:
		return usageError{fmt.Errorf("--for %s is too short to measure anything: give at least %s", f.budget, leastBudget)}
	case len(f.from) == 0:
		return nil
	}
	for _, name := range []string{"for", "quick", "dry-run", "resume", "live", "testbed", "seed", "allow-host-tuning"} {
		if flags.Changed(name) {
			return usageError{fmt.Errorf("--from measures nothing: leave --%s out", name)}
		}
	}
	return nil
}

// paperFolder is the folder of papers that is asked for.
func paperFolder(dir string) fs.FS {
	if dir == "" {
		return papers.FS
	}
	return os.DirFS(dir)
}

func loadPaper(id, dir string) (paper.Paper, error) {
	p, err := paper.Load(paperFolder(dir), id, PaperKnown())
	if err != nil {
		return p, usageError{err}
	}
	return p, nil
}

// measure runs the paper's campaign and shows what came out.
func (f reproduceFlags) measure(ctx context.Context, p paper.Paper, stdout, stderr io.Writer) error {
	if f.quick {
		fmt.Fprintln(stderr, "note: --quick is deprecated: use --for 10m")
	}
	all, name := p, paper.CampaignFile
	if part, ok := p.OfAgents(); ok && f.run.testbed == campaign.Kubernetes {
		p, name = part, paper.KubernetesFile
	}
	text := p.Campaign
	if f.budget > 0 {
		var err error
		if text, err = budgetCampaign(p, f.budget); err != nil {
			return err
		}
	}
	c, err := campaign.Parse(path.Join(p.ID, name), text, known())
	if err != nil {
		return usageError{err}
	}
	if f.run.testbed != "" {
		if err := oneOf("testbed", f.run.testbed, known().Testbeds); err != nil {
			return err
		}
		c.Testbed = f.run.testbed
	}
	var networks []listed
	var refused func(result.Cell) string
	if c.Testbed == campaign.Lab {
		networks = listNetworks(ctx)
		refused = notOfStudies(networks, c, f.run.allowTuning)
	}
	lab := sync.OnceValue(func() paper.Testbed { return prospects(c, networks, refused, f.run.allowTuning) })
	rule, from, spending := openClaims(p, c), c.Sampling.MinBlocks, (*paper.Budget)(nil)
	if f.budget > 0 && c.Testbed == campaign.Lab {
		spending = p.Budget(time.Duration(c.Sampling.MaxSeconds*float64(time.Second)), lab(), analysisOptions(c, result.Environment{}))
		rule, from = spending.Done, 0
	}
	cells, err := f.cells(p, c, lab, spending, stderr)
	if err != nil {
		return err
	}
	if f.run.dryRun && c.Testbed == campaign.Lab {
		cells = measurable(cells, lab(), stderr)
	}
	run := f.run
	run.study = &study{argv: f.again(p), refused: refused, open: rule, openFrom: from, onlyOpen: spending != nil, show: func(dir string) error { return f.show(all, []string{dir}, dir, stdout, stderr) }}
	if c.Testbed != campaign.Kubernetes || p.AgentsOnly() { // else what is found there names the cells
		run.study.choose(c.Testbed, cells)
	}
	dir, err := scratch.Make(paperScratch)
	if err != nil {
		return err
	}
	defer dir.Close()
	file := filepath.Join(dir.Name(), c.Name+".yaml")
	if err = os.WriteFile(file, text, 0o600); err == nil {
		err = runCampaign(ctx, file, run, strings.NewReader(""), stdout, stderr)
	}
	return errors.Join(err, os.RemoveAll(dir.Name()))
}

// cells are those that are measured: of a run that goes on, those of its plan. lab is what is
// known of the testbed lab.
func (f reproduceFlags) cells(p paper.Paper, c campaign.Campaign, lab func() paper.Testbed, spending *paper.Budget, stderr io.Writer) ([]result.Cell, error) {
	if f.run.resume {
		before, err := plan.Load(filepath.Join(f.run.out, result.PlanFile))
		if err == nil {
			return before.Cells, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, usageError{err}
		}
	}
	if p.AgentsOnly() {
		announceAgents(p, stderr)
		return p.Used, nil
	}
	if c.Testbed == campaign.Hosts || c.Testbed == campaign.Kubernetes {
		fmt.Fprintf(stderr, "which claims these machines can decide is found out on them; all %d cells of %s are tried\n", len(p.Used), p.ID)
		return p.Used, nil
	}
	announceClaims(p, lab(), stderr)
	if spending != nil {
		return f.withinBudget(p, lab(), spending, stderr)
	}
	return p.Used, nil
}

// measurable leaves out what a lab only records the reason of, which takes no time.
func measurable(cells []result.Cell, lab paper.Testbed, stderr io.Writer) []result.Cell {
	can := slices.DeleteFunc(slices.Clone(cells), func(c result.Cell) bool { return lab.Refuses(c) != "" })
	if n := len(cells) - len(can); n > 0 {
		fmt.Fprintf(stderr, "cells that cannot be measured here, in addition: %d (they are recorded with the reason, which takes no time)\n", n)
	}
	return can
}

// paperScratch names the folders that a publication's campaign is written to, where run
// can read it.
const paperScratch = "cnb-paper-*"

// again is the command that resumes an interrupted run, without --resume and --out.
func (f reproduceFlags) again(p paper.Paper) []string {
	argv := []string{"cnibench", "reproduce", p.ID}
	if f.budget > 0 {
		argv = append(argv, "--for", shortDuration(f.budget))
	}
	if f.run.testbed != "" {
		argv = append(argv, "--testbed", f.run.testbed)
	}
	if f.papers != "" {
		argv = append(argv, "--papers", f.papers)
	}
	return argv
}

func writeReproduction(dir string, r paper.Reproduction, stderr io.Writer) error {
	for file, format := range map[string]string{reproductionHTML: "html", reproductionMarkdown: "markdown"} {
		var buf bytes.Buffer
		if err := reproduction.Write(&buf, format, r, screen.Options{}); err != nil {
			return err
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if err := result.WriteFile(filepath.Join(dir, file), buf.Bytes()); err != nil {
			return err
		}
	}
	fmt.Fprintf(stderr, "report: %s\n", filepath.Join(dir, reproductionHTML))
	return nil
}

// listPapers are the papers that are built in.
func listPapers() ([]listed, error) {
	names, err := paper.List(papers.FS)
	if err != nil {
		return nil, err
	}
	rows := []listed{}
	for _, id := range names {
		p, err := paper.Load(papers.FS, id, PaperKnown())
		if err != nil {
			return nil, err
		}
		rows = append(rows, listed{Name: id, Summary: fmt.Sprintf("%s (%d): %d tables and figures, %d claims", p.Title, p.Year, len(p.Tables), len(p.Claims))})
	}
	return rows, nil
}
