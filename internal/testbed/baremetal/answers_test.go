package baremetal

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/kubeclient"
	"github.com/cnibench/cnibench/internal/labtest"
)

// TestVarsAreNotTemplates: a variable that holds a template is a text for Ansible, which
// 83aa48e evaluated on this machine.
func TestVarsAreNotTemplates(t *testing.T) {
	labtest.Tool(t, "ansible-playbook", "ansible-core")
	r := exec.NewRunner()
	t.Cleanup(r.Close)
	p, err := newPlayer(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.close(); err != nil {
			t.Error(err)
		}
	})
	mark := filepath.Join(t.TempDir(), "ran")
	evil := "{{ lookup('pipe', 'touch " + mark + "') }}"
	// The same way as playbooks/tune.yml takes the device.
	book := filepath.Join(p.dir.Name(), "ansible_collections/cnibench/testbed/playbooks/show.yml")
	if err := os.WriteFile(book, []byte(`- hosts: localhost
  gather_facts: false
  tasks:
    - name: Show
      ansible.builtin.debug:
        msg: "{{ [devices[inventory_hostname]] + [plain, mtu] }}"
`), 0o600); err != nil {
		t.Fatal(err)
	}
	odd := "a\"b\\c: #{% x %}é\x01"
	records, err := p.play(t.Context(), "localhost,", "show", map[string]any{"devices": map[string]string{"localhost": evil}, "plain": odd, "mtu": 1500}, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("the template was evaluated")
	}
	shown, _ := records[0].Msg.([]any)
	if len(shown) != 3 || shown[0] != evil || shown[1] != odd || shown[2] != 1500.0 {
		t.Errorf("shown as %q", records[0].Msg)
	}
	if _, err := unsafeVars(map[string]any{"x": struct{}{}}); err == nil {
		t.Error("a struct is taken")
	}
}

// fakeSSH puts a program called ssh before the real one, which prints text.
func fakeSSH(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "ssh"), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

// TestKubeconfigOfAHost: what a control plane sends is reduced and kept in memory; one
// that would run a program here is refused.
func TestKubeconfigOfAHost(t *testing.T) {
	const config = `apiVersion: v1
kind: Config
current-context: admin
clusters: [{name: c, cluster: {server: "https://192.0.2.1:6443"}}]
users: [{name: u, user: {token: SECRET}}]
contexts: [{name: admin, context: {cluster: c, user: u}}]
`
	tmp := labtest.OpenTempDir(t)
	t.Setenv("TMPDIR", tmp)
	labtest.Tool(t, "ansible-playbook", "ansible-core")
	r := exec.NewRunner()
	t.Cleanup(r.Close)
	p, err := newPlayer(r)
	if err != nil {
		t.Fatal(err)
	}
	b := &Testbed{options: Options{Runner: r}, player: p, ends: [2]*end{{}, {}},
		inventory: Inventory{ControlPlane: &Host{Name: "head", Address: "head", Kubeconfig: "/x"}}}
	fakeSSH(t, "cat <<'EOF'\n"+strings.Replace(config, "token: SECRET", "exec: {apiVersion: client.authentication.k8s.io/v1, command: id, interactiveMode: Never}", 1)+"EOF\n")
	if _, err := b.Kubeconfig(t.Context()); err == nil || !strings.Contains(err.Error(), "a program (exec)") {
		t.Errorf("%v", err)
	}
	fakeSSH(t, "cat <<'EOF'\n"+config+"EOF\n")
	path, err := b.Kubeconfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		c, err := kubeclient.Connect(path, "")
		if err != nil || c.Server != "https://192.0.2.1:6443" {
			t.Errorf("%+v, %v", c, err)
		}
	}
	err = filepath.WalkDir(tmp, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if strings.Contains(string(text), "SECRET") {
			t.Errorf("%s has the credentials", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if err := b.Release(); err != nil {
		t.Error(err)
	}
	if b.kubeconfig != nil {
		t.Error("the file in memory outlives the testbed")
	}
}
