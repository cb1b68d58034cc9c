//go:build linux

package cli

import (
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/agent"
)

// agentCommand is this program at a place. People have no use for it.
func agentCommand(stdout io.Writer) *cobra.Command {
	var wait bool
	cmd := &cobra.Command{
		Use:     "agent",
		Short:   "run one end of samples; spoken to over stdin and stdout (internal)",
		Example: "  cnibench agent   # started by cnibench run at each place",
		Hidden:  true,
		Args:    usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if wait {
				agent.WaitFor(cmd.Context())
				return nil
			}
			if status := agent.ServeAs(cmd.Context(), os.Stdin, stdout, version()); status != exitOK {
				return silentError{status}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&wait, "wait", false, "only wait for SIGTERM, as the main process of a container")
	return cmd
}
