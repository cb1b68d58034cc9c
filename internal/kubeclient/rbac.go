package kubeclient

import (
	"errors"
	"fmt"
	"io"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// RBAC says for whom rights are printed.
type RBAC struct {
	// User and ServiceAccount ("namespace/name") get the rights; with neither
	// nobody does.
	User, ServiceAccount string
	// Namespace is an existing one, to which the rights are bounded; "": OwnNamespace,
	// which is printed too, with the read-only rights of detection.
	Namespace string
	// HostNetwork lets pods of OwnNamespace into their nodes' network, which the baseline
	// needs. Whoever may create such pods can take over the nodes.
	HostNetwork bool
	// WithoutDetection leaves the rights of detection out, the only ones outside the
	// namespace.
	WithoutDetection bool
}

// managedBy marks all that this program makes in a cluster.
const managedBy = "app.kubernetes.io/managed-by"

// The names of what Write writes.
const (
	// OwnNamespace is the namespace that Write creates for runs.
	OwnNamespace  = "cnibench"
	campaignRole  = "cnibench"
	detectionRole = "cnibench-detection"
)

// Write writes the least that a campaign needs as YAML for kubectl apply: roles,
// and bindings to who was named.
func (r RBAC) Write(w io.Writer) error {
	subject, err := r.subject()
	if err != nil {
		return err
	}
	var objects []any
	switch {
	case r.Namespace != "" && r.WithoutDetection:
		return errors.New("in a namespace there are no rights of detection to leave out: they are the cluster's")
	case r.Namespace != "" && r.HostNetwork:
		return fmt.Errorf("namespace %s is not created here: kubectl label namespace %s %s=privileged lets its pods into their nodes' network", r.Namespace, r.Namespace, enforceLabel)
	case r.Namespace != "":
		objects = role(campaignRole, r.Namespace, NamespaceRights(), subject)
	default:
		objects = append([]any{r.namespace()}, role(campaignRole, OwnNamespace, NamespaceRights(), subject)...)
		if !r.WithoutDetection {
			objects = append(objects, role(detectionRole, "", DetectionRights(), subject)...)
		}
	}
	for i, o := range objects {
		text, err := yaml.Marshal(o)
		if err != nil {
			return err
		}
		if i > 0 {
			text = append([]byte("---\n"), text...)
		}
		if _, err := w.Write(text); err != nil {
			return err
		}
	}
	return nil
}

// enforceLabel sets what Pod Security allows in a namespace.
const enforceLabel = "pod-security.kubernetes.io/enforce"

// namespace is OwnNamespace as it is created.
func (r RBAC) namespace() any {
	level := "restricted"
	if r.HostNetwork {
		level = "privileged"
	}
	// Without the status and the spec that the API's type would add.
	return map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{
		"name": OwnNamespace, "labels": map[string]string{managedBy: "cnibench", enforceLabel: level},
	}}
}

// role is a role and its binding to who gets it, if anybody: each has a binding
// of its own, so that one printed for somebody else does not take it away.
func role(name, namespace string, rights []Right, subject *rbacv1.Subject) []any {
	kind := func(kind string) metav1.TypeMeta {
		return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
	}
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: map[string]string{managedBy: "cnibench"}}
	}
	var whose string
	if subject != nil {
		// A path segment: neither / nor % (k8s.io/apimachinery, validation/path).
		whose = name + ":" + strings.NewReplacer("/", ":", "%", ":").Replace(strings.TrimPrefix(subject.Namespace+":"+subject.Name, ":"))
	}
	of := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
	if namespace != "" {
		of.Kind = "Role"
		objects := []any{rbacv1.Role{TypeMeta: kind("Role"), ObjectMeta: meta(name), Rules: rules(rights)}}
		if subject != nil {
			objects = append(objects, rbacv1.RoleBinding{TypeMeta: kind("RoleBinding"), ObjectMeta: meta(whose), RoleRef: of, Subjects: []rbacv1.Subject{*subject}})
		}
		return objects
	}
	objects := []any{rbacv1.ClusterRole{TypeMeta: kind("ClusterRole"), ObjectMeta: meta(name), Rules: rules(rights)}}
	if subject != nil {
		objects = append(objects, rbacv1.ClusterRoleBinding{TypeMeta: kind("ClusterRoleBinding"), ObjectMeta: meta(whose), RoleRef: of, Subjects: []rbacv1.Subject{*subject}})
	}
	return objects
}

func rules(rights []Right) []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for _, r := range rights {
		rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{r.Group}, Resources: r.Resources, Verbs: r.Verbs, ResourceNames: r.Names})
	}
	return rules
}

// subject is who gets the rights; nil: nobody.
func (r RBAC) subject() (*rbacv1.Subject, error) {
	switch {
	case r.User != "" && r.ServiceAccount != "":
		return nil, errors.New("name a user or a service account, not both")
	case r.User != "":
		return &rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: r.User}, nil
	case r.ServiceAccount != "":
		namespace, name, ok := strings.Cut(r.ServiceAccount, "/")
		if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
			return nil, fmt.Errorf("service account %q: want NAMESPACE/NAME", r.ServiceAccount)
		}
		return &rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}, nil
	}
	return nil, nil
}
