package kubeclient

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/client-go/tools/clientcmd"
)

// Contexts are the names of a kubeconfig's contexts, sorted; of an empty path
// those of $KUBECONFIG or ~/.kube/config.
func Contexts(kubeconfig string) ([]string, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	config, err := rules.Load()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	return slices.Sorted(maps.Keys(config.Contexts)), nil
}
