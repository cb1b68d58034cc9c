//go:build linux

package cli

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/agent"
)

// agentCommand is this program at a place. People have no use for it.
func agentCommand(stdout io.Writer) *cobra.Command {
	var wait bool
	var reports string
	cmd := &cobra.Command{
		Use:     "agent",
		Short:   "run one end of samples; spoken to over stdin and stdout (internal)",
		Example: "  cnibench agent   # started by cnibench run at each place",
		Hidden:  true,
		Args:    usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if wait {
				newcomer, err := newcomerOf(reports)
				if err != nil {
					return usageError{err}
				}
				agent.WaitFor(cmd.Context(), newcomer)
				return nil
			}
			if reports != "" {
				return usageError{errors.New("--report is for --wait: only the first process of a pod reports")}
			}
			if status := agent.ServeAs(cmd.Context(), os.Stdin, stdout, version()); status != exitOK {
				return silentError{status}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&wait, "wait", false, "only wait for SIGTERM, as the main process of a container")
	cmd.Flags().StringVar(&reports, "report", "", "with --wait: report to the agent at ADDRESS:PORT/TOKEN/NAME that this pod has started")
	return cmd
}

// newcomerOf is what --report says; nil where it says nothing.
func newcomerOf(text string) (*agent.Newcomer, error) {
	if text == "" {
		return nil, nil
	}
	n, err := agent.ParseNewcomer(text)
	if err != nil {
		return nil, fmt.Errorf("--report: %w", err)
	}
	return &n, nil
}
