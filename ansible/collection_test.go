package ansible

import (
	"context"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/labtest"
)

var update = flag.Bool("update", false, "write README.md")

// option is one variable of a role, as its argument specification says.
type option struct {
	Description string `yaml:"description"`
	Type        string `yaml:"type"`
	Elements    string `yaml:"elements"`
	Choices     []any  `yaml:"choices"`
	Default     any    `yaml:"default"`
}

type spec struct {
	Main struct {
		Short       string            `yaml:"short_description"`
		Description []string          `yaml:"description"`
		Options     map[string]option `yaml:"options"`
	} `yaml:"main"`
}

func specs(t *testing.T) map[string]spec {
	t.Helper()
	all := map[string]spec{}
	roles, err := fs.ReadDir(Files, "roles")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range roles {
		var file struct {
			Specs spec `yaml:"argument_specs"`
		}
		text, err := fs.ReadFile(Files, "roles/"+r.Name()+"/meta/argument_specs.yml")
		if err == nil {
			err = yaml.UnmarshalWithOptions(text, &file, yaml.Strict())
		}
		if err != nil {
			t.Fatalf("%s: %v", r.Name(), err)
		}
		all[r.Name()] = file.Specs
	}
	return all
}

// code writes Ansible's C(word) as Markdown does.
func code(s string) string {
	for {
		before, rest, found := strings.Cut(s, "C(")
		if !found {
			return s
		}
		word, after, _ := strings.Cut(rest, ")")
		s = before + "`" + word + "`" + after
	}
}

func readme(all map[string]spec) string {
	var b strings.Builder
	b.WriteString("<!-- Made from the roles' argument specifications: go test ./ansible -update -->\n# cnibench.testbed\n\n" +
		"What cnibench changes on bare machines, and how it is put back: an Ansible collection\n" +
		"that the program carries and runs itself (`cnibench hosts --help`). Each role may be\n" +
		"used alone. It says in check mode what it would change, and changes nothing the\n" +
		"second time.\n")
	for _, name := range slices.Sorted(maps.Keys(all)) {
		s := all[name].Main
		fmt.Fprintf(&b, "\n## %s\n\n%s.\n\n", name, s.Short)
		for _, d := range s.Description {
			fmt.Fprintf(&b, "- %s\n", code(d))
		}
		b.WriteString("\n| variable | type | default | what it is |\n|---|---|---|---|\n")
		for _, o := range slices.Sorted(maps.Keys(s.Options)) {
			v := s.Options[o]
			kind := v.Type
			if v.Elements != "" {
				kind += " of " + v.Elements
			}
			if len(v.Choices) > 0 {
				kind = "one of " + strings.Trim(strings.Join(strings.Fields(fmt.Sprint(v.Choices)), ", "), "[]")
			}
			fmt.Fprintf(&b, "| `%s` | %s | `%v` | %s |\n", o, kind, yamlOf(v.Default), code(v.Description))
		}
	}
	return b.String()
}

// yamlOf is a value in one line of YAML.
func yamlOf(v any) string {
	if s, is := v.(string); is && s == "" {
		return `""`
	}
	text, err := yaml.MarshalWithOptions(v, yaml.Flow(true))
	if err != nil {
		return fmt.Sprint(v)
	}
	return strings.TrimSpace(string(text))
}

func TestReadme(t *testing.T) {
	got := readme(specs(t))
	if *update {
		if err := os.WriteFile("README.md", []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("README.md is not what the argument specifications say (-is +should be)\n%s", diff)
	}
}

// TestDefaults: a role's defaults are those that its specification states.
func TestDefaults(t *testing.T) {
	for name, s := range specs(t) {
		text, err := fs.ReadFile(Files, "roles/"+name+"/defaults/main.yml")
		if err != nil {
			t.Fatal(err)
		}
		var have map[string]any
		if err := yaml.Unmarshal(text, &have); err != nil {
			t.Fatal(err)
		}
		want := map[string]any{}
		for o, v := range s.Main.Options {
			want[o] = v.Default
		}
		if diff := cmp.Diff(want, have); diff != "" {
			t.Errorf("%s (-specification +defaults)\n%s", name, diff)
		}
	}
}

// TestLint: ansible-lint has nothing to say, by its strictest profile.
func TestLint(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	labtest.Tool(t, "ansible-lint", "ansible-lint")
	home := t.TempDir()
	dir := filepath.Join(home, "ansible_collections", "cnibench", "testbed")
	if err := os.CopyFS(dir, Files); err != nil {
		t.Fatal(err)
	}
	r := exec.NewRunner()
	defer r.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	res, err := r.Run(ctx, exec.Cmd{
		Argv: []string{"ansible-lint", "--offline", "--profile", "production", "--nocolor", "-p"}, Dir: dir,
		Env: []string{"LC_ALL=C.UTF-8", "HOME=" + home, "ANSIBLE_HOME=" + home, "ANSIBLE_COLLECTIONS_PATH=" + home, "ANSIBLE_COLLECTIONS_PATHS=" + home},
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, res.Stdout)
	}
	t.Logf("%s", res.Stderr)
}

// TestKeptAfterReboot: what a host had before is put back after a reboot too, but
// for what a reboot puts back itself.
func TestKeptAfterReboot(t *testing.T) {
	labtest.Tool(t, "python3", "python3")
	path := filepath.Join(t.TempDir(), "kept.json")
	const old = `"sysctl net.ipv4.tcp_sack": "1", "mtu eth0": "1500", "file /sys/kernel/mm/transparent_hugepage/enabled": "madvise",
		"tuned": "off", "file /etc/tuned/active_profile": ""`
	r := exec.NewRunner()
	defer r.Close()
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]string{
		strings.TrimSpace(string(boot)): "file /etc/tuned/active_profile, file /sys/kernel/mm/transparent_hugepage/enabled, mtu eth0, sysctl net.ipv4.tcp_sack, tuned",
		"another boot":                  "file /etc/tuned/active_profile, tuned",
	} {
		if err := os.WriteFile(path, fmt.Appendf(nil, `{"schema": 1, "boot_id": %q, "old": {%s}}`, id, old), 0o600); err != nil {
			t.Fatal(err)
		}
		res, err := r.Run(t.Context(), exec.Cmd{Dir: "plugins/module_utils",
			Argv: []string{"python3", "-B", "-c", "import kept, sys; print(', '.join(sorted(kept.Kept(sys.argv[1]).old)))", path}})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimSpace(string(res.Stdout)); got != want {
			t.Errorf("kept at %s: %s, want %s", id, got, want)
		}
	}
}

// TestPutBackOnFullDisk: nothing but the values themselves is needed to put them
// back: on a full disk, and beside a setting that does not take, all others are as
// before. A setting is changed after all old values are kept, or not at all.
func TestPutBackOnFullDisk(t *testing.T) {
	const script = `
import errno, sys, types
basic = types.ModuleType("basic")
basic.AnsibleModule = None  # not used here
sys.modules.update({"ansible": basic, "ansible.module_utils": basic, "ansible.module_utils.basic": basic})
from ansible_collections.cnibench.testbed.plugins.module_utils import kept, settings
from ansible_collections.cnibench.testbed.plugins.modules import host_settings as m

class Failed(Exception):
    pass

class Module:
    check_mode = False
    def fail_json(self, msg, **more):
        raise Failed(msg)

def full(self):
    raise OSError(errno.ENOSPC, "No space left on device")

now = {"sysctl a": "new", "sysctl b": "new", "sysctl c": "new"}
def write(name, value):
    if name == sys.argv[1]:
        raise settings.NotTaken("it is read-only here")
    now[name] = value
    return []

m.read, m.write, m.refused = now.get, write, lambda name, value: None
kept.Kept.save = full
old = kept.Kept("/none")
old.old = {"sysctl a": "old", "sysctl b": "old", "sysctl c": "old"}
try:
    m.put_back(Module(), old, sorted(old.old))
except Failed as e:
    print(e)
print(sorted(now.values()))
old.old = {}
try:
    m.keep(Module(), old, [("sysctl a", "newer"), ("sysctl b", "newer")])
except Failed as e:
    print(e)
`
	for refused, want := range map[string]string{
		"none":     "['old', 'old', 'old']\n",
		"sysctl b": "not put back: sysctl b stays new, was old: it is read-only here\n['new', 'old', 'old']\n",
	} {
		want += "nothing was changed, as the values of now cannot be kept in /none (make room there): No space left on device\n"
		if diff := cmp.Diff(want, python(t, script, refused)); diff != "" {
			t.Errorf("%s does not take (-want +got)\n%s", refused, diff)
		}
	}
}

// TestTunedOff: a tuned that ran without a profile is set to have none again, and
// only one that was started for a run is ended.
func TestTunedOff(t *testing.T) {
	const script = `
import sys
from ansible_collections.cnibench.testbed.plugins.module_utils import tuned

done = []
tuned.program = lambda name: "/usr/sbin/" + name
tuned.pid = lambda: 7
tuned.ours = lambda: sys.argv[1] == "ours"
tuned.active = lambda: "off"
tuned.stop = lambda: done.append("ended")
tuned.subprocess.check_output = lambda argv, **more: done.append(" ".join(argv))
tuned.apply("off")
print("; ".join(done))
`
	for whose, want := range map[string]string{"ours": "ended", "theirs": "/usr/sbin/tuned-adm off"} {
		if got := strings.TrimSpace(python(t, script, whose)); got != want {
			t.Errorf("%s: %s, want %s", whose, got, want)
		}
	}
}

// python runs a script that uses the collection's Python, and gives its output.
func python(t *testing.T, script, arg string) string {
	t.Helper()
	labtest.Tool(t, "python3", "python3")
	home := t.TempDir()
	if err := os.CopyFS(filepath.Join(home, "ansible_collections", "cnibench", "testbed"), Files); err != nil {
		t.Fatal(err)
	}
	r := exec.NewRunner()
	defer r.Close()
	res, err := r.Run(t.Context(), exec.Cmd{Argv: []string{"python3", "-B", "-c", script, arg}, Env: []string{"PYTHONPATH=" + home}})
	if err != nil {
		t.Fatal(err)
	}
	return string(res.Stdout)
}
