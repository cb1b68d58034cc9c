package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/sink"
)

func pushCommand(stdout io.Writer) *cobra.Command {
	var out outputFlags
	cmd := &cobra.Command{
		Use:   "push postgres://USER@HOST/DATABASE DIR [DIR ...]",
		Short: "copy result directories into a PostgreSQL database",
		Long: `push copies each directory's campaign into the table cnibench_campaigns and its
records into cnibench_samples, and creates missing tables. Existing rows do not
change, so you can repeat push. The password comes from PGPASSWORD or ~/.pgpass.

A server on another machine must have a certificate that this machine trusts
(sslmode=verify-full); ?sslrootcert=FILE names an authority of your own, and an
sslmode in the address or in PGSSLMODE asks for less.`,
		Example: "  cnibench push postgres://bench@db.example/results results/latest",
		Args:    usageArgs(cobra.MinimumNArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			format, _, err := out.resolve(cmd.Flags())
			if err != nil {
				return err
			}
			all := []sink.Pushed{}
			for _, dir := range args[1:] {
				p, err := sink.Push(cmd.Context(), args[0], dir)
				if err != nil {
					return err
				}
				all = append(all, p)
				if format == formatTerminal { // at once: the next may take minutes
					fmt.Fprintf(stdout, "%s: %d records, %d of them new, as campaign %s\n", dir, p.Samples, p.New, p.CampaignID)
				}
			}
			return printValue(stdout, format, all, func(io.Writer) error { return nil })
		},
	}
	out.add(cmd.Flags(), plainFormats())
	return cmd
}
