package kubeclient

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Right is what one rule of RBAC allows, and what for.
type Right struct {
	// For says what it is needed for.
	For string
	// Group is the API group, "" the core one.
	Group     string
	Resources []string
	Verbs     []string
	// Names are the only objects; nil: all.
	Names []string
	// OfCluster means objects that are in no namespace.
	OfCluster bool
}

// CampaignRights are what a campaign in namespaces of its own cannot do without. They are
// in every namespace, as RBAC cannot name those that a run will create: cluster admins have
// them, and RBAC.Write gives them to nobody.
func CampaignRights() []Right {
	return []Right{
		{For: "namespaces of its own, removed afterwards", Resources: []string{"namespaces"}, Verbs: []string{"create", "delete", "get", "list"}, OfCluster: true},
		{For: "choosing nodes; their kernel, runtime and versions", Resources: []string{"nodes"}, Verbs: []string{"get", "list"}, OfCluster: true},
		{For: "the pods in which agents run", Resources: []string{"pods"}, Verbs: []string{"create", "delete", "get"}},
		// A WebSocket is opened by GET, SPDY by POST.
		{For: "speaking to the agents", Resources: []string{"pods/exec"}, Verbs: []string{"create", "get"}},
		{For: "why a pod does not start", Resources: []string{"events"}, Verbs: []string{"list"}},
		{For: "distinguishing a running run from a killed one", Group: "coordination.k8s.io", Resources: []string{"leases"}, Verbs: []string{"create", "get", "update"}},
		{For: "paths to services", Resources: []string{"services"}, Verbs: []string{"create", "get"}},
		{For: "paths to existing services", Group: "discovery.k8s.io", Resources: []string{"endpointslices"}, Verbs: []string{"list"}},
		{For: "policies around the pods", Group: "networking.k8s.io", Resources: []string{"networkpolicies"}, Verbs: []string{"create"}},
	}
}

// NamespaceRights are what a campaign cannot do without in an existing namespace,
// whose objects it finds and deletes one by one. Nodes are then found by what the
// scheduler chooses.
func NamespaceRights() []Right {
	return []Right{
		{For: "the pods in which agents run", Resources: []string{"pods"}, Verbs: []string{"create", "delete", "get", "list"}},
		{For: "speaking to the agents", Resources: []string{"pods/exec"}, Verbs: []string{"create", "get"}},
		{For: "why a pod does not start", Resources: []string{"events"}, Verbs: []string{"list"}},
		{For: "distinguishing a running run from a killed one", Group: "coordination.k8s.io", Resources: []string{"leases"}, Verbs: []string{"create", "delete", "get", "list", "update"}},
		{For: "paths to services", Resources: []string{"services"}, Verbs: []string{"create", "delete", "get", "list"}},
		{For: "paths to existing services", Group: "discovery.k8s.io", Resources: []string{"endpointslices"}, Verbs: []string{"list"}},
		{For: "policies around the pods", Group: "networking.k8s.io", Resources: []string{"networkpolicies"}, Verbs: []string{"create", "delete", "list"}},
	}
}

// DetectionRights are what finding out about the cluster's nodes and network needs. All of
// them only read. Without one of them the facts behind it are undetermined; a campaign runs all
// the same.
func DetectionRights() []Right {
	return []Right{
		{For: "choosing nodes; their kernel, runtime and versions", Resources: []string{"nodes"}, Verbs: []string{"get", "list"}, OfCluster: true},
		{For: "which network runs, and its version", Group: "apps", Resources: []string{"daemonsets"}, Verbs: []string{"list"}},
		{For: "how the network is configured", Resources: []string{"configmaps"}, Verbs: []string{"get"}, Names: configMapNames()},
		{For: "Calico's encapsulation and data plane", Group: calicoGroup, Resources: []string{"felixconfigurations", "ippools"}, Verbs: []string{"list"}, OfCluster: true},
		{For: "the same, of Calico from v3.32 on", Group: calicoV3Group, Resources: []string{"felixconfigurations", "ippools"}, Verbs: []string{"list"}, OfCluster: true},
	}
}

// Lack is one request that a user may not make.
type Lack struct {
	Verb, Resource string // "create", "pods/exec"
	For            string
}

func (l Lack) String() string {
	return l.Verb + " " + l.Resource + " (" + l.For + ")"
}

// Denied lists everything that a user may not do.
type Denied struct {
	// User is who asks, "" where the cluster does not say.
	User string
	// Namespace is the one that the run was to be in; "": namespaces of its own.
	Namespace string
	Lacks     []Lack
}

func (d *Denied) Error() string {
	var b strings.Builder
	who := "this user"
	if d.User != "" {
		who = fmt.Sprintf("user %q", d.User)
	}
	fmt.Fprintf(&b, "%s may not do what the campaign needs; nothing was created:\n", who)
	for _, l := range d.Lacks {
		fmt.Fprintf(&b, "  %s\n", l)
	}
	if d.Namespace != "" {
		fmt.Fprintf(&b, "an admin of namespace %s can allow it: %s | kubectl apply -f -", d.Namespace, d.cure())
		return b.String()
	}
	fmt.Fprintf(&b, "a cluster admin can create a namespace for it: %s | kubectl apply -f -\n", d.cure())
	fmt.Fprintf(&b, "then run in it: --namespace %s (or in a namespace of yours: --namespace NAME)", OwnNamespace)
	return b.String()
}

// cure is the command that prints what allows it.
func (d *Denied) cure() string {
	cmd := "cnibench rbac"
	if d.Namespace != "" {
		cmd += " --namespace " + d.Namespace
	}
	if account, ok := strings.CutPrefix(d.User, "system:serviceaccount:"); ok {
		return cmd + " --service-account " + strings.Replace(account, ":", "/", 1)
	}
	if d.User == "" {
		return cmd + " --user NAME"
	}
	return cmd + " --user " + shellWord(d.User)
}

// shellWord quotes what a shell would not take as one word.
func shellWord(s string) string {
	if strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@:._-") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// CheckRights asks the cluster whether its user may do what a campaign needs, in a
// namespace or, with "", in namespaces of its own. Nothing is made. What the user may
// not do is a *Denied.
func (c *Client) CheckRights(ctx context.Context, namespace string) error {
	rights := CampaignRights()
	if namespace != "" {
		rights = NamespaceRights()
	}
	lacks, err := c.Lacks(ctx, rights, namespace)
	if err != nil || len(lacks) == 0 {
		return err
	}
	d := &Denied{Namespace: namespace, Lacks: lacks}
	// Servers before 1.28 do not report who asks.
	review, err := c.API.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err == nil {
		d.User = review.Status.UserInfo.Username
	}
	return d
}

// reviewsAtOnce bounds the questions that are under way.
const reviewsAtOnce = 8

// Lacks are those of some rights that the user does not have in a namespace, "" in
// all, by the cluster's own answer (SelfSubjectAccessReview).
func (c *Client) Lacks(ctx context.Context, rights []Right, namespace string) ([]Lack, error) {
	var mu sync.Mutex
	var lacks []Lack
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(reviewsAtOnce)
	for _, right := range rights {
		for _, one := range right.each(namespace) {
			group.Go(func() error {
				review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &one}}
				answer, err := c.API.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
				if err != nil {
					return c.Explain("ask what this user may do", err)
				}
				if !answer.Status.Allowed {
					mu.Lock()
					defer mu.Unlock()
					lacks = append(lacks, right.lack(one))
				}
				return nil
			})
		}
	}
	err := group.Wait()
	slices.SortFunc(lacks, func(a, b Lack) int {
		return strings.Compare(a.Resource+" "+a.Verb, b.Resource+" "+b.Verb)
	})
	return slices.Compact(lacks), err
}

// each are the single requests that a right allows.
func (r Right) each(namespace string) []authorizationv1.ResourceAttributes {
	names := r.Names
	if names == nil {
		names = []string{""}
	}
	if r.OfCluster {
		namespace = ""
	}
	var all []authorizationv1.ResourceAttributes
	for _, resource := range r.Resources {
		resource, sub, _ := strings.Cut(resource, "/")
		for _, verb := range r.Verbs {
			for _, name := range names {
				all = append(all, authorizationv1.ResourceAttributes{
					Namespace: namespace, Verb: verb, Group: r.Group, Resource: resource, Subresource: sub, Name: name,
				})
			}
		}
	}
	return all
}

func (r Right) lack(a authorizationv1.ResourceAttributes) Lack {
	l := Lack{Verb: a.Verb, Resource: a.Resource, For: r.For}
	if a.Subresource != "" {
		l.Resource += "/" + a.Subresource
	}
	if a.Group != "" {
		l.Resource += "." + a.Group
	}
	if a.Name != "" {
		l.Resource += " " + a.Name
	}
	switch {
	case a.Namespace != "":
		l.Resource += " in namespace " + a.Namespace
	case !r.OfCluster:
		l.Resource += " in every namespace"
	}
	return l
}
