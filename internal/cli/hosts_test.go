package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/fault"
	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/result"
)

// farm is four machines that are namespaces of a lab: client, server, the one
// that cnibench runs on, and a sink. sshd of Debian answers in three of them.
type farm struct {
	t         *testing.T
	runner    *exec.Runner
	dir       string
	inventory string
	env       []string
	sshd      map[string]*exec.Process // by role
	ns        map[string]netns.NS
	addresses map[string]string // of those with an sshd, by role
	// nodes reports that the machines are nodes of a Kubernetes, with mounts of their own.
	nodes bool
	// passing is the folder through which Ansible copies files to the machines: one for each
	// farm, as several exist at the same time.
	passing string
}

func newFarm(t *testing.T) *farm {
	t.Helper()
	labtest.Turn(t, labtest.Hosts)
	f := openFarm(t)
	f.addresses = map[string]string{"client": "198.18.0.1", "server": "198.18.0.2", "sink": "198.18.0.4"}
	f.namespaces(map[string]string{"node1": "client", "node2": "server", "node3": "control", "node4": "sink"},
		"lab", "up", "--network", "host", "--nodes", "4", "--json")
	f.startAll()
	return f
}

// openFarm is one without machines.
func openFarm(t *testing.T) *farm {
	t.Helper()
	labtest.Root(t)
	labtest.Tool(t, "/usr/sbin/sshd", "openssh-server")
	labtest.Tool(t, "ansible-playbook", "ansible-core")
	labtest.Tool(t, "ethtool", "ethtool")
	dir, err := os.MkdirTemp("", "cnb-farm-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o711); err != nil { // tools run as nobody
		t.Fatal(err)
	}
	f := &farm{t: t, runner: exec.NewRunner(), dir: dir, sshd: map[string]*exec.Process{}, ns: map[string]netns.NS{}, passing: filepath.Join(dir, "passing")}
	f.env = []string{"CNIBENCH_STATE_DIR=" + filepath.Join(dir, "labs"), "TMPDIR=" + filepath.Join(dir, "tmp")}
	if err := os.Mkdir(filepath.Join(dir, "tmp"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		f.must(exec.Cmd{Argv: f.cnibench("lab", "down", "--all")})
		f.runner.Close()
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return f
}

// startAll starts sshd on all machines, and writes the inventory.
func (f *farm) startAll() {
	f.t.Helper()
	for _, key := range []string{"user", "host", "stranger"} {
		f.must(exec.Cmd{Argv: []string{"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f.path(key)}})
	}
	f.copy("user.pub", "authorized_keys")
	// bash as sshd starts it reads ~/.bashrc. What root has there may take a second for each
	// login (pyenv), and a killed one may leave a lock that the next waits for.
	if err := os.Mkdir(f.path("home"), 0o755); err != nil {
		f.t.Fatal(err)
	}
	var known strings.Builder
	for role, address := range f.addresses {
		f.write(role+".conf", fmt.Sprintf("HostKey %s\nAuthorizedKeysFile %s\nListenAddress %s\nPidFile none\nUsePAM no\nStrictModes no\nPermitRootLogin prohibit-password\nSetEnv HOME=%s\n",
			f.path("host"), f.path("authorized_keys"), address, f.path("home")))
		f.startSSHD(role)
		fmt.Fprintf(&known, "%s %s", address, f.read("host.pub"))
	}
	f.write("known_hosts", known.String())
	f.inventory = f.newInventory("hosts.yml", "user", nil)
}

func (f *farm) path(name string) string { return filepath.Join(f.dir, name) }

func (f *farm) cnibench(args ...string) []string {
	return append([]string{filepath.Join(built, "cnibench")}, args...)
}

func (f *farm) write(name, text string) {
	f.t.Helper()
	if err := os.WriteFile(f.path(name), []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

func (f *farm) read(name string) string {
	f.t.Helper()
	text, err := os.ReadFile(f.path(name))
	if err != nil {
		f.t.Fatal(err)
	}
	return string(text)
}

func (f *farm) copy(from, to string) { f.write(to, f.read(from)) }

func (f *farm) must(c exec.Cmd) string {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	c.Env = append(c.Env, f.env...)
	res, err := f.runner.Run(ctx, c)
	if err != nil {
		f.t.Fatal(err)
	}
	return string(res.Stdout)
}

// namespaces brings a lab up; roles are what its nodes are in the farm.
func (f *farm) namespaces(roles map[string]string, up ...string) {
	f.t.Helper()
	f.must(exec.Cmd{Argv: f.cnibench(up...)})
	var labs []struct {
		Places []struct{ Namespace string }
	}
	if err := json.Unmarshal([]byte(f.must(exec.Cmd{Argv: f.cnibench("lab", "list", "--json")})), &labs); err != nil {
		f.t.Fatal(err)
	}
	for _, p := range labs[0].Places {
		for node, role := range roles {
			if strings.HasSuffix(p.Namespace, "-"+node) {
				f.ns[role] = netns.Named(p.Namespace)
			}
		}
	}
}

// startSSHD starts sshd in a namespace and waits until it listens.
func (f *farm) startSSHD(role string) {
	f.t.Helper()
	c := exec.Cmd{Argv: []string{"/usr/sbin/sshd", "-D", "-e", "-f", f.path(role + ".conf")}, NetNS: f.ns[role].Path}
	if f.nodes { // with the node's own mounts
		c = exec.Cmd{Env: f.env, Argv: f.cnibench("lab", "exec", f.ns[role].Name, "--", "sh", "-c", "mkdir -p /run/sshd && exec "+exec.Cmd{Argv: c.Argv}.String())}
	}
	// What made it may be the tests of another worktree, which remove it when they end.
	if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
		f.t.Fatal(err)
	}
	p, err := f.runner.StartPiped(context.Background(), c)
	if err != nil {
		f.t.Fatal(err)
	}
	f.sshd[role] = p
	for range 100 {
		out, _ := f.runner.Run(context.Background(), exec.Cmd{Argv: []string{"ss", "-Hltn", "sport = :22"}, NetNS: f.ns[role].Path})
		if len(bytes.TrimSpace(out.Stdout)) > 0 {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	f.t.Fatalf("sshd of the %s does not listen: %s", role, p.Stderr())
}

// killSSHD kills the daemon and all its sessions.
func (f *farm) killSSHD(role string) {
	f.t.Helper()
	if err := f.sshd[role].Signal(syscall.SIGKILL); err != nil {
		f.t.Fatal(err)
	}
	_ = f.sshd[role].Wait()
}

// newInventory writes an inventory; more are variables of one host each,
// "client cnibench_dir".
func (f *farm) newInventory(name, key string, more map[string]string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "all:\n  vars:\n    ansible_user: root\n    ansible_ssh_private_key_file: %s\n    ansible_ssh_common_args: -o UserKnownHostsFile=%s -o GlobalKnownHostsFile=none\n  children:\n",
		f.path(key), f.path("known_hosts"))
	for role, address := range f.addresses {
		fmt.Fprintf(&b, "    %s:\n      hosts:\n        the-%s:\n          ansible_host: %s\n", role, role, address)
		vars := map[string]string{"cnibench_dir": f.path(role + "-state"), "ansible_remote_tmp": f.passing}
		switch role {
		case "sink":
			vars["cnibench_sink_dir"] = f.path("sunk")
		case "control_plane":
			vars["cnibench_kubeconfig"] = f.path("kubeconfig-of-nodes")
		}
		for k, v := range more {
			if who, what, _ := strings.Cut(k, " "); who == role {
				vars[what] = v
			}
		}
		for k, v := range vars {
			fmt.Fprintf(&b, "          %s: %s\n", k, v)
		}
	}
	f.write(name, b.String())
	return f.path(name)
}

// run runs cnibench on the farm's third machine.
func (f *farm) run(args ...string) (stdout, stderr string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	res, err := f.runner.Run(ctx, f.command(args...))
	return string(res.Stdout), string(res.Stderr), err
}

func (f *farm) command(args ...string) exec.Cmd {
	return exec.Cmd{Argv: f.cnibench(args...), Env: f.env, Dir: f.dir, NetNS: f.ns["control"].Path}
}

// settings is all of the network's settings that a machine of the farm has; of a
// node those that no pod changes by being there.
func (f *farm) settings(role string) string {
	f.t.Helper()
	pattern, links := "^net[.]", ""
	if f.nodes {
		pattern, links = "^net[.](core|ipv4[.](tcp|udp))", "eth0"
	}
	out := f.must(exec.Cmd{NetNS: f.ns[role].Path, Argv: []string{"sh", "-c",
		"sysctl -a --pattern '" + pattern + "' 2>/dev/null; for d in eth0 lo; do ethtool -k $d; done; ethtool -g eth0 2>&1; ip -o link show " + links + "; true"}})
	// A count, and an age, are no settings.
	return regexp.MustCompile(`(?m)^net\.netfilter\.nf_conntrack_count.*$`).ReplaceAllString(out, "")
}

// before keeps the settings of both ends; the func it gives compares them with
// those of now, and looks for what was left behind.
func (f *farm) before() (asBefore func()) {
	was := map[string]string{"client": f.settings("client"), "server": f.settings("server")}
	return func() {
		f.t.Helper()
		for role, text := range was {
			if diff := cmp.Diff(strings.Split(text, "\n"), strings.Split(f.settings(role), "\n")); diff != "" {
				f.t.Errorf("the %s is not as before (-before +now)\n%s", role, diff)
			}
			if _, err := os.Stat(f.path(role + "-state")); err == nil {
				left, _ := filepath.Glob(f.path(role + "-state/*"))
				f.t.Errorf("the %s still has %q", role, left)
			}
		}
		// What the controller makes, and what Ansible makes on a host.
		for _, pattern := range []string{f.path("tmp/*"), f.passing + "/ansible-tmp-*"} {
			left, _ := filepath.Glob(pattern)
			for _, path := range left {
				holds, err := fault.ReadTree(path)
				f.t.Errorf("left behind: %s, with %q (%v)", path, slices.Sorted(maps.Keys(holds)), err)
			}
		}
	}
}

const hostsCampaign = `name: farm
testbed: hosts
networks: [host, bridge]
profiles: [default_settings, kernel_optimizations, nic_optimizations]
mtu: [1500]
workloads: [{name: tcp_rr, message_bytes: [64]}]
sampling: {slices: 8, warmup_seconds: 0.02, explain_seconds: 0.1, min_blocks: 2, max_blocks: 2}
`

// TestHosts: a campaign between two machines under three profiles, tuned by
// Ansible over SSH. Its records say what was in force, the sink has a copy, and
// not one setting is different afterwards.
func TestHosts(t *testing.T) {
	f := newFarm(t)
	f.passing = "/tmp" // as it is unless an inventory says otherwise; all other farms have theirs
	f.inventory = f.newInventory("hosts.yml", "user", nil)
	asBefore := f.before()
	f.write("c.yaml", hostsCampaign)
	_, stderr, err := f.run("run", "c.yaml", "--inventory", f.inventory, "--out", "r", "--seed", "1")
	if err != nil {
		t.Fatal(err)
	}
	asBefore()
	rec, err := result.Read(f.path("r"))
	if err != nil {
		t.Fatal(err)
	}
	sack, measured := map[string]string{}, 0
	for _, s := range rec.Samples {
		if s.Cell.Network == "bridge" {
			if s.Status != result.StatusUnsupported {
				t.Errorf("bridge between bare machines is %s", s.Status)
			}
			continue
		}
		if s.Status != result.StatusOK {
			t.Errorf("%s %s: %s", s.ID, s.Cell.Profile, s.Reason)
			continue
		}
		measured++
		for _, end := range []string{result.ClientNode, result.ServerNode} {
			sack[s.Cell.Profile+" "+end] = s.Settings[end]["net.ipv4.tcp_sack"]
		}
		warned := strings.Contains(strings.Join(s.Warnings, "\n"), "net.core.rmem_max")
		if warned != (s.Cell.Profile == "kernel_optimizations") {
			t.Errorf("%s: warnings %q", s.Cell.Profile, s.Warnings)
		}
	}
	if measured != 6 {
		t.Errorf("%d samples, want 6\n%s", measured, stderr)
	}
	want := map[string]string{}
	for profile, value := range map[string]string{"default_settings": "1", "kernel_optimizations": "0", "nic_optimizations": "1"} {
		want[profile+" client_node"], want[profile+" server_node"] = value, value
	}
	if diff := cmp.Diff(want, sack); diff != "" {
		t.Errorf("tcp_sack (-want +got)\n%s", diff)
	}
	for _, name := range []string{"samples.jsonl", "environment.json", "report.html"} {
		here, there := f.read("r/"+name), f.read("sunk/r/"+name)
		if here != there {
			t.Errorf("%s on the sink differs", name)
		}
	}
	if len(rec.Environment.Changed) > 0 {
		t.Errorf("changed: %q", rec.Environment.Changed)
	}
	if len(rec.Environment.Profiles) != 4 {
		t.Errorf("profiles in the environment: %v", rec.Environment.Profiles)
	}
	f.farAway()
}
