package cli

import (
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/agent"
)

// agentCommand is this program at a place. People have no use for it.
func agentCommand(stdout io.Writer) *cobra.Command {
	return &cobra.Command{
		Use:     "agent",
		Short:   "run one end of samples; spoken to over stdin and stdout (internal)",
		Example: "  cnibench agent   # started by cnibench run at each place",
		Hidden:  true,
		Args:    usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if status := agent.Serve(cmd.Context(), os.Stdin, stdout); status != exitOK {
				return silentError{status}
			}
			return nil
		},
	}
}
