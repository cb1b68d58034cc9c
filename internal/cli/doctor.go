//go:build linux

package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/doctor"
)

func doctorCommand(stdout io.Writer) *cobra.Command {
	var out outputFlags
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "show what this machine can measure, and how to fix what is missing",
		Long: `doctor checks this machine: rights, kernel features, tools, CNI plugins,
performance counters. It starts with the verdict and changes nothing. Its exit
status is 0 if the quickstart can run on this machine.`,
		Example: "  cnibench doctor\n  cnibench doctor -o json",
		Args:    usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			format, _, err := out.resolve(cmd.Flags())
			if err != nil {
				return err
			}
			checks := doctor.Run(cmd.Context(), doctor.Options{})
			if err := inFormat(stdout, format, func(w io.Writer, format string) error {
				if format == formatJSON {
					return doctor.WriteJSON(w, checks)
				}
				return doctor.WriteText(w, checks, terminalOf(stdout).color)
			}); err != nil {
				return err
			}
			if err := doctor.CanRunLab(checks); err != nil {
				return fmt.Errorf("the lab cannot run on this machine: %w", err)
			}
			return nil
		},
	}
	out.add(cmd.Flags(), plainFormats())
	return cmd
}
