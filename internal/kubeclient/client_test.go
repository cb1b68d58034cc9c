package kubeclient

import (
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/cnibench/cnibench/internal/fault"
)

// TestAPIServersThatAnswerBadly: whatever an API server answers, or does not, is one error
// with its cure, in bounded time and memory.
func TestAPIServersThatAnswerBadly(t *testing.T) {
	for how, want := range map[fault.How][]string{
		fault.TooManyForLong: {"too many requests", "the API server is busy: try again"},
		fault.Broken:         {"etcdserver: no leader"},
		fault.Silent:         {"does not answer", "kubectl --context"},
		fault.Cut:            {"unexpected EOF"},
		fault.Garbage:        {"list the pods: "},
		fault.Endless:        {"the API server's answer is longer than 1 MiB"},
	} {
		t.Run(string(how), func(t *testing.T) {
			t.Parallel()
			a := fault.NewAPIServer(t, how)
			config, err := clientcmd.BuildConfigFromFlags("", a.Kubeconfig)
			if err != nil {
				t.Fatal(err)
			}
			c, err := connect(config, "fault", bounds{within: 2 * time.Second, most: 1 << 20})
			if err != nil {
				t.Fatal(err)
			}
			begin := time.Now()
			_, err = c.API.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
			said := ""
			if err = c.Explain("list the pods", err); err != nil {
				said = err.Error()
			}
			if took := time.Since(begin); took > 10*time.Second {
				t.Errorf("it took %v", took)
			}
			for _, w := range want {
				if !strings.Contains(said, w) {
					t.Errorf("no %q in %q", w, said)
				}
			}
			if strings.ContainsAny(said, "\x1b\n") {
				t.Errorf("%q steers the terminal", said)
			}
			if a.Sent() > 64<<20 {
				t.Errorf("%d bytes of an endless answer were read", a.Sent())
			}
			a.Answer(fault.Healthy)
			if pods, err := c.API.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{}); err != nil || len(pods.Items) > 0 {
				t.Errorf("once it is healthy: %v", err)
			}
		})
	}
}

const kubeconfig = `apiVersion: v1
kind: Config
current-context: one
clusters: [{name: c, cluster: {server: "https://127.0.0.1:6443"}}]
users: [{name: u, user: {token: t}}]
contexts: [{name: one, context: {cluster: c, user: u}}, {name: two, context: {cluster: c, user: u}}]
`

func TestConnect(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "config")
	if err := os.WriteFile(file, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	for context, want := range map[string]string{"": "one", "two": "two"} {
		c, err := Connect(file, context)
		if err != nil || c.Context != want || c.Server != "https://127.0.0.1:6443" {
			t.Errorf("%s: %+v, %v", context, c, err)
		}
	}
	for what, k := range map[string]struct{ file, context, want string }{
		"no such file":    {filepath.Join(dir, "none"), "", "no such file"},
		"no such context": {file, "three", "no context \"three\""},
	} {
		if _, err := Connect(k.file, k.context); err == nil || !strings.Contains(err.Error(), k.want) {
			t.Errorf("%s: %v", what, err)
		}
	}
	t.Setenv("KUBECONFIG", filepath.Join(dir, "none"))
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	if _, err := Connect("", ""); err == nil || !strings.Contains(err.Error(), "--kubeconfig FILE") {
		t.Errorf("no kubeconfig: %v", err)
	}
}

func TestExplain(t *testing.T) {
	c := &Client{Context: "ctx", Server: "https://there"}
	pods := schema.GroupResource{Resource: "pods"}
	for _, k := range []struct {
		err  error
		want []string
	}{
		{apierrors.NewForbidden(pods, "a", errors.New("User u cannot")), []string{"make it: ", "User u cannot", "cnibench rbac"}},
		{apierrors.NewForbidden(pods, "a", errors.New("exceeded quota: small")), []string{"exceeded quota: small", "describe quota"}},
		{apierrors.NewForbidden(pods, "a", errors.New("violates PodSecurity \"restricted:latest\"")), []string{"the cluster's Pod Security"}},
		{apierrors.NewUnauthorized("who are you"), []string{"does not know this user", "log in again"}},
		{&url.Error{Op: "Get", URL: "https://there", Err: errors.New("connection refused")}, []string{"of context ctx (https://there) does not answer", "kubectl --context ctx"}},
	} {
		err := c.Explain("make it", k.err)
		for _, want := range k.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v: %q lacks %q", k.err, err, want)
			}
		}
		if !errors.Is(err, k.err) {
			t.Errorf("%v is lost in %v", k.err, err)
		}
	}
	if c.Explain("x", nil) != nil {
		t.Error("no error became one")
	}
}

// TestHalfOpenAPIServer: the kernel of a machine takes connections for a server that is
// stopped.
func TestHalfOpenAPIServer(t *testing.T) {
	c, err := connect(&rest.Config{Host: "http://" + fault.HalfOpen(t)}, "fault", bounds{within: 500 * time.Millisecond, most: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	_, err = c.API.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
	if err = c.Explain("list the pods", err); err == nil || !strings.Contains(err.Error(), "does not answer") || time.Since(begin) > 10*time.Second {
		t.Errorf("after %v: %v", time.Since(begin), err)
	}
}

// TestBusyAPIServerIsAskedAgain: one that is busy for a moment fails nothing.
func TestBusyAPIServerIsAskedAgain(t *testing.T) {
	a := fault.NewAPIServer(t, fault.TooMany)
	c, err := Connect(a.Kubeconfig, "")
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(300*time.Millisecond, func() { a.Answer(fault.Healthy) })
	if _, err := c.API.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
}
