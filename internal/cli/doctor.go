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
		Short: "what can be measured here, what is missing, and the command that mends it",
		Long: `doctor probes this machine: rights, kernel features, tools, CNI plugins,
performance counters. It changes nothing. Its exit status is 0 when the
quickstart can run here.`,
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
				return fmt.Errorf("the lab cannot run here: %w", err)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
