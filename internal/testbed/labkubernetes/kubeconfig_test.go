package labkubernetes

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOnlyKubeconfigsOfLabsAreReplaced(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	ours := filepath.Join(dir, "ours")
	c := &Cluster{Spec: Spec{Name: "x"}, pki: &pki{}}
	if err := c.writeKubeconfig(ours, "https://127.0.0.1:1", "admin", identity{}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(ours); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v (%v), want a file for its owner only", info, err)
	}
	for _, fine := range []string{"", ours, filepath.Join(dir, "absent"), write("empty", "")} {
		if err := CheckKubeconfig(fine); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{dir, write("theirs", "apiVersion: v1\nkind: Config\n"), write("ssh", "-----BEGIN")} {
		if err := CheckKubeconfig(bad); err == nil || !strings.Contains(err.Error(), "name another file") {
			t.Errorf("%s: %v, want a refusal", bad, err)
		}
	}
}
