package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/cnibench/cnibench/examples"
	"github.com/cnibench/cnibench/internal/campaign"
	"github.com/cnibench/cnibench/internal/kubeclient"
)

const deployDir = "../../deploy/kubernetes"

// TestDeploy: the kustomization has every file of its folder, each object is one that
// the API's types know field by field, and the Job starts a run that this program takes,
// with the rights of cnibench rbac and under Pod Security "restricted".
func TestDeploy(t *testing.T) {
	objects := deployed(t)
	job := find[*batchv1.Job](t, objects)
	pod := job.Spec.Template.Spec
	account := find[*corev1.ServiceAccount](t, objects)
	config := find[*corev1.ConfigMap](t, objects)
	claim := find[*corev1.PersistentVolumeClaim](t, objects)

	var rights bytes.Buffer
	if err := (kubeclient.RBAC{ServiceAccount: account.Namespace + "/" + account.Name}).Write(&rights); err != nil {
		t.Fatal(err)
	}
	printed := slices.DeleteFunc(strings.SplitAfter(deployFile(t, "rbac.yaml"), "\n"), func(line string) bool { return strings.HasPrefix(line, "#") })
	if diff := cmp.Diff(rights.String(), strings.Join(printed, "")); diff != "" {
		t.Errorf("rbac.yaml is not what cnibench rbac prints (-printed +file):\n%s", diff)
	}
	if pod.ServiceAccountName != account.Name {
		t.Errorf("the Job uses the service account %q, want %q", pod.ServiceAccountName, account.Name)
	}
	if text := config.Data["campaign.yaml"]; text != string(examples.Cluster) {
		t.Errorf("the ConfigMap's campaign is not examples/cluster.yaml:\n%s", cmp.Diff(string(examples.Cluster), text))
	} else if _, err := campaign.Parse("campaign.yaml", []byte(text), known()); err != nil {
		t.Error(err)
	}

	container := pod.Containers[0]
	mounts := map[string]string{}
	for _, m := range container.VolumeMounts {
		mounts[m.Name] = m.MountPath
	}
	for _, v := range pod.Volumes {
		switch {
		case v.ConfigMap != nil && (v.ConfigMap.Name != config.Name || container.Args[1] != mounts[v.Name]+"/campaign.yaml"):
			t.Errorf("the run reads %s, which is not in the ConfigMap %s at %s", container.Args[1], v.ConfigMap.Name, mounts[v.Name])
		case v.PersistentVolumeClaim != nil && (v.PersistentVolumeClaim.ClaimName != claim.Name || container.WorkingDir != mounts[v.Name]):
			t.Errorf("results go to %s, which is not the volume of %s", container.WorkingDir, claim.Name)
		}
	}
	testDeployedRun(t, container)
	restricted(t, pod)
}

// testDeployedRun parses the Job's arguments as the program does, and compares its
// images with each other and with the version of scripts/dist.sh.
func testDeployedRun(t *testing.T, container corev1.Container) {
	t.Helper()
	run, rest, err := Root(io.Discard, io.Discard).Find(container.Args)
	if err != nil || run.Name() != "run" {
		t.Fatalf("%q is no run: %v", container.Args, err)
	}
	if err := run.ParseFlags(rest); err != nil {
		t.Fatal(err)
	}
	if err := run.ValidateArgs(run.Flags().Args()); err != nil {
		t.Error(err)
	}
	for flag, want := range map[string]string{"image": container.Image, "namespace": kubeclient.OwnNamespace} {
		if got := run.Flags().Lookup(flag).Value.String(); got != want {
			t.Errorf("--%s is %q, want %q", flag, got, want)
		}
	}
	script, err := os.ReadFile("../../scripts/dist.sh")
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`DIST_VERSION:-([0-9.]+)\}`).FindSubmatch(script)
	if version == nil {
		t.Fatal("scripts/dist.sh has no default of DIST_VERSION")
	}
	if want := fmt.Sprintf(":v%s", version[1]); !strings.HasSuffix(container.Image, want) {
		t.Errorf("the image is %s, want a tag %s as scripts/dist.sh builds it", container.Image, want)
	}
}

// restricted checks the fields that Pod Security "restricted" demands.
func restricted(t *testing.T, pod corev1.PodSpec) {
	t.Helper()
	s, c := pod.SecurityContext, pod.Containers[0].SecurityContext
	if s == nil || c == nil || s.RunAsNonRoot == nil || c.AllowPrivilegeEscalation == nil || c.Capabilities == nil || s.SeccompProfile == nil {
		t.Fatal("the Job's pod has not all fields that Pod Security restricted demands")
	}
	if !*s.RunAsNonRoot || *c.AllowPrivilegeEscalation || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault ||
		!slices.Equal(c.Capabilities.Drop, []corev1.Capability{"ALL"}) || len(c.Capabilities.Add) > 0 || pod.HostNetwork {
		t.Error("Pod Security restricted refuses the Job's pod")
	}
}

// deployed renders the kustomization, which only lists files, and decodes every object
// strictly: an unknown field is an error.
func deployed(t *testing.T) []any {
	t.Helper()
	var k struct {
		APIVersion string   `json:"apiVersion"`
		Kind       string   `json:"kind"`
		Resources  []string `json:"resources"`
	}
	if err := yaml.UnmarshalStrict([]byte(deployFile(t, "kustomization.yaml")), &k); err != nil {
		t.Fatal(err)
	}
	entries, err := filepath.Glob(filepath.Join(deployDir, "*.yaml"))
	if err != nil || len(entries) != len(k.Resources)+1 {
		t.Errorf("the kustomization lists %q, and the folder has %q: %v", k.Resources, entries, err)
	}
	var all []any
	for _, name := range k.Resources {
		for _, text := range strings.Split(deployFile(t, name), "\n---\n") {
			all = append(all, decode(t, name, text))
		}
	}
	return all
}

func decode(t *testing.T, name, text string) any {
	t.Helper()
	var kind metav1.TypeMeta
	if err := yaml.Unmarshal([]byte(text), &kind); err != nil {
		t.Fatal(err)
	}
	types := map[string]any{
		"v1 Namespace": &corev1.Namespace{}, "v1 ServiceAccount": &corev1.ServiceAccount{}, "v1 ConfigMap": &corev1.ConfigMap{},
		"v1 PersistentVolumeClaim": &corev1.PersistentVolumeClaim{}, "batch/v1 Job": &batchv1.Job{},
		"rbac.authorization.k8s.io/v1 Role": &rbacv1.Role{}, "rbac.authorization.k8s.io/v1 RoleBinding": &rbacv1.RoleBinding{},
		"rbac.authorization.k8s.io/v1 ClusterRole": &rbacv1.ClusterRole{}, "rbac.authorization.k8s.io/v1 ClusterRoleBinding": &rbacv1.ClusterRoleBinding{},
	}
	object := types[kind.APIVersion+" "+kind.Kind]
	if object == nil {
		t.Fatalf("%s has an object of an unknown kind: %s %s", name, kind.APIVersion, kind.Kind)
	}
	if err := yaml.UnmarshalStrict([]byte(text), object); err != nil {
		t.Fatalf("%s, %s: %v", name, kind.Kind, err)
	}
	meta, ok := object.(metav1.Object)
	if !ok || meta.GetName() == "" {
		t.Fatalf("%s: a %s has no name", name, kind.Kind)
	}
	if cluster := strings.HasPrefix(kind.Kind, "ClusterRole") || kind.Kind == "Namespace"; !cluster && meta.GetNamespace() != kubeclient.OwnNamespace {
		t.Errorf("%s: %s %s is in the namespace %q, want %q", name, kind.Kind, meta.GetName(), meta.GetNamespace(), kubeclient.OwnNamespace)
	}
	return object
}

// find is the one object of a type.
func find[T any](t *testing.T, objects []any) T {
	t.Helper()
	for _, o := range objects {
		if found, is := o.(T); is {
			return found
		}
	}
	var none T
	t.Fatalf("no %T is deployed", none)
	return none
}

func deployFile(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(deployDir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
