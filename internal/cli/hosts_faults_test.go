package cli_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/labtest"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/result"
)

// TestHostThatCannotBeUsed: what is wrong with one host is one clear error with
// its cure, before anything is changed anywhere; what its device refuses fails the
// samples that need it.
func TestHostThatCannotBeUsed(t *testing.T) {
	f := newFarm(t)
	// A device that takes no MTU above 1450, and has no rings.
	f.must(exec.Cmd{NetNS: f.ns["server"].Path, Argv: []string{"ip", "link", "add", "small", "type", "vxlan", "id", "7", "dev", "eth0", "dstport", "4789"}})
	asBefore := f.before()
	f.write("c.yaml", hostsCampaign)
	f.write("nobody", "")
	small := f.path("small")
	if err := os.Mkdir(small, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", small, "tmpfs", 0, "size=1m"); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Unmount(small, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	}()
	for _, c := range []struct {
		name, key string
		vars      map[string]string
		words     []string
	}{
		{"nothing listens", "user", map[string]string{"client ansible_port": "9"}, []string{"the-client: cannot be reached", "Connection refused", "start sshd"}},
		{"a key that is not accepted", "stranger", nil, []string{"the-client: cannot be reached", "Permission denied", "authorized_keys"}},
		{"a host key that is not known", "user", map[string]string{"server ansible_ssh_common_args": "-o UserKnownHostsFile=" + f.path("nobody")}, []string{"the-server: cannot be reached", "Host key verification failed", "ssh-keyscan"}},
		{"a full disk", "user", map[string]string{"server cnibench_dir": small + "/state"}, []string{"the-server: 1 MiB are free", "cnibench_dir"}},
		{"a sink that is away", "user", map[string]string{"sink ansible_port": "9"}, []string{"sink: the-sink: cannot be reached"}},
	} {
		inventory := f.newInventory("bad.yml", c.key, c.vars)
		_, stderr, err := f.run("run", "c.yaml", "--inventory", inventory, "--out", "bad")
		if err == nil {
			t.Errorf("%s: no error", c.name)
		}
		for _, w := range c.words {
			if !strings.Contains(stderr, w) {
				t.Errorf("%s: no %q in\n%s", c.name, w, stderr)
			}
		}
		if _, err := os.Stat(f.path("bad")); err == nil {
			t.Errorf("%s: a result directory was left", c.name)
		}
		asBefore()
	}
	// With --keep-going a run does without its sink.
	inventory := f.newInventory("bad.yml", "user", map[string]string{"sink ansible_port": "9", "server cnibench_device": "small"})
	f.write("one.yaml", strings.NewReplacer("[default_settings, kernel_optimizations, nic_optimizations]", "[nic_optimizations]",
		"[1500]", "[1400, 9000]", "sampling: {", "sampling: {retries: 0, ").Replace(hostsCampaign))
	if _, stderr, err := f.run("run", "one.yaml", "--inventory", inventory, "--out", "good", "--keep-going"); statusOf(err) != 4 || !strings.Contains(stderr, "the sink is left out") {
		t.Errorf("%v\n%s", err, stderr)
	}
	asBefore()
	f.checkRefused()
}

// checkRefused looks at the records of a server whose device refuses an MTU and has
// no rings.
func (f *farm) checkRefused() {
	f.t.Helper()
	rec, err := result.Read(f.path("good"))
	if err != nil {
		f.t.Fatal(err)
	}
	refused, measured := 0, 0
	for _, s := range rec.Samples {
		switch {
		case s.Status == result.StatusUnsupported:
		case s.Cell.MTU == 9000 && s.Status == result.StatusFailed && strings.Contains(s.Reason, "the-server: an MTU of 9000 does not take: the kernel refused it"):
			refused++
		case s.Cell.MTU == 1400 && s.Status == result.StatusOK:
			measured++
			if warned := strings.Join(s.Warnings, "\n"); !strings.Contains(warned, "profile nic_optimizations: ring rx has no value, not 4096: small does not have it") {
				f.t.Errorf("no word of the rings: %s", warned)
			}
		default:
			f.t.Logf("%s MTU %d: %s", s.ID, s.Cell.MTU, s.Reason)
		}
	}
	if refused != 2 || measured == 0 {
		f.t.Errorf("%d samples were refused, want 2; %d measured", refused, measured)
	}
}

// TestHostSteps: each step is a verb that can be done again.
func TestHostSteps(t *testing.T) {
	f := newFarm(t)
	asBefore := f.before()
	step := func(args ...string) {
		t.Helper()
		if _, stderr, err := f.run(append([]string{"hosts"}, append(args, "--inventory", f.inventory)...)...); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, stderr)
		}
	}
	if err := os.Mkdir(f.path("r"), 0o755); err != nil {
		t.Fatal(err)
	}
	f.write("r/samples.jsonl", "{}\n")
	for range 2 {
		step("deploy")
		for _, role := range []string{"client", "server"} {
			if info, err := os.Stat(f.path(role + "-state/agent/cnibench")); err != nil || info.Mode()&0o111 == 0 {
				t.Errorf("on the %s: %v, %v", role, info, err)
			}
		}
		step("collect", "r")
		if diff := cmp.Diff(f.read("r/samples.jsonl"), f.read("sunk/r/samples.jsonl")); diff != "" {
			t.Errorf("on the sink (-here +there)\n%s", diff)
		}
		f.write("r/samples.jsonl", "{}\n{}\n")
	}
	for range 2 {
		step("destroy")
		asBefore()
	}
}

// TestHostWithoutPython: said before Ansible says it at length.
func TestHostWithoutPython(t *testing.T) {
	f := newFarm(t)
	bin := f.path("bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"sh", "bash", "dirname", "uname", "id", "df", "awk", "grep", "sed", "head", "ip", "cat"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	f.killSSHD("server")
	f.write("server.conf", strings.Replace(f.read("server.conf"), "SetEnv ", "SetEnv PATH="+bin+" ", 1))
	f.startSSHD("server")
	_, stderr, err := f.run("hosts", "bootstrap", "--inventory", f.inventory)
	if err == nil || !strings.Contains(stderr, "the-server: has no python3") {
		t.Errorf("%v\n%s", err, stderr)
	}
}

// tunedRun starts a run that lasts, under kernel_optimizations, and waits until
// both ends are tuned and there are records.
func (f *farm) tunedRun(flags ...string) *exec.Process {
	f.t.Helper()
	f.write("long.yaml", "name: long\ntestbed: hosts\nnetworks: [host]\nprofiles: [kernel_optimizations]\n"+
		"workloads: [{name: tcp_rr, message_bytes: [64]}]\nsampling: {slices: 10, warmup_seconds: 0.02, explain_seconds: 0.05, min_blocks: 2000, max_blocks: 2000, retries: 0}\n")
	p, err := f.runner.StartPiped(context.Background(), f.command(append([]string{"run", "long.yaml", "--inventory", f.inventory, "--out", "long"}, flags...)...))
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		if f.t.Failed() {
			f.t.Logf("the run printed:\n%s", p.Stderr())
		}
	})
	f.until("records", func() bool {
		lines, _ := os.ReadFile(f.path("long/samples.jsonl"))
		return bytes.Count(lines, []byte("\n")) >= 3
	})
	for _, role := range []string{"client", "server"} {
		if f.sack(role) != "0" {
			f.t.Fatalf("the %s is measured and not tuned", role)
		}
	}
	return p
}

func (f *farm) sack(role string) string {
	f.t.Helper()
	v, err := netns.Sysctl(f.ns[role], "net/ipv4/tcp_sack")
	if err != nil {
		f.t.Fatal(err)
	}
	return v
}

func (f *farm) until(what string, done func() bool) {
	f.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			f.t.Fatalf("no %s", what)
		}
	}
}

// TestKilledController: hosts stay tuned when the program that tuned them is
// killed; reset puts them back, and so does the next run before it measures.
func TestKilledController(t *testing.T) {
	f := newFarm(t)
	asBefore := f.before()
	reset := []string{"hosts", "reset", "--inventory", f.inventory}
	first := f.tunedRun()
	// While it lives nobody else changes the hosts under it.
	for _, other := range [][]string{reset, {"run", "long.yaml", "--inventory", f.inventory, "--out", "again"}} {
		if _, stderr, err := f.run(other...); err == nil || !strings.Contains(stderr, "is in use by cnibench on") || f.sack("client") != "0" {
			t.Errorf("%s during a living run: %v\n%s", other[0], err, stderr)
		}
	}
	kill := func(p *exec.Process) {
		t.Helper()
		if err := syscall.Kill(p.PID(), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		_ = p.Wait() // it was killed
		if f.sack("client") != "0" {
			t.Fatal("nothing is left to be repaired")
		}
		if err := os.RemoveAll(f.path("long")); err != nil {
			t.Fatal(err)
		}
	}
	repaired := func(stderr string) {
		t.Helper()
		if !strings.Contains(stderr, "the-client: put back what a killed run had changed") || !strings.Contains(stderr, "net.ipv4.tcp_sack") {
			t.Errorf("it does not report a repair:\n%s", stderr)
		}
	}
	kill(first)
	next := f.tunedRun() // it repairs, and is killed too
	kill(next)
	repaired(string(next.Stderr()))
	_, stderr, err := f.run(reset...)
	if err != nil {
		t.Error(err)
	}
	repaired(stderr)
	asBefore() // as before both
}

// TestKilledAnsible: the playbook dies in mid-change. The sample fails, and all
// is put back at the end of the run.
func TestKilledAnsible(t *testing.T) {
	f := newFarm(t)
	asBefore := f.before()
	f.write("c.yaml", strings.Replace(hostsCampaign, "sampling: {", "sampling: {retries: 0, ", 1))
	p, err := f.runner.StartPiped(context.Background(), f.command("run", "c.yaml", "--inventory", f.inventory, "--out", "r", "--seed", "1"))
	if err != nil {
		t.Fatal(err)
	}
	var victim int
	f.until("change by Ansible", func() bool {
		victim = childOf(p.PID(), "cnibench.testbed.tune")
		return victim != 0 && (f.sack("client") == "0" || f.sack("server") == "0")
	})
	if err := syscall.Kill(-victim, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(); statusOf(err) != 4 { // the sample that failed has no retry
		t.Fatal(err)
	}
	asBefore()
	rec, err := result.Read(f.path("r"))
	if err != nil {
		t.Fatal(err)
	}
	failed := 0
	for _, s := range rec.Samples {
		if s.Status == result.StatusFailed && strings.Contains(s.Reason, "profile kernel_optimizations") {
			failed++
		} else if s.Status == result.StatusFailed {
			t.Errorf("%s: %s", s.ID, s.Reason)
		}
	}
	if failed != 1 {
		t.Errorf("%d samples failed for it, want 1", failed)
	}
}

// childOf finds a process that another started, by a word of its command line.
func childOf(parent int, word string) int {
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range lines {
		text, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(text, []byte(word)) {
			continue
		}
		stat, err := os.ReadFile(filepath.Join(filepath.Dir(path), "stat"))
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(stat), ") ")
		if words := strings.Fields(rest); len(words) > 1 && words[1] == strconv.Itoa(parent) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			return pid
		}
	}
	return 0
}

// TestKilledSSHD: with the server's sshd and all its sessions gone, samples fail
// with the reason, and with --keep-going the run goes on: the host that is back is
// tuned again. One that is gone at the end is left to reset, the other is put back.
// So it is with one whose packets are lost, which nobody is informed of.
func TestKilledSSHD(t *testing.T) {
	labtest.Tool(t, "iptables", "iptables")
	f := newFarm(t)
	f.inventory = f.newInventory("hosts.yml", "user", map[string]string{ // sooner than those of cnibench
		"server ansible_ssh_common_args": "-o UserKnownHostsFile=" + f.path("known_hosts") + " -o GlobalKnownHostsFile=none -o ServerAliveInterval=2 -o ConnectTimeout=3"})
	asBefore := f.before()
	p := f.tunedRun("--keep-going")
	f.killAll(f.ns["server"])
	_ = f.sshd["server"].Wait()
	f.until("sample that failed for the server", func() bool {
		return regexp.MustCompile(`"status":"failed"[^\n]*the-server: cannot be reached`).MatchString(f.read("long/samples.jsonl"))
	})
	before := len(f.read("long/samples.jsonl"))
	// As if it had been started again.
	f.must(exec.Cmd{Argv: []string{"sysctl", "-w", "net.ipv4.tcp_sack=1"}, NetNS: f.ns["server"].Path})
	f.startSSHD("server")
	f.until("sample after the server came back", func() bool {
		return strings.Contains(f.read("long/samples.jsonl")[before:], `"status":"ok"`)
	})
	if f.sack("server") != "0" {
		t.Error("the server that came back is measured and not tuned")
	}
	lose := func(how string) {
		f.must(exec.Cmd{Argv: []string{"iptables", how, "INPUT", "-i", "eth0", "-j", "DROP"}, NetNS: f.ns["server"].Path})
	}
	lose("-I")
	before = len(f.read("long/samples.jsonl"))
	f.until("sample that failed for lost packets", func() bool {
		return regexp.MustCompile(`"status":"failed"[^\n]*the-server: (the connection broke|cannot be reached[^\n]* timed out)`).MatchString(f.read("long/samples.jsonl")[before:])
	})
	if err := p.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	err := p.Wait()
	if stderr := string(p.Stderr()); err == nil || !strings.Contains(stderr, "cnibench hosts reset --inventory "+f.inventory) {
		t.Errorf("%v\n%s", err, stderr)
	}
	if f.sack("client") != "1" {
		t.Error("the client, which answers, is not put back")
	}
	if f.sack("server") != "0" {
		t.Error("nothing is left to be repaired on the server")
	}
	if _, stderr, err := f.run("hosts", "reset", "--inventory", f.inventory); err == nil || strings.Count(stderr, "the-server: cannot be reached") != 1 ||
		!strings.Contains(stderr, " timed out (it does not answer") || strings.Contains(stderr, "the-client") {
		t.Errorf("reset of a host that does not answer: %v\n%s", err, stderr)
	}
	f.killAll(f.ns["server"]) // what it was not informed of
	_ = f.sshd["server"].Wait()
	lose("-D")
	f.startSSHD("server")
	if _, stderr, err := f.run("hosts", "reset", "--inventory", f.inventory); err != nil {
		t.Errorf("%v\n%s", err, stderr)
	}
	asBefore()
}

// killAll kills all processes in a namespace of the farm.
func (f *farm) killAll(ns netns.NS) {
	f.t.Helper()
	inode, err := ns.Inode()
	if err != nil {
		f.t.Fatal(err)
	}
	links, _ := filepath.Glob("/proc/[0-9]*/ns/net")
	for _, path := range links {
		if to, err := os.Readlink(path); err == nil && to == fmt.Sprintf("net:[%d]", inode) {
			pid, _ := strconv.Atoi(strings.Split(path, "/")[2])
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
		}
	}
}

// statusOf is the exit status of a program that ended with err; 0 where err is
// nil, -1 where it has none.
func statusOf(err error) int {
	var coder interface{ ExitCode() int }
	switch {
	case err == nil:
		return 0
	case errors.As(err, &coder):
		return coder.ExitCode()
	}
	return -1
}
