package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/cnibench/cnibench/internal/kubeclient"
)

func rbacCommand(stdout, stderr io.Writer) *cobra.Command {
	var rights kubeclient.RBAC
	var out outputFlags
	cmd := &cobra.Command{
		Use:   "rbac",
		Short: "print the least rights that a campaign needs in a Kubernetes cluster",
		Long: `rbac prints YAML for kubectl apply: a namespace called cnibench, a Role in it with its
binding to the user or service account that you name, and the ClusterRole
"cnibench-detection", which only reads: nodes, DaemonSets and the settings of the networks
that cnibench knows. Runs use the namespace with --namespace cnibench. No right outside
the namespace creates, changes or deletes anything, and none reads a secret.

The baseline needs pods in their nodes' network, which the namespace allows with
--host-network. Whoever may create such pods can take over the nodes.

With --namespace it prints a Role for an existing namespace, which an admin of that
namespace can grant, for a run with the same flag. Such a user can read neither nodes
nor the network's configuration: the scheduler chooses the nodes, and the report lists
what could not be detected.

Before it creates anything, a run asks the cluster what its user may do, and lists
what is missing.`,
		Example: `  cnibench rbac --user alice | kubectl apply -f -
  cnibench rbac --user alice --host-network | kubectl apply -f -
  cnibench rbac --service-account ci/bench --without-detection
  cnibench rbac --namespace team-a --user alice | kubectl apply -f -`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			format, _, err := out.resolve(cmd.Flags())
			if err != nil {
				return err
			}
			if rights.User == "" && rights.ServiceAccount == "" {
				fmt.Fprintln(stderr, "these roles have no subject: name one with --user or --service-account")
			}
			var b bytes.Buffer
			if err := rights.Write(&b); err != nil {
				return usageError{err}
			}
			if format == formatJSON {
				return writeList(stdout, b.String())
			}
			_, err = stdout.Write(b.Bytes())
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&rights.User, "user", "", "the user who gets the rights, as the cluster knows them")
	flags.StringVar(&rights.ServiceAccount, "service-account", "", "the service account that gets the rights, NAMESPACE/NAME")
	flags.StringVar(&rights.Namespace, "namespace", "", "an existing namespace: limit the rights to it")
	flags.BoolVar(&rights.HostNetwork, "host-network", false, "let pods of the printed namespace into their nodes' network, which the baseline needs")
	flags.BoolVar(&rights.WithoutDetection, "without-detection", false, "leave out the only rights outside the namespace, which find out about nodes and network")
	out.add(flags, []string{formatYAML, formatJSON})
	return cmd
}

// writeList writes objects of Kubernetes, which are documents of YAML, as one List in
// JSON.
func writeList(w io.Writer, documents string) error {
	list := struct {
		APIVersion string            `json:"apiVersion"`
		Kind       string            `json:"kind"`
		Items      []json.RawMessage `json:"items"`
	}{"v1", "List", nil}
	for _, doc := range strings.Split(documents, "\n---\n") {
		item, err := yaml.YAMLToJSON([]byte(doc))
		if err != nil {
			return err
		}
		list.Items = append(list.Items, item)
	}
	return writeJSON(w, list)
}
