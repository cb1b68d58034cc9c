package kubeclient

import (
	"errors"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"
)

// allowing is a cluster whose user has what some roles allow.
func allowing(t *testing.T, user string, roles []rbacv1.ClusterRole) *Client {
	api := fake.NewClientset()
	api.PrependReactor("create", "selfsubjectaccessreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
		review := a.(clienttesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview)
		r := review.Spec.ResourceAttributes
		resource := r.Resource
		if r.Subresource != "" {
			resource += "/" + r.Subresource
		}
		for _, role := range roles {
			for _, rule := range role.Rules {
				review.Status.Allowed = review.Status.Allowed || slices.Contains(rule.APIGroups, r.Group) && slices.Contains(rule.Resources, resource) &&
					slices.Contains(rule.Verbs, r.Verb) && (len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, r.Name))
			}
		}
		return true, review, nil
	})
	api.PrependReactor("create", "selfsubjectreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
		if user == "" {
			return true, nil, errors.New("not of this version")
		}
		return true, &authenticationv1.SelfSubjectReview{Status: authenticationv1.SelfSubjectReviewStatus{UserInfo: authenticationv1.UserInfo{Username: user}}}, nil
	})
	c := NewClient(api, nil)
	t.Cleanup(func() {
		for _, a := range api.Actions() {
			if !strings.HasPrefix(a.GetResource().Resource, "selfsubject") {
				t.Errorf("it did more than ask: %s %s", a.GetVerb(), a.GetResource().Resource)
			}
		}
	})
	return c
}

// printed are the cluster roles of what Write wrote.
func printed(t *testing.T, r RBAC) (roles []rbacv1.ClusterRole, text string) {
	t.Helper()
	var b strings.Builder
	if err := r.Write(&b); err != nil {
		t.Fatal(err)
	}
	for doc := range strings.SplitSeq(b.String(), "---\n") {
		var role rbacv1.ClusterRole
		if err := yaml.Unmarshal([]byte(doc), &role); err != nil {
			t.Fatal(err)
		}
		if role.Kind == "ClusterRole" {
			roles = append(roles, role)
		}
	}
	return roles, b.String()
}

// Who has what is printed lacks nothing in the namespace that is printed with it; and no
// right beyond that namespace does more than read.
func TestPrintedRightsAreEnough(t *testing.T) {
	roles, text := printed(t, RBAC{User: "alice"})
	if len(roles) != 1 || roles[0].Name != detectionRole {
		t.Fatalf("cluster roles %+v", roles)
	}
	for _, rule := range roles[0].Rules {
		for _, verb := range rule.Verbs {
			if verb != "get" && verb != "list" {
				t.Errorf("%s %v in the whole cluster", verb, rule.Resources)
			}
		}
		if slices.Contains(rule.Resources, "secrets") || slices.Contains(rule.Resources, "*") || slices.Contains(rule.Resources, "configmaps") && len(rule.ResourceNames) == 0 {
			t.Errorf("%v in the whole cluster", rule.Resources)
		}
	}
	var in rbacv1.ClusterRole // its rules are those of a Role
	for doc := range strings.SplitSeq(text, "---\n") {
		if strings.Contains(doc, "\nkind: Role\n") {
			if err := yaml.Unmarshal([]byte(doc), &in); err != nil || in.Namespace != OwnNamespace {
				t.Fatalf("%v:\n%s", err, doc)
			}
		}
	}
	c := allowing(t, "alice", append(roles, in))
	if err := c.CheckRights(t.Context(), OwnNamespace); err != nil {
		t.Error(err)
	}
	if lacks, err := c.Lacks(t.Context(), DetectionRights(), ""); err != nil || len(lacks) > 0 {
		t.Errorf("%v, %v", lacks, err)
	}
	if _, without := printed(t, RBAC{User: "alice", WithoutDetection: true}); strings.Contains(without, "Cluster") {
		t.Errorf("rights of the cluster:\n%s", without)
	}
	for _, c := range []struct {
		r     RBAC
		level string
	}{{RBAC{}, "restricted"}, {RBAC{HostNetwork: true}, "privileged"}} {
		if _, text := printed(t, c.r); !strings.Contains(text, "pod-security.kubernetes.io/enforce: "+c.level+"\n") || !strings.Contains(text, "kind: Namespace\n") {
			t.Errorf("%+v:\n%s", c.r, text)
		}
	}
	if err := (RBAC{Namespace: "team", HostNetwork: true}).Write(&strings.Builder{}); err == nil || !strings.Contains(err.Error(), "kubectl label namespace team") {
		t.Errorf("%v", err)
	}
}

// What is printed for a namespace is all that is asked for there, and a Role alone.
func TestPrintedRightsOfANamespace(t *testing.T) {
	_, text := printed(t, RBAC{User: "alice", Namespace: "team"})
	var role rbacv1.ClusterRole // its rules are those of a Role
	doc, binding, _ := strings.Cut(text, "---\n")
	if err := yaml.Unmarshal([]byte(doc), &role); err != nil || role.Kind != "Role" || role.Namespace != "team" {
		t.Fatalf("%v:\n%s", err, doc)
	}
	if !strings.Contains(binding, "kind: RoleBinding\n") || !strings.Contains(binding, "namespace: team\n") || strings.Contains(text, "Cluster") {
		t.Errorf("binding:\n%s", binding)
	}
	if err := allowing(t, "alice", []rbacv1.ClusterRole{role}).CheckRights(t.Context(), "team"); err != nil {
		t.Error(err)
	}
	for i := range role.Rules {
		less := role.DeepCopy()
		less.Rules = slices.Delete(less.Rules, i, i+1)
		err := allowing(t, "alice", []rbacv1.ClusterRole{*less}).CheckRights(t.Context(), "team")
		if err == nil || !strings.Contains(err.Error(), "in namespace team (") || !strings.Contains(err.Error(), "cnibench rbac --namespace team --user alice | kubectl") {
			t.Errorf("without rule %d: %v", i, err)
		}
	}
}

func TestDeniedListsAllAtOnce(t *testing.T) {
	roles := []rbacv1.ClusterRole{{Rules: rules(CampaignRights())}}
	for i, rule := range roles[0].Rules {
		if slices.Contains(rule.Resources, "pods") {
			roles[0].Rules[i].Verbs = []string{"get"}
		}
	}
	roles[0].Rules = slices.DeleteFunc(roles[0].Rules, func(r rbacv1.PolicyRule) bool { return slices.Contains(r.Resources, "namespaces") })
	for user, cure := range map[string]string{
		"alice":                        "cnibench rbac --user alice | kubectl apply -f -",
		"it's her":                     `cnibench rbac --user 'it'\''s her' | kubectl`,
		"system:serviceaccount:ci:run": "cnibench rbac --service-account ci/run | kubectl",
		"":                             "cnibench rbac --user NAME | kubectl",
	} {
		err := allowing(t, user, roles).CheckRights(t.Context(), "")
		if err == nil {
			t.Fatal("nothing is lacking")
		}
		for _, want := range []string{
			"nothing was created", "  create namespaces (namespaces of its own", "  delete namespaces ", "  list namespaces ",
			"  create pods in every namespace (the pods", "  delete pods in every namespace", cure, "then run in it: --namespace cnibench", "in a namespace of yours: --namespace NAME",
		} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q is not in:\n%v", want, err)
			}
		}
		if strings.Contains(err.Error(), "get pods") {
			t.Errorf("it has this right:\n%v", err)
		}
	}
}

// Two people's bindings exist next to each other, and names are such as a cluster
// takes.
func TestBindings(t *testing.T) {
	_, alice := printed(t, RBAC{User: "https://login/alice"})
	_, bench := printed(t, RBAC{ServiceAccount: "ci/bench", WithoutDetection: true})
	_, nobody := printed(t, RBAC{})
	for _, c := range []struct {
		text  string
		want  []string
		kinds int
	}{
		{alice, []string{"name: cnibench:https:::login:alice\n", "name: cnibench-detection:https:::login:alice\n", "kind: User\n", "name: https://login/alice\n"}, 2},
		{bench, []string{"name: cnibench:ci:bench\n", "kind: ServiceAccount\n", "namespace: ci\n", "namespace: cnibench\n"}, 0},
		{nobody, []string{"name: cnibench\n", "name: cnibench-detection\n"}, 1},
	} {
		for _, want := range c.want {
			if !strings.Contains(c.text, want) {
				t.Errorf("%q is not in:\n%s", want, c.text)
			}
		}
		if got := strings.Count("\n"+c.text, "\nkind: ClusterRole"); got != c.kinds {
			t.Errorf("%d objects, want %d:\n%s", got, c.kinds, c.text)
		}
	}
	for _, bad := range []RBAC{{User: "a", ServiceAccount: "b/c"}, {ServiceAccount: "b"}, {ServiceAccount: "a/b/c"}, {ServiceAccount: "/b"}} {
		if err := bad.Write(&strings.Builder{}); err == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
}
