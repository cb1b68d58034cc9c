package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/flame"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/result"
)

func explainCommand(stdout io.Writer) *cobra.Command {
	var asJSON bool
	var pprofFile, foldedFile string
	cmd := &cobra.Command{
		Use:   "explain DIR",
		Short: "say where the cost of each network goes, and what would change it",
		Long: `explain says for each network of a result directory what it costs against the
bare network, in which parts of the kernel that time goes, and what other choices
that the campaign measured came to. It measures and changes nothing.

Where the time goes is known where the campaign's probes have stacks (as they do
by default) and the machine lets them be sampled: see cnibench doctor.

Where the campaign measured the networks on the way up to one (ladders: [flannel/vxlan]),
it says what each step adds, and where that and the stacks disagree.

With --pprof and --folded it writes the sampled stacks themselves as well, for
go tool pprof and for programs that draw flame graphs.`,
		Example: `  cnibench explain results/quickstart
  cnibench explain results/quickstart --json
  cnibench explain results/quickstart --pprof stacks.pb.gz --folded stacks.folded`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			in, err := readInput(args[0], wanted{})
			if err != nil {
				return usageError{err}
			}
			if err := exportStacks(args[0], pprofFile, foldedFile); err != nil {
				return err
			}
			if asJSON {
				return report.ExplainJSON(stdout, in)
			}
			return report.Explain(stdout, in, reportOptions(stdout))
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().StringVar(&pprofFile, "pprof", "", "write the stacks to this file as a pprof profile")
	cmd.Flags().StringVar(&foldedFile, "folded", "", "write the stacks to this file as folded lines")
	return cmd
}

// exportStacks writes the stacks of all measured samples to the files named.
func exportStacks(dir, pprofFile, foldedFile string) error {
	if pprofFile == "" && foldedFile == "" {
		return nil
	}
	p := flame.New()
	var errs []error
	_, err := result.Each(dir, func(s *result.Sample) {
		if s.Status == result.StatusOK {
			errs = append(errs, result.EachStack(dir, s, func(stack result.Stack) { p.Add(s.Cell, stack) }))
		}
	})
	if err := errors.Join(append(errs, err)...); err != nil {
		return err
	}
	if p.Empty() {
		return fmt.Errorf("%s has no stacks: name stacks in the campaign's probes, and see what cnibench doctor says of kernel stacks", dir)
	}
	for file, write := range map[string]func(io.Writer) error{pprofFile: p.WritePprof, foldedFile: p.WriteFolded} {
		if file == "" {
			continue
		}
		var b bytes.Buffer
		if err := write(&b); err != nil {
			return err
		}
		if err := result.WriteFile(file, b.Bytes()); err != nil {
			return err
		}
	}
	return nil
}
