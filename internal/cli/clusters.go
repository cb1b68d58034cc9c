package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/image"
	"github.com/cnibench/cnibench/internal/kubeclient"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/testbed/cluster"
)

// clusterFlags are those of commands that use a cluster of a kubeconfig.
type clusterFlags struct {
	kubeconfig, context string
	// namespace is an existing one; "": the run creates its own.
	namespace string
}

func (f *clusterFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "the kubeconfig, for the testbed kubernetes (default: where kubectl looks)")
	flags.StringVar(&f.context, "context", "", "the kubeconfig's context (default: its current one)")
	flags.StringVar(&f.namespace, "namespace", "", "an existing namespace, for users who cannot create one (default: namespaces of the run's own)")
}

// cleanWithin bounds the wait for the end of what is deleted, and for what is known of
// the owners before.
const cleanWithin = cluster.ObservedFor + 2*time.Minute

func cleanCommand(stdout, stderr io.Writer) *cobra.Command {
	var f clusterFlags
	var out outputFlags
	cmd := &cobra.Command{
		Use:   "clean",
		Short: "delete what a killed run left in a cluster",
		Long: `clean deletes the namespaces of runs that have ended, and waits until they are gone. A
run of this machine has ended if its process has. The run of another machine, or of
another pod on one node, has ended if its Lease does not change while clean watches it
for two minutes. The next run on the cluster also deletes them: those of this machine at
once, those of others when it ends.

With --namespace it deletes what such runs left in that namespace, and keeps the
namespace.`,
		Example: `  cnibench clean
  cnibench clean --context admin@production
  cnibench clean --namespace team-a`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			format, _, err := out.resolve(cmd.Flags())
			if err != nil {
				return err
			}
			client, err := kubeclient.Connect(f.kubeconfig, f.context)
			if err != nil {
				return usageError{err}
			}
			labs, err := labsUnder(map[string]string{"": client.Server})
			if err == nil {
				err = labs.focus(cmd.Context(), "") // a killed run may have left it frozen
			}
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeoutCause(cmd.Context(), cleanWithin, fmt.Errorf("not gone within %v", cleanWithin))
			defer cancel()
			names, err := cluster.Clean(ctx, client, f.namespace, sayOn(stderr))
			if err != nil {
				return err
			}
			return printValue(stdout, format, cleaned{append([]string{}, names...)}, func(w io.Writer) error {
				for _, name := range names {
					fmt.Fprintln(w, "deleted "+name)
				}
				if len(names) == 0 {
					fmt.Fprintln(w, "killed runs left nothing")
				}
				return nil
			})
		},
	}
	f.add(cmd.Flags())
	out.add(cmd.Flags(), plainFormats())
	return cmd
}

// cleaned is what cnibench clean -o json prints.
type cleaned struct {
	// Deleted names each object that was deleted.
	Deleted []string `json:"deleted"`
}

// sayOn prints what testbeds report to people, a line each.
func sayOn(stderr io.Writer) func(format string, args ...any) {
	return func(format string, args ...any) { fmt.Fprintf(stderr, format+"\n", args...) }
}

// runOnClusters is run on the clusters of a kubeconfig. What they have is found
// out before the plan is made.
func runOnClusters(ctx context.Context, path string, c campaign.Campaign, f runFlags, stdout, stderr io.Writer) error {
	runner := exec.NewRunner()
	defer runner.Close()
	clusters, err := openClusters(c, f, switcher(runner, path), stderr)
	if err != nil {
		return err
	}
	labs, err := labsUnder(clusters.Servers())
	if err != nil {
		return err
	}
	clusters.SetFocus(labs.focus)
	agents, err := agentsUnder(labs)
	if err != nil {
		return err
	}
	clusters.SetAgents(agents)
	found, err := clusters.Prepare(ctx, plan.Cells(c))
	if err != nil {
		return err
	}
	for i, named := range c.Clusters {
		fmt.Fprintf(stderr, "%s: network %s, MTU %d\n", cmp.Or(named.Name, campaign.TheCluster), found[i].Network, found[i].MTU)
		c.Clusters[i].Found = found[i]
	}
	if words := pairWords(c, newPlan(c, f)); words != "" {
		fmt.Fprintln(stderr, words)
	}
	_, err = runOn(ctx, clusters, path, c, f, stdout, stderr)
	// Without a run, nothing else takes it down.
	return errors.Join(err, clusters.Close(context.WithoutCancel(ctx)))
}

// resting are the campaign's clusters that are labs of this machine, by their
// names, with the labs' IDs: those that are not measured are frozen.
type resting map[string]string

// nameClusters is the campaign with what it leaves to the flags, on clusters of which
// nothing was found yet.
func nameClusters(path string, c campaign.Campaign, f runFlags) (campaign.Campaign, error) {
	if len(c.Clusters) > 0 && f.cluster != (clusterFlags{}) {
		return c, usageError{errors.New("--kubeconfig, --context and --namespace require a campaign without clusters; this one names them")}
	}
	for i := range c.Clusters {
		c.Clusters[i].Kubeconfig = kubeclient.AbsKubeconfig(c.Clusters[i].Kubeconfig, path)
	}
	if len(c.Clusters) == 0 {
		c.Clusters = []campaign.Cluster{{Kubeconfig: f.cluster.kubeconfig, Context: f.cluster.context, Namespace: f.cluster.namespace}}
	}
	for i := range c.Clusters {
		c.Clusters[i].Found = campaign.Found{Network: cmp.Or(c.Clusters[i].Network, campaign.Detected), Enforces: true}
	}
	if f.resume && uncontrolled(f.out) {
		return c, nil
	}
	return inLabs(c), nil
}

// ofCluster names a cell's network, its cluster where there are several, and its
// nodes where they are a factor.
func ofCluster(cell result.Cell) string {
	name := cell.Network
	if cell.Cluster != "" {
		name += " of " + cell.Cluster
	}
	if cell.IsPair() {
		name += " " + cell.ClientNode + " to " + cell.ServerNode
	}
	return name
}

// namedPairs are the pairs of nodes that a campaign names itself, for a plan that
// asks no cluster.
func namedPairs(c campaign.Campaign) campaign.Campaign {
	if c.Pairs != campaign.AllPairs {
		return c
	}
	c.Clusters = slices.Clone(c.Clusters)
	for i := range c.Clusters {
		c.Clusters[i].Found.Pairs = campaign.EveryPair(c.Clusters[i].Nodes)
	}
	return c
}

// pairWords says how many pairs of nodes there are, and in how many rounds; "" for
// a campaign on one pair.
func pairWords(c campaign.Campaign, p plan.Plan) string {
	if c.Pairs == "" {
		return ""
	}
	pairs := 0
	for _, named := range c.Clusters {
		pairs += len(named.Found.Pairs)
	}
	if pairs == 0 {
		return "pairs of nodes: the run finds out how many; N nodes have N(N-1) in 2(N-1) rounds, 2N where N is odd; the numbers here are for one pair"
	}
	_, rounds := p.Turns()
	return fmt.Sprintf("pairs of nodes: %d; a block measures them in %d rounds, those of a round at the same time", pairs, rounds)
}

// switcher runs commands that switch the network of a cluster, in the campaign's
// folder.
func switcher(runner *exec.Runner, path string) func(context.Context, campaign.Cluster, []string) (string, string, error) {
	return func(ctx context.Context, of campaign.Cluster, argv []string) (string, string, error) {
		cmd := exec.Cmd{Argv: argv, Dir: filepath.Dir(path)}
		if of.Kubeconfig != "" {
			cmd.Env = []string{"KUBECONFIG=" + of.Kubeconfig}
		}
		res, err := runner.Run(ctx, cmd)
		return string(res.Stdout), string(res.Stderr), err
	}
}

func openClusters(c campaign.Campaign, f runFlags, run func(context.Context, campaign.Cluster, []string) (string, string, error), stderr io.Writer) (*cluster.Testbed, error) {
	clusters, err := cluster.Open(cluster.Options{
		Run: run, Privileged: f.allowPrivileged, Version: version(),
		Clusters: c.Clusters, Pairs: c.Pairs, Image: cmp.Or(f.image, image.Name(version(), false)), Connect: kubeclient.Connect, Patience: cluster.Patience,
		Say: sayOn(stderr),
	})
	if err != nil {
		return nil, usageError{err}
	}
	return clusters, nil
}
