package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnibench/cnibench/ansible"
	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/fault"
	"github.com/cnibench/cnibench/internal/kubeclient"
	"github.com/cnibench/cnibench/internal/kubeclient/kubetest"
	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/labtest/postgres"
)

// away is what the victims need that are not of a lab: a database, and hosts that are
// namespaces with sshd. All tries share both.
type away struct {
	database string // the address of the database postgres
	version  string // of cnibench, which its agents must have

	one   sync.Mutex // of the tries on hosts
	farm  *farm
	wrote string // where the collection is
	// python is the one that has Ansible.
	python string
	made   int // databases
}

func newAway(t *testing.T) *away {
	t.Helper()
	a := &away{database: postgres.Start(t), farm: newFarm(t)}
	a.wrote = a.farm.path("collections")
	if err := os.CopyFS(filepath.Join(a.wrote, "ansible_collections", "cnibench", "testbed"), ansible.Files); err != nil {
		t.Fatal(err)
	}
	playbook, err := os.ReadFile(labtest.Tool(t, "ansible-playbook", "ansible-core"))
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(string(playbook), "\n")
	words := strings.Fields(strings.TrimPrefix(line, "#!")) // "/usr/bin/python3", or env and a name
	if len(words) == 0 {
		t.Fatalf("ansible-playbook is no script of Python: %q", line)
	}
	a.python = words[len(words)-1]
	var v struct{ Version string }
	if err := json.Unmarshal([]byte(a.farm.must(exec.Cmd{Argv: a.farm.cnibench("version", "-o", "json")})), &v); err != nil {
		t.Fatal(err)
	}
	a.version = v.Version
	return a
}

func (a *away) victims() []victim {
	return []victim{
		{"restore", 6, a.restore}, // first, as it takes longest
		{"push", 1, a.push},
		{"cluster", 1, a.cluster},
		{"pod", 2, a.pod},
	}
}

// push kills a push of records: the database then has all of them or none, and the next
// push adds what is missing.
func (a *away) push(t *testing.T, r *rand.Rand) bool {
	s := newSurvivor(t)
	before := labtest.TakeTrace(t, s.ours)
	if err := os.CopyFS(s.out, os.DirFS("../result/testdata/v1")); err != nil {
		t.Fatal(err)
	}
	was, err := fault.ReadTree(s.out)
	if err != nil {
		t.Fatal(err)
	}
	address := a.newDatabase(t)
	killed := s.killAfter(s.start(s.command("push", address, s.out)), time.Duration(r.IntN(120))*time.Millisecond)
	records := bytes.Count([]byte(was["samples.jsonl"]), []byte("\n"))
	for _, added := range []string{"", fmt.Sprintf("%d records, 0 of them new", records)} {
		p := s.start(s.command("push", address, s.out))
		if status := p.wait(t); status != 0 || !strings.Contains(p.stdout.String(), added) {
			t.Errorf("push ended with status %d: %s%s", status, p.stdout, p.Stderr())
		}
		if all := strings.Contains(p.stdout.String(), fmt.Sprintf(" %d of them new", records)); added == "" && !all && !strings.Contains(p.stdout.String(), " 0 of them new") {
			t.Errorf("the push that was killed left a part: %s", p.stdout)
		}
	}
	var rows int
	query(t, address, "SELECT count(*) FROM cnibench_samples WHERE record->>'id' = id", &rows)
	if rows != records {
		t.Errorf("%d rows of %d records", rows, records)
	}
	if now, err := fault.ReadTree(s.out); err != nil || now.Key() != was.Key() {
		t.Errorf("the directory is not as before (%v)", err)
	}
	s.leavesNothing(before)
	return killed
}

// newDatabase makes an empty database and gives its address.
func (a *away) newDatabase(t *testing.T) string {
	t.Helper()
	a.one.Lock()
	defer a.one.Unlock()
	a.made++
	name := fmt.Sprintf("survive%d", a.made)
	query(t, a.database, "CREATE DATABASE "+name)
	return strings.Replace(a.database, "/postgres?", "/"+name+"?", 1)
}

// query runs a statement and reads the one row that it gives, if any is wanted.
func query(t *testing.T, address, sql string, into ...any) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	if len(into) == 0 {
		_, err = conn.Exec(t.Context(), sql)
	} else {
		err = conn.QueryRow(t.Context(), sql).Scan(into...)
	}
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// onCluster is a campaign on a cluster of two nodes whose API server, and the agents in its
// pods, are in this process.
func (a *away) onCluster(t *testing.T) (*survivor, *kubetest.Cluster) {
	t.Helper()
	t.Cleanup(func() { debug.SetGCPercent(100) }) // agents in this process stop the collector
	c := kubetest.New("a", "b")
	c.Version = a.version
	s := newSurvivor(t)
	s.flags = []string{"--kubeconfig", c.Serve(t)}
	s.write("name: cluster\ntestbed: kubernetes\nworkloads: [{name: tcp_rr, message_bytes: [64]}]\n" +
		"sampling: {slices: 8, warmup_seconds: 0.01, explain_seconds: 0.05, min_blocks: 2, max_blocks: 2}\n")
	return s, c
}

// emptied checks that nothing of a run is left in a cluster, and that nothing was deleted
// without its UID.
func emptied(t *testing.T, c *kubetest.Cluster) {
	t.Helper()
	list, err := c.API.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, ns := range list.Items {
		t.Errorf("namespace %s is left in the cluster", ns.Name)
	}
	if len(c.Unconditional) > 0 {
		t.Errorf("deleted by name alone: %q", c.Unconditional)
	}
}

// cluster kills a run on a cluster. The next command is clean or the run that resumes it.
func (a *away) cluster(t *testing.T, r *rand.Rand) bool {
	s, c := a.onCluster(t)
	before := labtest.TakeTrace(t, s.ours)
	killed := s.killWithin(s.run(), r, tiniestRecords)
	if r.IntN(2) == 0 {
		p := s.start(s.command(append([]string{"clean"}, s.flags...)...))
		if status := p.wait(t); status != 0 {
			t.Errorf("clean ended with status %d: %s", status, p.Stderr())
		}
		emptied(t, c)
	}
	s.resumed()
	emptied(t, c)
	s.leavesNothing(before)
	return killed
}

// pod takes the pods of one of a run's namespaces away, or cuts the streams of their agents.
func (a *away) pod(t *testing.T, r *rand.Rand) bool {
	s, c := a.onCluster(t)
	before := labtest.TakeTrace(t, s.ours)
	run := s.run()
	run.until(t, func() bool { return len(s.lines()) > 0 })
	time.Sleep(time.Duration(r.IntN(100)) * time.Millisecond)
	list, err := c.API.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	struck := len(list.Items) > 0
	if struck {
		name := list.Items[r.IntN(len(list.Items))].Name
		c.Cut(kubeclient.Target{Namespace: name})
		pods, err := c.API.CoreV1().Pods(name).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if len(pods.Items) > 0 && r.IntN(2) == 0 {
			gone := pods.Items[r.IntN(len(pods.Items))]
			// It may be gone on its own.
			_ = c.API.CoreV1().Pods(name).Delete(t.Context(), gone.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(gone.UID))})
		}
	}
	if status := run.wait(t); status > 1 && status != 4 {
		t.Errorf("status %d: %s", status, run.Stderr())
	}
	s.resumed()
	emptied(t, c)
	s.leavesNothing(before)
	return struck
}

// restore kills the command that restores two tuned hosts, Ansible, or what Ansible runs on
// a host. Then the next one restores them.
func (a *away) restore(t *testing.T, r *rand.Rand) bool {
	a.one.Lock()
	defer a.one.Unlock()
	own := *a.farm
	f := &own
	f.t = t
	asBefore := f.before()
	for _, role := range []string{"client", "server"} {
		a.tune(f, role)
		if f.sack(role) != "0" {
			t.Fatalf("the %s is not tuned", role)
		}
	}
	p, err := f.runner.StartPiped(t.Context(), f.command("hosts", "reset", "--inventory", f.inventory))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = p.Wait() // what counts is what it leaves
	}()
	select {
	case <-ended:
	case <-time.After(time.Duration(r.IntN(4000)) * time.Millisecond):
	}
	who, killed := []string{"controller", "Ansible", "module"}[r.IntN(3)], false
	switch who {
	case "controller":
		killed = syscall.Kill(p.PID(), syscall.SIGKILL) == nil
	case "Ansible":
		if pid := childOf(p.PID(), "cnibench.testbed.destroy"); pid != 0 {
			killed = syscall.Kill(-pid, syscall.SIGKILL) == nil
		}
	case "module":
		killed = f.killModule(ended)
	}
	<-ended
	t.Logf("%s killed %v; tcp_sack is %s and %s", who, killed, f.sack("client"), f.sack("server"))
	if _, stderr, err := f.run("hosts", "reset", "--inventory", f.inventory); err != nil {
		t.Errorf("reset: %v\n%s", err, stderr)
	}
	asBefore()
	return killed
}

// tune changes a host as a run does, by the module that Ansible runs there.
func (a *away) tune(f *farm, role string) {
	f.t.Helper()
	args, err := json.Marshal(map[string]any{"ANSIBLE_MODULE_ARGS": map[string]any{
		"sysctls": map[string]string{"net.ipv4.tcp_sack": "0", "net.ipv4.tcp_timestamps": "0", "net.ipv4.tcp_max_syn_backlog": "4096"},
		"devices": []string{"eth0"}, "offloads": map[string]bool{"gro": false, "tso": false},
		"state_file": f.path(role + "-state/host_tuning.json"),
	}})
	if err != nil {
		f.t.Fatal(err)
	}
	f.must(exec.Cmd{Argv: []string{a.python, "-B", filepath.Join(a.wrote, "ansible_collections/cnibench/testbed/plugins/modules/host_settings.py")},
		NetNS: f.ns[role].Path, Stdin: bytes.NewReader(args), Env: []string{"PYTHONPATH=" + a.wrote}})
}

// killModule kills the first Python that Ansible runs on one of the hosts from now on.
func (f *farm) killModule(ended <-chan struct{}) bool {
	inodes := map[string]bool{}
	for _, role := range []string{"client", "server"} {
		inode, err := f.ns[role].Inode()
		if err != nil {
			f.t.Fatal(err)
		}
		inodes[fmt.Sprintf("net:[%d]", inode)] = true
	}
	for {
		links, _ := filepath.Glob("/proc/[0-9]*/ns/net") // the pattern is a good one
		for _, path := range links {
			to, err := os.Readlink(path)
			pid := strings.Split(path, "/")[2]
			argv, _ := os.ReadFile("/proc/" + pid + "/cmdline") // none: it has ended
			if n, bad := strconv.Atoi(pid); err == nil && bad == nil && inodes[to] && bytes.Contains(argv, []byte("python")) {
				return syscall.Kill(n, syscall.SIGKILL) == nil
			}
		}
		select {
		case <-ended:
			return false
		case <-time.After(2 * time.Millisecond):
		}
	}
}
