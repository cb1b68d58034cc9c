package cli

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/sink"
)

func pushCommand(stdout io.Writer) *cobra.Command {
	var asJSON bool
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
			all := []sink.Pushed{}
			for _, dir := range args[1:] {
				p, err := sink.Push(cmd.Context(), args[0], dir)
				if err != nil {
					return err
				}
				all = append(all, p)
				if !asJSON {
					fmt.Fprintf(stdout, "%s: %d records, %d of them new, as campaign %s\n", dir, p.Samples, p.New, p.CampaignID)
				}
			}
			if !asJSON {
				return nil
			}
			enc := json.NewEncoder(stdout)
			enc.SetIndent("", "  ")
			return enc.Encode(all)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
