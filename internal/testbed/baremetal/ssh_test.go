package baremetal

import (
	"errors"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/exec"
)

// TestUnreachable: what ssh said, as captured from OpenSSH and from Ansible, is one
// line with the cure that fits.
func TestUnreachable(t *testing.T) {
	const ansible = `Data could not be sent to remote host "198.18.0.2". Make sure this host can be reached over ssh: `
	for said, want := range map[string]string{
		ansible + "ssh: connect to host 198.18.0.2 port 22: Connection timed out\r\n":                                           "a: cannot be reached: ssh: connect to host 198.18.0.2 port 22: Connection timed out (it does not answer: correct ansible_host, or the network between)",
		"Failed to connect to the host via ssh: ssh: connect to host 10.99.0.2 port 22: Network is unreachable":                 "a: cannot be reached: ssh: connect to host 10.99.0.2 port 22: Network is unreachable (there is no route from here: correct ansible_host, or the network between)",
		"Warning: Identity file /k not accessible: No such file or directory.\nroot@198.18.0.1: Permission denied (publickey).": "a: cannot be reached: root@198.18.0.1: Permission denied (publickey). (there is no such key file here: correct ansible_ssh_private_key_file)",
		"No ED25519 host key is known for 198.18.0.2 and you have requested strict checking.\r\nHost key verification failed.\r\n": "a: cannot be reached: Host key verification failed. (its key is not in known_hosts, or not the one that is: " +
			"compare it by another way, then: ssh-keyscan 198.18.0.2 >>~/.ssh/known_hosts)",
		"No ED25519 host key is known for [198.18.0.2]:2222 and you have requested strict checking.\r\nHost key verification failed.": "a: cannot be reached: Host key verification failed. (its key is not in known_hosts, or not the one that is: " +
			"compare it by another way, then: ssh-keyscan -p 2222 198.18.0.2 >>~/.ssh/known_hosts)",
		"@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed.": "a: cannot be reached: Host key verification failed. (it answers with another key than before: find out why before anything else)",
		"": "a: the connection broke: no answer for 15 s, or something there was killed (see whether it is up, and what its journal says)",
	} {
		if err := unreachable("a", said); err.Error() != want || !isLost(err) {
			t.Errorf("%q:\n got %v\nwant %v", said, err, want)
		}
	}
}

// TestHowAProgramEnded: how a program on the host ended is one line too, and not the command.
func TestHowAProgramEnded(t *testing.T) {
	r := exec.NewRunner()
	defer r.Close()
	for script, want := range map[string]string{
		"exit 255":                       "a: the connection broke",
		"kill -9 $$":                     "a: the connection broke",
		"echo x; echo y >&2; exit 1":     "a: a command there failed: y",
		"exit 3":                         "a: a command there ended with status 3",
		"echo sudo: no password; exit 0": "",
		"echo 'sudo: a password is required' >&2; exit 1": "a: a command there failed: sudo: a password is required (let ansible_user use sudo there without a password, or set ansible_user: root)",
	} {
		_, err := r.Run(t.Context(), exec.Cmd{Argv: []string{"sh", "-c", script}})
		got := ""
		if err = (Host{Name: "a"}).explain(err); err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, want) || want == "" && got != "" || strings.Contains(got, script) {
			t.Errorf("%s: %q, want %q", script, got, want)
		}
	}
	_, err := r.Run(t.Context(), exec.Cmd{Argv: []string{"no-such-program"}})
	if err = (Host{Name: "a"}).explain(err); err == nil || isLost(err) || !strings.Contains(err.Error(), "no-such-program") {
		t.Errorf("without ssh: %v", err)
	}
}

// TestCheck: the check names each thing that a host lacks.
func TestCheck(t *testing.T) {
	h := Host{Name: "a", Dir: "/d"}
	good := "uid=0\npython=/usr/bin/python3\nip=/sbin/ip\npassing=100000000\nfree=100000000\ndevice=eth0\nmtu=1500\nspeed=-1\n"
	for _, c := range []struct{ from, to, want string }{
		{"uid=0", "uid=0", ""},
		{"uid=0", "uid=1000", "by root only"},
		{"/usr/bin/python3", "", "no python3"},
		{"/sbin/ip", "", "iproute2"},
		{"passing=100000000", "passing=1", "0 MiB are free in /tmp"},
		{"free=100000000", "free=100000000\nmount=1", "/d is a mount point, which cannot be removed afterwards (name a folder in it: cnibench_dir: /d/cnibench)"},
		{"free=100000000", "free=1", "0 MiB are free for /d"},
		{"mtu=1500", "mtu=", "has no device eth0"},
		{"device=eth0\nmtu=1500", "device=\nmtu=", "no route to the other end"},
		{"device=eth0", "device={{ lookup('pipe', 'id') }}", "which cannot be one"},
		{"device=eth0", "device=-K", "which cannot be one"},
		{"device=eth0", "device=eth0\nkernel=6.1 \x1b[2J", `kernel release "6.1 ?[2J", which cannot be one`},
	} {
		var f facts
		for line := range strings.Lines(strings.Replace(good, c.from, c.to, 1)) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			f.take(key, value)
		}
		err := h.check(f, "ssh_test.go")
		var e *HostError
		if (err == nil) != (c.want == "") || err != nil && (!errors.As(err, &e) || e.Cure == "" || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.to, err, c.want)
		}
	}
}
