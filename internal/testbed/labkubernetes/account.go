package labkubernetes

import (
	"context"
	"fmt"
)

// rule is one of a role: what may be done with resources of an API group.
type rule struct {
	group     string // "" is the core one
	resources []string
	verbs     []string
	names     []string // the only objects; nil: all
}

// account makes the service account of an agent with what its installation allows it:
// some rules in the whole cluster and others in its namespace. It gives a kubeconfig
// with which the agent is that account.
func (c *Cluster) account(ctx context.Context, namespace, name string, everywhere, inNamespace []rule) (string, error) {
	const group = "rbac.authorization.k8s.io"
	subjects := []object{{"kind": "ServiceAccount", "name": name, "namespace": namespace}}
	in := "/apis/" + group + "/v1/"
	bind := func(kind, path string, metadata object, rules []rule) error {
		if len(rules) == 0 {
			return nil
		}
		err := c.API.Create(ctx, in+path+"roles", object{
			"apiVersion": group + "/v1", "kind": kind, "metadata": metadata, "rules": rulesOf(rules),
		})
		if err != nil {
			return err
		}
		return c.API.Create(ctx, in+path+"rolebindings", object{
			"apiVersion": group + "/v1", "kind": kind + "Binding", "metadata": metadata, "subjects": subjects,
			"roleRef": object{"apiGroup": group, "kind": kind, "name": name},
		})
	}
	err := c.API.Create(ctx, "/api/v1/namespaces/"+namespace+"/serviceaccounts", object{
		"apiVersion": "v1", "kind": "ServiceAccount", "metadata": object{"name": name, "namespace": namespace},
	})
	if err != nil {
		return "", err
	}
	if err := bind("ClusterRole", "cluster", object{"name": name}, everywhere); err != nil {
		return "", err
	}
	if err := bind("Role", "namespaces/"+namespace+"/", object{"name": name, "namespace": namespace}, inNamespace); err != nil {
		return "", err
	}
	return c.Kubeconfig(fmt.Sprintf("system:serviceaccount:%s:%s", namespace, name), "system:serviceaccounts", "system:serviceaccounts:"+namespace)
}

func rulesOf(rules []rule) []object {
	var all []object
	for _, r := range rules {
		o := object{"apiGroups": []string{r.group}, "resources": r.resources, "verbs": r.verbs}
		if r.names != nil {
			o["resourceNames"] = r.names
		}
		all = append(all, o)
	}
	return all
}
