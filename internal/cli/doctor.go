package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/doctor"
)

func doctorCommand(stdout io.Writer) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "show what this machine can measure, what is missing, and the command that fixes it",
		Long: `doctor checks this machine: rights, kernel features, tools, CNI plugins,
performance counters. It starts with the verdict and changes nothing. Its exit
status is 0 if the quickstart can run on this machine.`,
		Example: "  cnibench doctor\n  cnibench doctor --json",
		Args:    usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			checks := doctor.Run(cmd.Context(), doctor.Options{})
			write := func() error { return doctor.WriteText(stdout, checks, terminalOf(stdout).color) }
			if asJSON {
				write = func() error { return doctor.WriteJSON(stdout, checks) }
			}
			if err := write(); err != nil {
				return err
			}
			if err := doctor.CanRunLab(checks); err != nil {
				return fmt.Errorf("the lab cannot run on this machine: %w", err)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
