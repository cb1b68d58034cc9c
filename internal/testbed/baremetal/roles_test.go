package baremetal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/labtest/space"
	"github.com/cnibench/cnibench/internal/netns"
)

// bench is a machine for roles: a namespace of its own, and folders in place of
// those of a real one.
type bench struct {
	*player
	ns  netns.NS
	dir string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	labtest.Root(t)
	labtest.Tool(t, "ansible-playbook", "ansible-core")
	r := exec.NewRunner()
	p, err := newPlayer(r)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{player: p, dir: t.TempDir(), ns: space.New(t, "roles")}
	t.Cleanup(func() {
		if err := p.close(); err != nil {
			t.Error(err)
		}
		r.Close()
	})
	for _, argv := range [][]string{
		{"ip", "link", "add", "eth0", "type", "veth", "peer", "name", "peer0"},
		{"ip", "link", "set", "eth0", "up"},
	} {
		if _, err := r.Run(t.Context(), exec.Cmd{Argv: argv, NetNS: b.ns.Path}); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range []string{"net.d", "modules"} {
		if err := os.Mkdir(filepath.Join(b.dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(b.dir, "net.d/10-theirs.conflist"), []byte("{}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(b.dir, "program"), []byte("first"), 0o755); err != nil {
		t.Fatal(err)
	}
	return b
}

// state is all that the roles can change here.
func (b *bench) state(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, name := range []string{"net.ipv4.tcp_sack", "net.ipv4.tcp_max_syn_backlog", "net.ipv4.ip_forward", "net.ipv4.tcp_timestamps"} {
		v, err := netns.Sysctl(b.ns, strings.ReplaceAll(name, ".", "/"))
		if err != nil {
			t.Fatal(err)
		}
		all[name] = v
	}
	at := netns.Port{NS: b.ns, Device: "eth0"}
	for _, o := range []string{"gro", "tso"} {
		on, err := at.Offload(o)
		if err != nil {
			t.Fatal(err)
		}
		all[o] = fmt.Sprint(on)
	}
	err := filepath.WalkDir(b.dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(path, ".json") && strings.Contains(path, "/kept/") {
			return err
		}
		text, err := os.ReadFile(path)
		all[strings.TrimPrefix(path, b.dir)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// roles plays the roles with their variables, one after the other, and tells
// how many tasks of each changed something.
func (b *bench) roles(t *testing.T, check bool, roles []role) map[string]int {
	t.Helper()
	var tasks []map[string]any
	for _, r := range roles {
		tasks = append(tasks, map[string]any{
			"name": "Play " + r.name, "ansible.builtin.include_role": map[string]any{"name": "cnibench.testbed." + r.name}, "vars": r.vars,
		})
	}
	book, err := json.Marshal([]map[string]any{{"name": "Roles", "hosts": "localhost", "gather_facts": false, "tasks": tasks}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(b.player.dir.Name(), "roles.yml")
	if err := os.WriteFile(path, book, 0o600); err != nil {
		t.Fatal(err)
	}
	argv := []string{"ansible-playbook", "-i", "localhost,", "-c", "local", path}
	if check {
		argv = append(argv, "--check", "--diff")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	res, err := b.runner.Run(ctx, exec.Cmd{Argv: argv, Env: b.env(), NetNS: b.ns.Path})
	records, rest := parseRecords(res.Stdout)
	if err != nil {
		t.Fatalf("%v\n%v\n%s", failures(records), err, rest)
	}
	changed := map[string]int{}
	for _, r := range records {
		if r.Changed {
			changed[strings.TrimPrefix(r.Role, "cnibench.testbed.")]++
		}
	}
	return changed
}

type role struct {
	name string
	vars map[string]any
}

// create, modify and restore are what is asked of each role in turn.
func (b *bench) create(program, profile string, conflist string, backlog int) []role {
	at := func(name string) string { return filepath.Join(b.dir, name) }
	return []role{
		{"host_tuning", map[string]any{"host_tuning_profile": profile, "host_tuning_devices": []string{"eth0"}, "host_tuning_state_file": at("kept/host_tuning.json")}},
		{"kubernetes_node", map[string]any{
			"kubernetes_node_sysctls":     map[string]any{"net.ipv4.ip_forward": "1", "net.ipv4.tcp_timestamps": fmt.Sprint(backlog)},
			"kubernetes_node_modules_dir": at("modules"), "kubernetes_node_state_file": at("kept/kubernetes_node.json"),
		}},
		{"cni", map[string]any{
			"cni_conflist":   map[string]any{"cniVersion": "1.0.0", "name": conflist, "plugins": []any{map[string]any{"type": "bridge"}}},
			"cni_config_dir": at("net.d"), "cni_kept_dir": at("kept/cni"),
		}},
		{"benchmark_agent", map[string]any{"benchmark_agent_program": at(program), "benchmark_agent_dir": at("agent")}},
	}
}

// TestRoles: each role is created, modified and reset, each of them first in
// check mode (which says what would change and changes nothing), then really,
// then once more (which changes nothing). At the end all is as before.
func TestRoles(t *testing.T) {
	b := newBench(t)
	before := b.state(t)
	if err := os.WriteFile(filepath.Join(b.dir, "program2"), []byte("second"), 0o755); err != nil {
		t.Fatal(err)
	}
	before["/program2"] = "second"
	at := func(name string) string { return filepath.Join(b.dir, name) }
	reset := []role{{"reset", map[string]any{
		"reset_state_dir": at("kept"), "reset_agent_dir": at("agent"), "reset_cni_config_dir": at("net.d"), "reset_modules_dir": at("modules"),
	}}}
	all := []string{"benchmark_agent", "cni", "host_tuning", "kubernetes_node"}
	for _, step := range []struct {
		name  string
		roles []role
		is    map[string]string
	}{
		{"create", b.create("program", "kernel_optimizations", "one", 1), map[string]string{"net.ipv4.tcp_sack": "0", "net.ipv4.tcp_max_syn_backlog": "4096", "net.ipv4.ip_forward": "1", "/agent/cnibench": "first"}},
		{"modify", b.create("program2", "nic_optimizations", "two", 2), map[string]string{"net.ipv4.tcp_sack": "1", "gro": "true", "tso": "true", "net.ipv4.tcp_timestamps": "2", "/agent/cnibench": "second"}},
		{"reset", reset, before},
	} {
		was := b.state(t)
		would := b.roles(t, true, step.roles)
		if diff := cmp.Diff(was, b.state(t)); diff != "" {
			t.Errorf("%s: check mode changed\n%s", step.name, diff)
		}
		did := b.roles(t, false, step.roles)
		now := b.state(t)
		for name, want := range step.is {
			if now[name] != want {
				t.Errorf("%s: %s is %q, want %q", step.name, name, now[name], want)
			}
		}
		if again := b.roles(t, false, step.roles); len(again) > 0 {
			t.Errorf("%s: a second time changed %v", step.name, again)
		}
		if got := slices.Sorted(maps.Keys(did)); !slices.Equal(got, all) {
			t.Errorf("%s changed in %v, want all of %v", step.name, got, all)
		}
		if diff := cmp.Diff(would, did); diff != "" {
			t.Errorf("%s: check mode said otherwise (-said +did)\n%s", step.name, diff)
		}
	}
	if diff := cmp.Diff(before, b.state(t)); diff != "" {
		t.Errorf("after all (-before +after)\n%s", diff)
	}
	if left, _ := os.ReadDir(filepath.Join(b.dir, "kept")); len(left) > 0 {
		t.Errorf("kept: %v", left)
	}
}

// TestResetLeavesOthers: in a folder that is not the agent's alone, only the agent's own
// program is ended and deleted: with cnibench_dir: /opt, 83aa48e did that to all under
// /opt/agent.
func TestResetLeavesOthers(t *testing.T) {
	b := newBench(t)
	at := func(name string) string { return filepath.Join(b.dir, name) }
	b.roles(t, false, []role{{"benchmark_agent", map[string]any{"benchmark_agent_program": at("program"), "benchmark_agent_dir": at("agent")}}})
	sleep, err := os.ReadFile("/bin/sleep")
	if err != nil {
		t.Fatal(err)
	}
	started := map[string]*exec.Process{}
	for _, name := range []string{"theirs", "cnibench"} {
		if err := errors.Join(os.RemoveAll(at("agent/"+name)), os.WriteFile(at("agent/"+name), sleep, 0o755)); err != nil {
			t.Fatal(err)
		}
		if started[name], err = b.runner.StartPiped(t.Context(), exec.Cmd{Argv: []string{at("agent/" + name), "600"}}); err != nil {
			t.Fatal(err)
		}
	}
	reset := []role{{"reset", map[string]any{
		"reset_state_dir": at("kept"), "reset_agent_dir": at("agent"), "reset_cni_config_dir": at("net.d"), "reset_modules_dir": at("modules"),
	}}}
	b.roles(t, false, reset)
	if err := started["cnibench"].Wait(); err == nil {
		t.Error("the agent was not ended")
	}
	if err := started["theirs"].Signal(0); err != nil {
		t.Errorf("the other program was ended: %v", err)
	}
	_, _ = started["theirs"].Kill(), started["theirs"].Wait() // it was to be killed
	left, err := os.ReadDir(at("agent"))
	if err != nil || len(left) != 1 || left[0].Name() != "theirs" {
		t.Errorf("left in the folder: %v, %v", left, err)
	}
	if err := os.Remove(at("agent/theirs")); err != nil {
		t.Fatal(err)
	}
	b.roles(t, false, reset)
	if _, err := os.Stat(at("agent")); err == nil {
		t.Error("the empty folder is still there")
	}
}
