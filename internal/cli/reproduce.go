package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/paper"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
	"github.com/cnibench/cnibench/papers"
)

// reproduceFlags are the flags of reproduce.
type reproduceFlags struct {
	quick   bool
	out     string
	from    string
	papers  string
	dryRun  bool
	json    bool
	cniPath []string
}

const (
	// The files that reproduce writes beside the records.
	reproductionHTML     = "reproduction.html"
	reproductionMarkdown = "reproduction.md"
	// quickSuffix follows a paper's id in the name of its quick cut's campaign.
	quickSuffix = "-quick"
)

func reproduceCommand(stdout, stderr io.Writer) *cobra.Command {
	var f reproduceFlags
	cmd := &cobra.Command{
		Use:   "reproduce PAPER",
		Short: "measure a published study again and say which of its claims hold here",
		Long: `reproduce runs the campaign of a published study, puts each of its tables and
figures beside what was measured, and says of each of its claims whether it is
reproduced, contradicted, undecided (and how many more blocks would decide it)
or not measurable here (and why).

"cnibench list papers" names the studies. Each has a quick cut, which takes at
most 10 minutes on 2 cores; --dry-run tells the time of either. With --from
nothing is measured: the records of any campaign are held against the study.`,
		Example: `  cnibench reproduce volpert2022 --quick
  cnibench reproduce spiderpool-v0.8 --dry-run
  cnibench reproduce lim2020 --from results/lim2020-1`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := loadPaper(args[0], f.papers)
			if err != nil {
				return err
			}
			if f.from != "" {
				if f.quick || f.dryRun {
					return usageError{errors.New("--from measures nothing: leave --quick and --dry-run out")}
				}
				return f.show(p, f.from, f.out, stdout, stderr)
			}
			return f.measure(cmd.Context(), p, stdout, stderr)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.quick, "quick", false, "run the quick cut: at most 10 minutes on 2 cores")
	flags.StringVar(&f.out, "out", "", "result directory (default results/NAME-DATE-TIME); with --from the folder for the reports (default: none are written)")
	flags.StringVar(&f.from, "from", "", "measure nothing: hold the records in this result directory against the study")
	flags.StringVar(&f.papers, "papers", "", "folder of papers, in place of those that are built in")
	flags.BoolVar(&f.dryRun, "dry-run", false, "print the plan, the number of samples and the expected time; measure nothing")
	flags.BoolVar(&f.json, "json", false, "print the verdicts and tables, or with --dry-run the plan, as JSON")
	flags.StringSliceVar(&f.cniPath, "cni-path", nil, "folders to look for CNI plugins in, before the usual ones")
	return cmd
}

// paperFolder is the folder of papers that is asked for.
func paperFolder(dir string) fs.FS {
	if dir == "" {
		return papers.FS
	}
	return os.DirFS(dir)
}

func loadPaper(id, dir string) (paper.Paper, error) {
	p, err := paper.Load(paperFolder(dir), id)
	if err != nil {
		return p, usageError{err}
	}
	return p, nil
}

// measure runs the paper's campaign and shows what came out.
func (f reproduceFlags) measure(ctx context.Context, p paper.Paper, stdout, stderr io.Writer) error {
	file, text := paper.CampaignFile, p.Campaign
	if f.quick {
		file, text = paper.QuickFile, p.Quick
	}
	c, err := campaign.Parse(path.Join(p.ID, file), text, known())
	if err != nil {
		return usageError{err}
	}
	run := runFlags{out: f.out, seed: uint64(rand.Uint32()), cniPath: f.cniPath}
	if f.dryRun {
		return dryRun(stdout, c, newPlan(c, run), 0, f.json)
	}
	runner := exec.NewRunner()
	defer runner.Close()
	bed, err := openLab(ctx, runner, c, run, stderr)
	if err != nil {
		return err
	}
	if run.out == "" {
		run.out = filepath.Join("results", c.Name+"-"+time.Now().Format("20060102-150405"))
	}
	into := results{plan: newPlan(c, run)}
	if into.dir, err = result.Create(run.out, text, into.plan); err != nil {
		return err
	}
	sum, err := measure(ctx, c, bed, into, runFlags{}, stderr)
	if err != nil {
		fmt.Fprintf(stderr, "then: %s\n", exec.Cmd{Argv: []string{"cnibench", "reproduce", p.ID, "--from", run.out}}.String())
		return interrupted(err, filepath.Join(run.out, result.CampaignFile), into.dir, len(sum.Samples), run, stderr)
	}
	defer into.dir.Close()
	fmt.Fprintf(stderr, "stopped after %d blocks: %s\n", sum.Blocks, sum.Stopped)
	return f.show(p, run.out, run.out, stdout, stderr)
}

// show holds recorded results against the paper, prints that and writes it into
// a folder, if there is one.
func (f reproduceFlags) show(p paper.Paper, from, into string, stdout, stderr io.Writer) error {
	r, err := recordedResults(p, from)
	if err != nil {
		return usageError{err}
	}
	out := paper.Reproduce(p, r)
	out.Dir, out.Version = from, version()
	if into != "" {
		if err := writeReproduction(into, out, stderr); err != nil {
			return err
		}
	}
	format := "terminal"
	if f.json {
		format = "json"
	}
	return report.WriteReproduction(stdout, format, out, reportOptions(stdout))
}

// recordedResults reads a result directory for claims.
func recordedResults(p paper.Paper, dir string) (*paper.Results, error) {
	rec, c, err := describe(dir)
	if err != nil {
		return nil, err
	}
	collector := stat.NewCollector(analysisOptions(c, environmentOf(rec)))
	if _, err := result.Each(dir, func(s *result.Sample) { collector.Add(s) }); err != nil {
		return nil, err
	}
	return &paper.Results{Campaign: c, Environment: rec.Environment, Analysis: collector.Analyse(), Collector: collector,
		Known: known(), Cut: c.Name == p.ID+quickSuffix}, nil
}

func writeReproduction(dir string, r paper.Reproduction, stderr io.Writer) error {
	for file, format := range map[string]string{reproductionHTML: "html", reproductionMarkdown: "markdown"} {
		var buf bytes.Buffer
		if err := report.WriteReproduction(&buf, format, r, report.Options{}); err != nil {
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
		p, err := paper.Load(papers.FS, id)
		if err != nil {
			return nil, err
		}
		rows = append(rows, listed{Name: id, Summary: fmt.Sprintf("%s (%d): %d tables and figures, %d claims", p.Title, p.Year, len(p.Tables), len(p.Claims))})
	}
	return rows, nil
}
