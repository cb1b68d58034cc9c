package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
)

func recommendCommand(stdout io.Writer) *cobra.Command {
	var goal string
	var q stat.Question
	var services, policies int
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "recommend DIR",
		Short: "recommend a network and profile, with the certainty and what would settle it",
		Long: `recommend answers from the records of a campaign which network, with which
profile, to take. It names the networks that are tied with it, what it costs at most
to be wrong, and the measurement that would settle it. It answers "undecided" unless
all others are worse.

bandwidth is throughput, latency the mean round trip, cpu the cost of the same work;
balanced takes the network whose largest loss, compared with the best of each of these,
is smallest. There are no weights. The rules are in docs/recommend.md.`,
		Example: `  cnibench recommend results/latest --for bandwidth
  cnibench recommend results/latest --for latency --message-bytes 64 --protocol tcp`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if goal == "" {
				return usageError{errors.New("a goal is needed: --for " + strings.Join(goalNames(), "|"))}
			}
			if err := oneOf("for", goal, goalNames()); err != nil {
				return err
			}
			if q.Protocol != "" {
				if err := oneOf("protocol", q.Protocol, []string{"tcp", "udp"}); err != nil {
					return err
				}
			}
			if q.MessageBytes < 0 || cmd.Flags().Changed("message-bytes") && q.MessageBytes == 0 {
				return usageError{errors.New("--message-bytes: want at least 1")}
			}
			if cmd.Flags().Changed("services") {
				q.Services = &services
			}
			if cmd.Flags().Changed("policies") {
				q.Policies = &policies
			}
			q.Goal = stat.Goal(goal)
			rec, env, err := recommendDir(args[0], q)
			if err != nil {
				return usageError{err}
			}
			return report.WriteRecommendation(stdout, rec, env, asJSON, reportOptions(stdout))
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&goal, "for", "", strings.Join(goalNames(), ", "))
	flags.IntVar(&q.MessageBytes, "message-bytes", 0, "only traffic with messages of this size (default: all)")
	flags.StringVar(&q.Protocol, "protocol", "", "only traffic over tcp or udp (default: both)")
	flags.IntVar(&services, "services", 0, "only with this many services programmed (default: all)")
	flags.IntVar(&policies, "policies", 0, "only with this many policies (default: all)")
	flags.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func goalNames() []string {
	var out []string
	for _, g := range stat.Goals() {
		out = append(out, string(g))
	}
	return out
}

// recommendDir answers a question from a result directory.
func recommendDir(dir string, q stat.Question) (stat.Recommendation, *result.Environment, error) {
	rec, c, err := describe(dir)
	if err != nil {
		return stat.Recommendation{}, nil, err
	}
	var samples []result.Sample
	if _, err := result.Each(dir, func(s *result.Sample) { samples = append(samples, *s) }); err != nil {
		return stat.Recommendation{}, nil, err
	}
	out, err := stat.Recommend(samples, analysisOptions(c, environmentOf(rec)), q)
	if err != nil {
		return out, nil, fmt.Errorf("%s: %w", dir, err)
	}
	return out, rec.Environment, nil
}
