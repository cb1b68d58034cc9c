package cli_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeyaml "sigs.k8s.io/yaml"

	"github.com/cnibench/cnibench/internal/image"
	"github.com/cnibench/cnibench/internal/kubeclient"
	"github.com/cnibench/cnibench/internal/result"
)

// jobPatience bounds the wait for the Job, and for the end of its pod.
const jobPatience = 2 * time.Minute

// job applies deploy/kubernetes to the cluster bridge, as kubectl apply -k does, and waits
// for the summary: one command and an image. Only what the cluster decides is changed: the
// name of the image on its nodes, a volume (it has no storage class), and the length of the
// campaign.
func (c *clusters) job() {
	t := c.t
	client, err := kubeclient.Connect(filepath.Join(c.work, "examples", "bridge.kubeconfig"), "")
	if err != nil {
		t.Fatal(err)
	}
	data := c.volume(client)
	for _, name := range []string{"rbac.yaml", "campaign.yaml", "job.yaml"} {
		for _, text := range strings.Split(c.deployed(name), "\n---\n") {
			c.apply(client, text)
		}
	}
	jobs := client.API.BatchV1().Jobs(kubeclient.OwnNamespace)
	var job *batchv1.Job
	for end := time.Now().Add(jobPatience); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		if job, err = jobs.Get(t.Context(), "cnibench", metav1.GetOptions{}); err != nil {
			t.Fatal(err)
		}
		if job.Status.Succeeded+job.Status.Failed > 0 {
			break
		}
	}
	log := c.jobLog(client)
	if job.Status.Succeeded != 1 {
		t.Fatalf("the Job ended with %+v:\n%s", job.Status, log)
	}
	for _, want := range []string{"network bridge", "stopped after 2 blocks", "report: results/cluster-"} {
		if !strings.Contains(log, want) {
			t.Errorf("the Job's log has no %q:\n%s", want, log)
		}
	}
	found, err := filepath.Glob(filepath.Join(data, "results", "cluster-*"))
	if err != nil || len(found) != 1 {
		t.Fatalf("the volume has the results %v, %v", found, err)
	}
	recorded, err := result.Read(found[0])
	if err != nil {
		t.Fatal(err)
	}
	measured := map[string]int{}
	for _, s := range recorded.Samples {
		if s.Status == result.StatusOK {
			measured[s.Cell.Network+" "+s.Cell.Workload]++
		}
	}
	for _, key := range []string{"bridge tcp_stream", "bridge tcp_rr"} {
		if measured[key] != 2 {
			t.Errorf("measured %v, want two of %s", measured, key)
		}
	}
	c.jobGone(client)
}

// oneCommand is what a new user types: a run without a file on the cluster of a kubeconfig,
// whose nodes have the image. It ends with the summary and leaves nothing.
func (c *clusters) oneCommand() {
	c.t.Helper()
	summary := c.run("run", "--kubeconfig", "examples/bridge.kubeconfig", "--yes", "--for", "5s", "--out", "one-command")
	for _, want := range []string{"compared with the bare", "bridge"} {
		if !strings.Contains(summary, want) {
			c.t.Errorf("the summary has no %q:\n%s", want, summary)
		}
	}
	if names := c.left("bridge"); len(names) > 0 {
		c.t.Errorf("left: %v", names)
	}
}

// volume is a folder of this machine, which is that of all nodes, as a volume that the
// deployment's claim is bound to.
func (c *clusters) volume(client *kubeclient.Client) (dir string) {
	c.t.Helper()
	dir = filepath.Join(c.work, "volume")
	err := errors.Join(os.Mkdir(dir, 0o755), os.Chmod(dir, 0o777)) // the Job's user has no name here
	kind := corev1.HostPathDirectory
	volume := corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "cnibench"}, Spec: corev1.PersistentVolumeSpec{
		Capacity:               corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
		AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: dir, Type: &kind}},
	}}
	if err == nil {
		_, err = client.API.CoreV1().PersistentVolumes().Create(c.t.Context(), &volume, metav1.CreateOptions{})
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return dir
}

// deployed is a file of deploy/kubernetes as this cluster needs it.
func (c *clusters) deployed(name string) string {
	c.t.Helper()
	data, err := os.ReadFile(filepath.Join("../../deploy/kubernetes", name))
	if err != nil {
		c.t.Fatal(err)
	}
	text := string(data)
	replace := func(old, by string, times int) {
		c.t.Helper()
		if n := strings.Count(text, old); n != times {
			c.t.Fatalf("%s has %q %d times, want %d", name, old, n, times)
		}
		text = strings.ReplaceAll(text, old, by)
	}
	switch name {
	case "job.yaml":
		var info struct{ Version string }
		if err := json.Unmarshal([]byte(c.run("version", "-o", "json")), &info); err != nil {
			c.t.Fatal(err)
		}
		replace("cnibench.invalid/cnibench:v0.1.0", image.Name(info.Version, false), 2)
	case "campaign.yaml":
		replace("      seconds: 1\n", "      seconds: 0.2\n", 1)
		replace("min_blocks: 5\n", "min_blocks: 2\n", 1)
		replace("max_blocks: 30\n", "max_blocks: 2\n", 1)
	}
	return text
}

// apply creates an object. Those that cnibench rbac prints are in the cluster already, for
// another user: they become the deployment's.
func (c *clusters) apply(client *kubeclient.Client, text string) {
	t := c.t
	t.Helper()
	var kind metav1.TypeMeta
	if err := kubeyaml.Unmarshal([]byte(text), &kind); err != nil {
		t.Fatal(err)
	}
	const rbac, own = "/apis/rbac.authorization.k8s.io/v1/", "namespaces/" + kubeclient.OwnNamespace
	path := map[string]string{
		"Namespace": "/api/v1/namespaces", "ServiceAccount": "/api/v1/" + own + "/serviceaccounts",
		"ConfigMap": "/api/v1/" + own + "/configmaps", "PersistentVolumeClaim": "/api/v1/" + own + "/persistentvolumeclaims",
		"Job": "/apis/batch/v1/" + own + "/jobs", "Role": rbac + own + "/roles", "RoleBinding": rbac + own + "/rolebindings",
		"ClusterRole": rbac + "clusterroles", "ClusterRoleBinding": rbac + "clusterrolebindings",
	}[kind.Kind]
	if path == "" {
		t.Fatalf("the deployment has a %s, which this test cannot apply", kind.Kind)
	}
	err := client.CreateYAML(t.Context(), path, []byte(text))
	if err == nil || !strings.Contains(err.Error(), "already exists") {
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	switch kind.Kind {
	case "Namespace":
		var wanted corev1.Namespace
		if err = kubeyaml.UnmarshalStrict([]byte(text), &wanted); err != nil {
			break
		}
		var now *corev1.Namespace
		if now, err = client.API.CoreV1().Namespaces().Get(t.Context(), wanted.Name, metav1.GetOptions{}); err != nil {
			break
		}
		now.Labels = wanted.Labels
		_, err = client.API.CoreV1().Namespaces().Update(t.Context(), now, metav1.UpdateOptions{})
	case "Role":
		var role rbacv1.Role
		if err = kubeyaml.UnmarshalStrict([]byte(text), &role); err == nil {
			_, err = client.API.RbacV1().Roles(role.Namespace).Update(t.Context(), &role, metav1.UpdateOptions{})
		}
	case "ClusterRole": // that of alice is the same
		err = nil
	}
	if err != nil {
		t.Fatal(err)
	}
}

// jobLog is what the Job's pod wrote, and the events about it where there is nothing.
func (c *clusters) jobLog(client *kubeclient.Client) string {
	c.t.Helper()
	pods, err := client.API.CoreV1().Pods(kubeclient.OwnNamespace).List(c.t.Context(), metav1.ListOptions{LabelSelector: "job-name=cnibench"})
	if err != nil {
		c.t.Fatal(err)
	}
	var all strings.Builder
	for _, pod := range pods.Items {
		text, err := client.API.CoreV1().Pods(kubeclient.OwnNamespace).GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(c.t.Context())
		if err != nil {
			all.WriteString(err.Error() + "\n")
		}
		all.Write(text)
	}
	if all.Len() > 0 {
		return all.String()
	}
	events, err := client.API.CoreV1().Events(kubeclient.OwnNamespace).List(c.t.Context(), metav1.ListOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	for _, e := range events.Items {
		all.WriteString(e.InvolvedObject.Kind + " " + e.InvolvedObject.Name + ": " + e.Message + "\n")
	}
	return all.String()
}

// jobGone deletes the Job and waits until the namespace has no pod and no lease: the run
// has removed its own, the garbage collector removes the Job's.
func (c *clusters) jobGone(client *kubeclient.Client) {
	c.t.Helper()
	with := metav1.DeletePropagationBackground
	if err := client.API.BatchV1().Jobs(kubeclient.OwnNamespace).Delete(c.t.Context(), "cnibench", metav1.DeleteOptions{PropagationPolicy: &with}); err != nil {
		c.t.Fatal(err)
	}
	var names []string
	for end := time.Now().Add(jobPatience); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		if names = slices.Compact(c.left("bridge")); len(names) == 0 {
			return
		}
	}
	c.t.Errorf("the Job left: %v", names)
}
