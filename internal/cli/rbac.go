package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/kube"
)

func rbacCommand(stdout, stderr io.Writer) *cobra.Command {
	var rights kube.RBAC
	cmd := &cobra.Command{
		Use:   "rbac",
		Short: "print the least rights that a campaign needs in a Kubernetes cluster",
		Long: `rbac prints two ClusterRoles as YAML, and their bindings to the user or service
account that is named: "cnibench", without which no campaign runs, and
"cnibench-detection", without which the report says of the cluster's network what
could not be found out. Nothing in them reads a secret or changes what is not the
campaign's own; but RBAC has no words for "namespaces that I made", so the rights
to pods are for all namespaces.

With --namespace it prints a Role for a namespace that is there, which who administers
that namespace can give away, for a run with the same flag. Such a user may read neither
nodes nor the network's configuration: nodes are those that the scheduler chooses, and
the report says what could not be found out.

Before it makes anything a run asks the cluster what its user may do, and lists
what is missing.`,
		Example: `  cnibench rbac --user alice | kubectl apply -f -
  cnibench rbac --service-account ci/bench --without-detection
  cnibench rbac --namespace team-a --user alice | kubectl apply -f -`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			if rights.User == "" && rights.ServiceAccount == "" {
				fmt.Fprintln(stderr, "nobody gets these roles: name somebody with --user or --service-account")
			}
			if err := rights.Write(stdout); err != nil {
				return usageError{err}
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&rights.User, "user", "", "the user who gets the rights, as the cluster knows them")
	flags.StringVar(&rights.ServiceAccount, "service-account", "", "the service account that gets the rights, NAMESPACE/NAME")
	flags.StringVar(&rights.Namespace, "namespace", "", "a namespace that is there, to which the rights are bounded")
	flags.BoolVar(&rights.WithoutDetection, "without-detection", false, "leave out what only finds out about the cluster's network")
	return cmd
}
