package kubeclient

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/cnibench/cnibench/internal/labtest/fuzzed"
)

// adminConf is what kubeadm leaves on a control plane.
const adminConf = `apiVersion: v1
kind: Config
current-context: admin
clusters: [{name: c, cluster: {server: "https://192.0.2.1:6443", certificate-authority-data: Y2E=, proxy-url: "http://192.0.2.66:1"}}]
users: [{name: u, user: {client-certificate-data: Y3J0, client-key-data: a2V5, as: root}}, {name: other, user: {token: elsewhere}}]
contexts: [{name: admin, context: {cluster: c, user: u}}]
`

// TestReduce: server, CA and inline credentials are kept and nothing else is; whatever
// would run a program or read a file of this machine is refused.
func TestReduce(t *testing.T) {
	out, err := Reduce([]byte(adminConf))
	if err != nil {
		t.Fatal(err)
	}
	got, err := clientcmd.Load(out)
	if err != nil {
		t.Fatal(err)
	}
	c, u := got.Clusters[reducedName], got.AuthInfos[reducedName]
	if c.Server != "https://192.0.2.1:6443" || string(c.CertificateAuthorityData) != "ca" || string(u.ClientCertificateData) != "crt" || string(u.ClientKeyData) != "key" {
		t.Errorf("%s", out)
	}
	for _, gone := range []string{"proxy", "192.0.2.66", "as:", "root", "elsewhere", "admin"} {
		if strings.Contains(string(out), gone) {
			t.Errorf("%q is still in\n%s", gone, out)
		}
	}
	mark := filepath.Join(t.TempDir(), "ran")
	for _, k := range []struct{ from, to, want string }{
		{"as: root", `exec: {apiVersion: client.authentication.k8s.io/v1, command: touch, args: [` + mark + `], interactiveMode: Never}`, "a program (exec)"},
		{"as: root", "auth-provider: {name: oidc}", "auth-provider"},
		{"as: root", "tokenFile: /etc/shadow", "tokenFile"},
		{"client-certificate-data: Y3J0", "client-certificate: /etc/shadow", "a file"},
		{"client-key-data: a2V5", "client-key: /etc/shadow", "a file"},
		{"certificate-authority-data: Y2E=", "certificate-authority: /etc/shadow", "a file"},
		{"certificate-authority-data: Y2E=", "insecure-skip-tls-verify: true", "unverified"},
		{"client-certificate-data: Y3J0, client-key-data: a2V5, ", "", "neither a token"},
		{"https://192.0.2.1", "http://192.0.2.1", "want https"},
		{"https://192.0.2.1", "https://a:b@192.0.2.1", "no URL"},
		{"current-context: admin", "current-context: none", "no current context"},
		{"user: u}", "user: nobody}", "no user"},
		{"apiVersion", "\x00", "no kubeconfig"},
	} {
		text := strings.Replace(adminConf, k.from, k.to, 1)
		if text == adminConf {
			t.Fatalf("%s: nothing to replace", k.from)
		}
		if _, err := Reduce([]byte(text)); err == nil || !strings.Contains(err.Error(), k.want) {
			t.Errorf("%s: %v, want %q", k.to, err, k.want)
		}
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("the program of exec ran")
	}
}

// FuzzReduce: nothing that comes out names a program, a file or a proxy.
func FuzzReduce(f *testing.F) {
	f.Add([]byte(adminConf))
	f.Add([]byte(strings.Replace(adminConf, "as: root", "tokenFile: /etc/shadow", 1)))
	f.Fuzz(func(t *testing.T, in []byte) {
		defer fuzzed.Within(t)()
		out, err := Reduce(in)
		if err != nil {
			return
		}
		config, err := clientcmd.Load(out)
		if err != nil {
			t.Fatalf("%v:\n%s", err, out)
		}
		u, c := config.AuthInfos[reducedName], config.Clusters[reducedName]
		if len(config.AuthInfos) != 1 || len(config.Clusters) != 1 || u.Exec != nil || u.AuthProvider != nil || u.TokenFile+u.ClientCertificate+u.ClientKey+c.CertificateAuthority+c.ProxyURL != "" {
			t.Errorf("%s", out)
		}
	})
}
