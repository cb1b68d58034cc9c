//go:build linux

package cli

import (
	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/tunnel"
)

// tunnelCommand is the forwarder of a lab's node: of the network flannel/udp, or of an
// encryption in user space, whose keys it reads from stdin. People have no use for it.
func tunnelCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "tunnel CONFIGURATION",
		Short:   "forward a lab node's packets in UDP; runs until the lab goes (internal)",
		Example: `  cnibench tunnel '{"device":"flannel0","local":"198.18.0.1:8285"}'   # started by a lab`,
		Hidden:  true,
		Args:    usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return tunnel.ServeArg(cmd.Context(), args[0], cmd.InOrStdin())
		},
	}
}
