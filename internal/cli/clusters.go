package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/image"
	"github.com/cnibench/cnibench/internal/kube"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/result"
	kubebed "github.com/cnibench/cnibench/internal/testbed/kube"
)

// clusterFlags are those of commands that use a cluster of a kubeconfig.
type clusterFlags struct {
	kubeconfig, context string
}

func (f *clusterFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "the kubeconfig, for the testbed kubernetes (default: where kubectl looks)")
	flags.StringVar(&f.context, "context", "", "the kubeconfig's context (default: its current one)")
}

// cleanWithin bounds the wait for the end of what is deleted.
const cleanWithin = 2 * time.Minute

func cleanCommand(stdout io.Writer) *cobra.Command {
	var f clusterFlags
	cmd := &cobra.Command{
		Use:   "clean",
		Short: "delete what a killed run left in a cluster",
		Long: `clean deletes the namespaces of runs that do not go on any more, and waits until
they are gone: runs of this machine whose process has ended, and runs of others that
have not been heard of for two minutes. The next run on the cluster does the same.`,
		Example: `  cnibench clean
  cnibench clean --context admin@production`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := kube.Connect(f.kubeconfig, f.context)
			if err != nil {
				return usageError{err}
			}
			ctx, cancel := context.WithTimeoutCause(cmd.Context(), cleanWithin, fmt.Errorf("not gone within %v", cleanWithin))
			defer cancel()
			names, err := kubebed.Clean(ctx, client)
			if err != nil {
				return err
			}
			for _, name := range names {
				fmt.Fprintln(stdout, "deleted namespace "+name)
			}
			if len(names) == 0 {
				fmt.Fprintln(stdout, "nothing is left of killed runs")
			}
			return nil
		},
	}
	f.add(cmd.Flags())
	return cmd
}

// runOnClusters is run on the clusters of a kubeconfig. What they have is found
// out before the plan is made.
func runOnClusters(ctx context.Context, path string, c campaign.Campaign, f runFlags, stdout, stderr io.Writer) error {
	bed, err := openClusters(c, f, stderr)
	if err != nil {
		return err
	}
	found, err := bed.Prepare(ctx, plan.Cells(c))
	if err != nil {
		return err
	}
	for i, cluster := range c.Clusters {
		fmt.Fprintf(stderr, "%s: network %s, MTU %d\n", cmp.Or(cluster.Name, campaign.TheCluster), found[i].Network, found[i].MTU)
		c.Clusters[i].Found = found[i]
	}
	_, err = runOn(ctx, bed, path, c, f, stdout, stderr)
	// Where no run came of it, nothing else takes it down.
	return errors.Join(err, bed.Close(context.WithoutCancel(ctx)))
}

// nameClusters fills in what a campaign leaves to the flags, and that nothing was
// found yet.
func nameClusters(path string, c *campaign.Campaign, f runFlags) error {
	if len(c.Clusters) > 0 && f.cluster != (clusterFlags{}) {
		return usageError{errors.New("--kubeconfig and --context are for a campaign without clusters, and this one names them")}
	}
	for i := range c.Clusters {
		c.Clusters[i].Kubeconfig = kube.AbsKubeconfig(c.Clusters[i].Kubeconfig, path)
	}
	if len(c.Clusters) == 0 {
		c.Clusters = []campaign.Cluster{{Kubeconfig: f.cluster.kubeconfig, Context: f.cluster.context}}
	}
	for i := range c.Clusters {
		c.Clusters[i].Found = campaign.Found{Network: campaign.Detected, Enforces: true}
	}
	return nil
}

// ofCluster names a cell's network, and its cluster where there are several.
func ofCluster(cell result.Cell) string {
	if cell.Cluster == "" {
		return cell.Network
	}
	return cell.Network + " of " + cell.Cluster
}

func openClusters(c campaign.Campaign, f runFlags, stderr io.Writer) (*kubebed.Bed, error) {
	bed, err := kubebed.Open(kubebed.Options{
		Clusters: c.Clusters, Image: cmp.Or(f.image, image.Name(version(), false)), Connect: kube.Connect,
		Say: func(format string, args ...any) { fmt.Fprintf(stderr, format+"\n", args...) },
	})
	if err != nil {
		return nil, usageError{err}
	}
	return bed, nil
}
