package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/flame"
	"github.com/cnibench/cnibench/internal/report/explain"
	"github.com/cnibench/cnibench/internal/report/format"
	"github.com/cnibench/cnibench/internal/result"
)

func explainCommand(stdout io.Writer) *cobra.Command {
	var out outputFlags
	var pprofFile, foldedFile string
	cmd := &cobra.Command{
		Use:   "explain DIR",
		Short: "show where the cost of each network arises, and what would change it",
		Long: `explain shows for each network of a result directory what it costs compared with the
bare network, which parts of the kernel spend that time, and what the other choices
of the campaign cost. It measures and changes nothing.

The parts of the kernel are known if the campaign has the probe stacks (the default)
and the machine allows sampling: see cnibench doctor.

If the campaign measured the steps up to a network (ladders: [flannel/vxlan]), explain
shows what each step adds, and where steps and stacks disagree.

If the campaign measured tcp_rr with three or more message sizes, explain fits Hockney's
model to them: what a message costs, and what each byte adds. It compares operations of
many ranks with what that predicts (docs/hpc.md).

With --pprof and --folded it writes the sampled stacks themselves as well, for
go tool pprof and for programs that draw flame graphs.`,
		Example: `  cnibench explain results/latest
  cnibench explain results/latest -o json
  cnibench explain results/latest --pprof stacks.pb.gz --folded stacks.folded`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, _, err := out.resolve(cmd.Flags())
			if err != nil {
				return err
			}
			in, err := readInput(args[0], format.Needs{})
			if err != nil {
				return usageError{err}
			}
			if err := exportStacks(args[0], pprofFile, foldedFile); err != nil {
				return err
			}
			return inFormat(stdout, name, func(w io.Writer, name string) error {
				if name == formatJSON {
					return explain.WriteJSON(w, in)
				}
				return explain.Write(w, in, reportOptions(stdout))
			})
		},
	}
	out.add(cmd.Flags(), plainFormats())
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
