package kube

import (
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

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
