package kubetest

import (
	"bufio"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnibench/cnibench/internal/kubeclient"
)

// TestServe: a client of the cluster over HTTP creates, lists by label, updates and deletes
// objects, and speaks to the agent of a pod; conditions and errors reach it.
func TestServe(t *testing.T) {
	c := New("a", "b")
	client, err := kubeclient.Connect(c.Serve(t), "")
	if err != nil {
		t.Fatal(err)
	}
	spaces := client.API.CoreV1().Namespaces()
	for name, label := range map[string]string{"cnb-1": "x", "other": "y"} {
		if _, err := spaces.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"l": label}}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	list, err := spaces.List(t.Context(), metav1.ListOptions{LabelSelector: "l=x"})
	if err != nil || len(list.Items) != 1 || list.Items[0].Name != "cnb-1" || list.Items[0].UID == "" {
		t.Fatalf("%v, %v", list, err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "cnb-1"}, Spec: corev1.PodSpec{Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{Values: []string{"b"}}}}}}}}}}
	if made, err := client.API.CoreV1().Pods("cnb-1").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil || made.Spec.NodeName != "b" || made.Status.Phase != corev1.PodRunning {
		t.Fatalf("%+v, %v", made, err)
	}
	p := client.Exec(t.Context(), kubeclient.Target{Namespace: "cnb-1", Pod: "p"}, []string{"cnibench", "agent"})
	if _, err := p.Stdin.Write([]byte(`{"id":7,"method":"clock"}` + "\n")); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(p.Stdout).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, `{"id":7,"result":`) {
		t.Errorf("%q, %v", line, err)
	}
	if err := p.Kill(); err != nil {
		t.Error(err)
	}
	if err := p.Wait(); err == nil {
		t.Error("a program that was killed ended well")
	}
	wrong := metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions("another")}
	if err := spaces.Delete(t.Context(), "cnb-1", wrong); !apierrors.IsConflict(err) {
		t.Errorf("deleted by another UID: %v", err)
	}
	right := metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(list.Items[0].UID))}
	if err := spaces.Delete(t.Context(), "cnb-1", right); err != nil {
		t.Error(err)
	}
	if _, err := client.API.CoreV1().Pods("cnb-1").Get(t.Context(), "p", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the pod of a deleted namespace: %v", err)
	}
	if _, err := client.API.Discovery().ServerVersion(); err != nil {
		t.Error(err)
	}
}
