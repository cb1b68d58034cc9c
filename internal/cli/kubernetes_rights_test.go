package cli_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeyaml "sigs.k8s.io/yaml"

	"github.com/cnibench/cnibench/internal/kubeclient"
	"github.com/cnibench/cnibench/internal/result"
)

// as writes a kubeconfig of the cluster bridge for another user.
func (c *clusters) as(user string) string {
	c.t.Helper()
	var config map[string]any
	data, err := os.ReadFile(filepath.Join(c.work, "examples", "bridge.kubeconfig"))
	if err == nil {
		err = yaml.Unmarshal(data, &config)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	config["users"].([]any)[0].(map[string]any)["user"].(map[string]any)["as"] = user
	if data, err = yaml.Marshal(config); err != nil {
		c.t.Fatal(err)
	}
	return c.write(user+".kubeconfig", string(data))
}

// allow gives what cnibench rbac prints, but for one resource.
func (c *clusters) allow(text, without string) {
	c.t.Helper()
	client, err := kubeclient.Connect(filepath.Join(c.work, "examples", "bridge.kubeconfig"), "")
	if err != nil {
		c.t.Fatal(err)
	}
	const rbac = "/apis/rbac.authorization.k8s.io/v1/"
	for _, doc := range strings.Split(text, "---\n") {
		var kind metav1.TypeMeta
		if err := kubeyaml.Unmarshal([]byte(doc), &kind); err != nil {
			c.t.Fatal(err)
		}
		if kind.Kind != "Role" {
			path := map[string]string{
				"Namespace": "/api/v1/namespaces", "RoleBinding": rbac + "namespaces/" + kubeclient.OwnNamespace + "/rolebindings",
				"ClusterRole": rbac + "clusterroles", "ClusterRoleBinding": rbac + "clusterrolebindings",
			}[kind.Kind]
			// They exist from the time before.
			if err := client.CreateYAML(c.t.Context(), path, []byte(doc)); err != nil && !strings.Contains(err.Error(), "already exists") {
				c.t.Fatal(err)
			}
			continue
		}
		var role rbacv1.Role
		if err := kubeyaml.UnmarshalStrict([]byte(doc), &role); err != nil {
			c.t.Fatal(err)
		}
		role.Rules = slices.DeleteFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return r.Resources[0] == without })
		roles := client.API.RbacV1().Roles(role.Namespace)
		if _, err = roles.Create(c.t.Context(), &role, metav1.CreateOptions{}); err != nil {
			_, err = roles.Update(c.t.Context(), &role, metav1.UpdateOptions{})
		}
		if err != nil {
			c.t.Fatal(err)
		}
	}
}

// granted waits until the API server applies what allow gave.
func (c *clusters) granted(config, without string) {
	c.t.Helper()
	client, err := kubeclient.Connect(config, "")
	if err != nil {
		c.t.Fatal(err)
	}
	var lacks, cluster []kubeclient.Lack
	for range 300 {
		lacks, err = client.Lacks(c.t.Context(), kubeclient.NamespaceRights(), kubeclient.OwnNamespace)
		if err == nil {
			cluster, err = client.Lacks(c.t.Context(), kubeclient.DetectionRights(), "")
		}
		if err == nil && len(cluster) == 0 && !slices.ContainsFunc(lacks, func(l kubeclient.Lack) bool { return without == "" || !strings.HasPrefix(l.Resource, without) }) {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	c.t.Fatalf("after 30 s the user still lacks %v %v, %v", lacks, cluster, err)
}

// rights: a user with the printed roles alone runs a campaign in the printed namespace, of one pair of nodes
// and of all; one with less learns what is missing before anything is created.
func (c *clusters) rights() {
	t := c.t
	c.write("mesh.yaml", `name: mesh
testbed: kubernetes
pairs: all
workloads: [{name: tcp_rr, message_bytes: [64]}]
sampling: {slices: 8, seconds: 0.1, warmup_seconds: 0.05, explain_seconds: 0.1, min_blocks: 2, max_blocks: 2, retries: 3}
`)
	config := c.as("alice")
	text := c.run("rbac", "--user", "alice", "--host-network")
	refused := func(when string, want, not []string) {
		res, err := c.runner.Run(t.Context(), c.command("run", "examples/mesh.yaml", "--kubeconfig", config, "--namespace", kubeclient.OwnNamespace, "--out", "none"))
		said := string(res.Stderr)
		if err == nil || res.ExitCode != 1 {
			t.Errorf("%s: status %d, %v", when, res.ExitCode, err)
		}
		for _, w := range append(want, `user "alice"`, "nothing was created", "cnibench rbac --namespace cnibench --user alice") {
			if !strings.Contains(said, w) {
				t.Errorf("%s: no %q in\n%s", when, w, said)
			}
		}
		for _, n := range not {
			if strings.Contains(said, n) {
				t.Errorf("%s: %q in\n%s", when, n, said)
			}
		}
		if names := c.left("bridge"); len(names) > 0 {
			t.Errorf("%s: made %v", when, names)
		}
		if _, err := os.Stat(filepath.Join(c.work, "none")); err == nil {
			t.Errorf("%s: a result directory was made", when)
		}
	}
	refused("without any right", []string{"create pods/exec", "create pods in namespace cnibench"}, nil)
	c.allow(text, "pods/exec")
	c.granted(config, "pods/exec")
	refused("without exec", []string{"create pods/exec"}, []string{"create pods in"})
	c.allow(text, "")
	c.granted(config, "")
	c.run("run", "examples/mesh.yaml", "--kubeconfig", config, "--namespace", kubeclient.OwnNamespace, "--out", "mesh", "--seed", "1")
	report := c.run("report", "mesh", "--long")
	words := strings.Join(strings.Fields(report), " ") // a terminal breaks lines anywhere
	if !strings.Contains(words, "2 pairs of 2 nodes") || !strings.Contains(words, `from \ to node1 node2`) {
		t.Errorf("the report has no pairs:\n%s", report)
	}
	recorded, err := result.Read(filepath.Join(c.work, "mesh"))
	if err != nil {
		t.Fatal(err)
	}
	measured := map[string]int{}
	for _, s := range recorded.Samples {
		if s.Status == result.StatusOK {
			measured[s.Cell.Network+" "+s.Cell.ClientNode+" "+s.Cell.ServerNode]++
		}
	}
	for _, key := range []string{"bridge node1 node2", "bridge node2 node1", "host node1 node2", "host node2 node1"} {
		if measured[key] != 2 {
			t.Errorf("measured %v, want two of %s", measured, key)
		}
	}
	c.run("run", "examples/one.yaml", "--kubeconfig", config, "--namespace", kubeclient.OwnNamespace, "--out", "alice")
	if recorded, err := result.Read(filepath.Join(c.work, "alice")); err != nil || len(recorded.Samples) < 10 {
		t.Errorf("%d records of alice, %v", len(recorded.Samples), err)
	}
	if names := c.left("bridge"); len(names) > 0 {
		t.Errorf("left: %v", names)
	}
	c.within()
}

// within: an admin of one namespace, by Kubernetes' own role for that, runs in it
// and gives its printed Role on; nothing but the namespace's own is left in it.
func (c *clusters) within() {
	t := c.t
	client, err := kubeclient.Connect(filepath.Join(c.work, "examples", "bridge.kubeconfig"), "")
	if err != nil {
		t.Fatal(err)
	}
	team := corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}
	admin := rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "carol", Namespace: "team"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "admin"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "carol"}}}
	limits := corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "limits", Namespace: "team"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{
		{Type: corev1.LimitTypeContainer, Default: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}}}}
	_, namespaceErr := client.API.CoreV1().Namespaces().Create(t.Context(), &team, metav1.CreateOptions{})
	_, adminErr := client.API.RbacV1().RoleBindings("team").Create(t.Context(), &admin, metav1.CreateOptions{})
	_, limitsErr := client.API.CoreV1().LimitRanges("team").Create(t.Context(), &limits, metav1.CreateOptions{})
	if err := errors.Join(namespaceErr, adminErr, limitsErr); err != nil {
		t.Fatal(err)
	}
	config := c.as("carol")
	carol, err := kubeclient.Connect(config, "")
	if err != nil {
		t.Fatal(err)
	}
	for range 300 { // the API server learns of a binding a moment later
		if err = carol.CheckRights(t.Context(), "team"); err == nil {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range strings.Split(c.run("rbac", "--namespace", "team", "--user", "dave"), "---\n") {
		path := "/apis/rbac.authorization.k8s.io/v1/namespaces/team/" + []string{"roles", "rolebindings"}[i]
		if err := carol.CreateYAML(t.Context(), path, []byte(text)); err != nil {
			t.Errorf("carol gives her rights on: %v", err)
		}
	}
	c.write("team.yaml", `name: team
testbed: kubernetes
paths: [{from: pod, to: pod}, {from: pod, to: cluster-ip}, {from: pod, to: node-port}]
workloads: [{name: tcp_rr, message_bytes: [64]}]
sampling: {slices: 8, seconds: 0.1, warmup_seconds: 0.05, explain_seconds: 0.1, min_blocks: 2, max_blocks: 2, retries: 3}
`)
	c.run("run", "examples/team.yaml", "--kubeconfig", c.as("dave"), "--namespace", "team", "--out", "team")
	recorded, err := result.Read(filepath.Join(c.work, "team"))
	if err != nil {
		t.Fatal(err)
	}
	measured := map[string]int{}
	for _, s := range recorded.Samples {
		if s.Status == result.StatusOK {
			measured[s.Cell.Path]++
		}
	}
	for _, path := range []string{result.PathPodToPod, result.PathPodToClusterIP, result.PathPodToNodePort, result.PathHostToHost} {
		if measured[path] != 2 {
			t.Errorf("measured %v, want two of %s", measured, path)
		}
	}
	if report := c.run("report", "team", "--format", "json"); !strings.Contains(report, `"pods_limited"`) {
		t.Errorf("the report does not warn of the LimitRange:\n%s", report)
	}
	if out := c.run("clean", "--kubeconfig", config, "--namespace", "team"); !strings.Contains(out, "killed runs left nothing") {
		t.Errorf("clean: %s", out)
	}
	if ns, err := client.API.CoreV1().Namespaces().Get(t.Context(), "team", metav1.GetOptions{}); err != nil || ns.DeletionTimestamp != nil {
		t.Errorf("the namespace: %+v, %v", ns, err)
	}
}
