package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/report/recommend"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat/job"
	"github.com/cnibench/cnibench/internal/stat/rank"
)

// questionFlags are those of recommend that say what is asked.
type questionFlags struct {
	rank.Question
	goal, profile      string
	services, policies int
}

// question is what the flags ask.
func (f *questionFlags) question(flags *pflag.FlagSet) (rank.Question, error) {
	q := f.Question
	if f.goal == "" {
		return q, usageError{errors.New("a goal is needed: --for " + strings.Join(goalNames(), "|"))}
	}
	if err := oneOf("for", f.goal, goalNames()); err != nil {
		return q, err
	}
	if q.Protocol != "" {
		if err := oneOf("protocol", q.Protocol, []string{"tcp", "udp"}); err != nil {
			return q, err
		}
	}
	if q.MessageBytes < 0 || flags.Changed("message-bytes") && q.MessageBytes == 0 {
		return q, usageError{errors.New("--message-bytes: want at least 1")}
	}
	if flags.Changed("services") {
		q.Services = &f.services
	}
	if flags.Changed("policies") {
		q.Policies = &f.policies
	}
	q.Goal = rank.Goal(f.goal)
	var err error
	q.Job, err = f.job(flags)
	return q, err
}

// job reads the profile of the job that the goal hpc is about.
func (f *questionFlags) job(flags *pflag.FlagSet) (*job.Profile, error) {
	if rank.Goal(f.goal) != rank.HPC {
		if f.profile != "" {
			return nil, usageError{errors.New("--profile is for --for hpc")}
		}
		return nil, nil
	}
	if f.profile == "" {
		return nil, usageError{errors.New("--for hpc requires the job's mix of operations: --profile JOB.yaml (examples/jobs/spectral.yaml is one)")}
	}
	for _, name := range []string{"message-bytes", "protocol", "services", "policies"} {
		if flags.Changed(name) {
			return nil, usageError{fmt.Errorf("--%s is not for --for hpc: the profile has the job's traffic", name)}
		}
	}
	p, err := campaign.LoadJobProfile(f.profile, known())
	if err != nil {
		return nil, usageError{err}
	}
	work := job.Profile{Name: p.Name, Ranks: p.Ranks, RanksPerNode: p.RanksPerNode, ComputeSeconds: p.ComputeSeconds}
	for _, o := range p.Operations {
		work.Operations = append(work.Operations, job.Operation{Operation: o.Operation, Algorithm: o.Algorithm, MessageBytes: o.MessageBytes, Count: float64(o.Count)})
	}
	return &work, nil
}

func recommendCommand(stdout io.Writer) *cobra.Command {
	var f questionFlags
	var out outputFlags
	cmd := &cobra.Command{
		Use:   "recommend DIR",
		Short: "recommend a network and profile for a goal, and how certain that is",
		Long: `recommend reads the records of a campaign and names the network to take, and the
profile. It also names the networks that are tied with it, what it costs at most to be
wrong, and the measurement that would settle it. It answers "undecided" unless all
others are worse.

The goals:

    bandwidth  throughput
    latency    the mean round trip
    cpu        the CPU cost of the same work
    balanced   the network whose largest loss, compared with the best of each of the
               three, is smallest; there are no weights
    hpc        the time of a parallel job. The file that --profile names has its mix of
               operations. Their times are measured, or predicted from tcp_rr

The rules are in docs/recommend.md.`,
		Example: `  cnibench recommend results/latest --for bandwidth
  cnibench recommend results/latest --for latency --message-bytes 64 --protocol tcp
  cnibench recommend results/latest --for hpc --profile examples/jobs/spectral.yaml`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			format, _, err := out.resolve(cmd.Flags())
			if err != nil {
				return err
			}
			q, err := f.question(cmd.Flags())
			if err != nil {
				return err
			}
			rec, env, err := recommendDir(args[0], q)
			if err != nil {
				return usageError{err}
			}
			return inFormat(stdout, format, func(w io.Writer, format string) error {
				return recommend.Write(w, rec, env, format == formatJSON, reportOptions(stdout))
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.goal, "for", "", strings.Join(goalNames(), ", "))
	flags.IntVar(&f.MessageBytes, "message-bytes", 0, "only traffic with messages of this size (default: all)")
	flags.StringVar(&f.Protocol, "protocol", "", "only traffic over tcp or udp (default: both)")
	flags.IntVar(&f.services, "services", 0, "only with this many services programmed (default: all)")
	flags.StringVar(&f.profile, "profile", "", "with --for hpc: the file with the job's operations")
	flags.IntVar(&f.policies, "policies", 0, "only with this many policies (default: all)")
	out.add(flags, plainFormats())
	return cmd
}

func goalNames() []string {
	var out []string
	for _, g := range rank.Goals() {
		out = append(out, string(g))
	}
	return out
}

// recommendDir answers a question from a result directory.
func recommendDir(dir string, q rank.Question) (rank.Recommendation, *result.Environment, error) {
	rec, c, err := describe(dir)
	if err != nil {
		return rank.Recommendation{}, nil, err
	}
	var samples []result.Sample
	if _, err := result.Each(dir, func(s *result.Sample) { samples = append(samples, *s) }); err != nil {
		return rank.Recommendation{}, nil, err
	}
	out, err := rank.Recommend(samples, analysisOptions(c, environmentOf(rec)), q)
	if err != nil {
		return out, nil, fmt.Errorf("%s: %w", dir, err)
	}
	return out, rec.Environment, nil
}
