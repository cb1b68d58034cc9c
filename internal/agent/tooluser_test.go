package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/workload"
)

// TestToolsAreNobody: an agent that is root runs tools as a user who owns nothing but the
// tool's scratch folder.
func TestToolsAreNobody(t *testing.T) {
	labtest.Root(t)
	if toolUser() != nobody {
		t.Skip("this root may not become another user")
	}
	c := start(t)
	out, err := drive(t, c, workload.Program{Timeout: 10 * time.Second, Files: map[string]string{"a": "text"},
		Argv: []string{"sh", "-c", "id -u; id -g; id -G; cat {dir}/a; touch {dir}/b && echo made; cat /etc/shadow; ls {dir}/.."}})
	if err != nil {
		t.Fatal(err)
	}
	if want := "65534\n65534\n65534\ntextmade\n"; out.Stdout != want {
		t.Errorf("stdout %q, want %q", out.Stdout, want)
	}
	if strings.Count(out.Stderr, "Permission denied") != 2 {
		t.Errorf("stderr %q", out.Stderr)
	}
}

func TestNobodyInAUserNamespace(t *testing.T) {
	for text, want := range map[string]bool{
		"         0          0 4294967295\n": true,
		"         0       1000          1\n": false,
		"0 1000 1\n1 100000 65536\n":         true,
		"0 100000 65534\n":                   false,
		"":                                   false,
		"x y z\n":                            false,
	} {
		path := filepath.Join(t.TempDir(), "map")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := maps65534(path); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// TestToolsBind: a serving tool listens on the measured address where that is this
// place's own, and on all where it is a service's.
func TestToolsBind(t *testing.T) {
	labtest.Slow(t)
	for _, k := range []struct{ address, any, want string }{
		{"127.0.0.1", "0.0.0.0", "127.0.0.1 127.0.0.1:"},
		{"192.0.2.200", "0.0.0.0", "0.0.0.0 0.0.0.0:"}, {"192.0.2.200", "::", ":: [::]:"},
		{"", "0.0.0.0", "0.0.0.0 0.0.0.0:"}, {"0.0.0.0", "0.0.0.0", "0.0.0.0 0.0.0.0:"},
	} {
		c := start(t)
		var se ServeResult
		p := workload.Program{Argv: []string{"sh", "-c", "echo {bind} {listen}; sleep 60"}, AnyAddress: k.any, Port: true, Timeout: time.Minute}
		if err := c.Call(t.Context(), MethodServe, ServeParams{Program: p, Address: k.address}, &se); err != nil {
			t.Fatal(err)
		}
		var out workload.Output
		if err := c.Call(t.Context(), MethodFinish, FinishParams{Session: se.Session}, &out); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(strings.Join(out.Argv, " "), "sh -c echo "+k.want) {
			t.Errorf("%+v: %q", k, out.Argv)
		}
	}
}

// TestFoldersAreGivenLast: whoever gets a folder before the files in it can put a link
// where a file was, and gets what that leads to.
func TestFoldersAreGivenLast(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "sub/b", "z"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	given := map[string]bool{}
	err := giveAll(dir, func(path string) error {
		if given[filepath.Dir(path)] {
			t.Errorf("%s is given after its folder", path)
		}
		given[path] = true
		return nil
	})
	if err != nil || len(given) != 5 || !given[dir] {
		t.Errorf("%d were given: %v (%v)", len(given), given, err)
	}
}
