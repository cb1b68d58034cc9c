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
account that you name: "cnibench", which every campaign needs, and
"cnibench-detection", which lets the report describe the cluster's network. They allow
no reading of secrets and no change of objects that the campaign does not own; RBAC
cannot express "namespaces that I created", so the rights to pods cover all namespaces.

With --namespace it prints a Role for an existing namespace, which an admin of that
namespace can grant, for a run with the same flag. Such a user can read neither nodes
nor the network's configuration: the scheduler chooses the nodes, and the report lists
what could not be detected.

Before it creates anything, a run asks the cluster what its user may do, and lists
what is missing.`,
		Example: `  cnibench rbac --user alice | kubectl apply -f -
  cnibench rbac --service-account ci/bench --without-detection
  cnibench rbac --namespace team-a --user alice | kubectl apply -f -`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			if rights.User == "" && rights.ServiceAccount == "" {
				fmt.Fprintln(stderr, "these roles have no subject: name one with --user or --service-account")
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
	flags.StringVar(&rights.Namespace, "namespace", "", "an existing namespace: limit the rights to it")
	flags.BoolVar(&rights.WithoutDetection, "without-detection", false, "leave out what only finds out about the cluster's network")
	return cmd
}
