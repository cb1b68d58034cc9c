package baremetal

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/answer"
	"github.com/cnibench/cnibench/internal/exec"
)

// answerWithin bounds one short command on a host.
const answerWithin = 30 * time.Second

// HostError is what is wrong with one host, in one line with its cure.
type HostError struct {
	Host, Text, Cure string
	// Lost means that the host does not answer, Taken that another command has it.
	Lost, Taken bool
}

func (e *HostError) Error() string {
	// What a host said may be in it, and must not steer a terminal.
	s := answer.Text(e.Host + ": " + e.Text)
	if e.Cure != "" {
		s += " (" + e.Cure + ")"
	}
	return s
}

// ssh is the command that runs a program on the host. Nobody is asked for a
// password, and a host whose key is not known is refused; the inventory's own
// arguments come first, and with OpenSSH the first word counts.
func (h Host) ssh(remote ...string) exec.Cmd {
	argv := append([]string{"ssh", "-T"}, strings.Fields(h.SSHArgs)...)
	for _, o := range []string{
		"BatchMode=yes", "StrictHostKeyChecking=yes", "ConnectTimeout=10", "ServerAliveInterval=5", "ServerAliveCountMax=3",
		"ControlMaster=no", "ControlPath=none", "ForwardX11=no", "ForwardAgent=no", "LogLevel=ERROR",
	} {
		argv = append(argv, "-o", o)
	}
	if h.KeyFile != "" {
		argv = append(argv, "-o", "IdentitiesOnly=yes", "-i", h.KeyFile)
	}
	if h.Port != "" {
		argv = append(argv, "-p", h.Port)
	}
	if h.User != "" {
		argv = append(argv, "-l", h.User)
	}
	if h.Become {
		remote = append([]string{"sudo", "-n", "--"}, remote...)
	}
	// The far side's shell takes the words apart again.
	return exec.Cmd{Argv: append(argv, "--", h.Address, exec.Cmd{Argv: remote}.String())}
}

// run runs a short command on the host and gives its output.
func (h Host) run(ctx context.Context, r *exec.Runner, remote ...string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, answerWithin, fmt.Errorf("no answer within %v", answerWithin))
	defer cancel()
	res, err := r.Run(ctx, h.ssh(remote...))
	if err == nil {
		return string(res.Stdout), nil
	}
	if ctx.Err() != nil {
		return "", h.silent(ctx)
	}
	return "", h.explain(err)
}

// silent is the error of a host that did not answer before ctx ended.
func (h Host) silent(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return context.Cause(ctx)
	}
	return &HostError{Host: h.Name, Text: fmt.Sprintf("cannot be reached: no answer within %v", answerWithin), Cure: "see whether it is overloaded, what its login shell's startup files wait for, or the network between", Lost: true}
}

// sshFailed is the status of ssh where it did not get to run anything, where the
// connection broke, and where a signal ended what it ran (ssh(1)).
const sshFailed = 255

// explain makes one clear error of how ssh ended, or what it ran on the host.
func (h Host) explain(err error) error {
	var ended *exec.Error
	if !errors.As(err, &ended) {
		return err
	}
	said := string(ended.Stderr)
	var status interface{ ExitCode() int }
	if !errors.As(ended.Err, &status) {
		return fmt.Errorf("%s: %w", h.Name, ended.Err) // there is no ssh here
	}
	if status.ExitCode() == sshFailed || status.ExitCode() < 0 {
		return unreachable(h.Name, said)
	}
	e := &HostError{Host: h.Name, Text: fmt.Sprintf("a command there ended with status %d", status.ExitCode())}
	if last := lastLine(said); last != "" {
		e.Text = "a command there failed: " + last
	}
	if strings.Contains(said, "sudo:") {
		e.Cure = "let ansible_user use sudo there without a password, or set ansible_user: root"
	}
	return e
}

// unreachable makes one clear error of what ssh or Ansible said.
func unreachable(host, said string) error {
	e := &HostError{Host: host, Text: "cannot be reached: " + whatSSHSaid(said), Lost: true}
	for _, c := range []struct{ word, cure string }{
		{"IDENTIFICATION HAS CHANGED", "it answers with another key than before: find out why before anything else"},
		{"Host key verification failed", "its key is not in known_hosts, or not the one that is: compare it by another way, then: " + scanKey(said)},
		{"not accessible: No such file", "there is no such key file here: correct ansible_ssh_private_key_file"},
		{"Permission denied", "the key is not accepted there: name another in ansible_ssh_private_key_file, or add it to authorized_keys"},
		{"Connection refused", "nothing listens there: start sshd, or correct ansible_host and ansible_port"},
		{"Could not resolve", "the name is not known: correct ansible_host"},
		{"No route to host", "correct ansible_host, or the network between"},
		{"Network is unreachable", "there is no route from here: correct ansible_host, or the network between"},
		{"timed out", "it does not answer: correct ansible_host, or the network between"},
	} {
		if strings.Contains(said, c.word) {
			e.Cure = c.cure
			return e
		}
	}
	if strings.TrimSpace(said) == "" {
		e.Text = "the connection broke: no answer for 15 s, or something there was killed"
		e.Cure = "see whether it is up, and what its journal says"
	}
	return e
}

// unknownKey is how ssh says that it has no key of a host, under the name that
// known_hosts has it: "host" or "[host]:port". The banner of a server may say the same,
// and people paste the command that is made of it: only what names and addresses consist
// of is taken.
var unknownKey = regexp.MustCompile(`host key is known for (?:\[([A-Za-z0-9_.:%][A-Za-z0-9_.:%-]*)\]:(\d{1,5})|([A-Za-z0-9_.:%][A-Za-z0-9_.:%-]*)) and`)

// scanKey is the command that adds a host's key.
func scanKey(said string) string {
	m := unknownKey.FindStringSubmatch(said)
	switch {
	case m == nil:
		return "ssh-keyscan ANSIBLE_HOST >>~/.ssh/known_hosts"
	case m[3] != "":
		return "ssh-keyscan " + m[3] + " >>~/.ssh/known_hosts"
	}
	return "ssh-keyscan -p " + m[2] + " " + m[1] + " >>~/.ssh/known_hosts"
}

// whatSSHSaid is the last line of it, without Ansible's words before.
func whatSSHSaid(s string) string {
	last := lastLine(s)
	for _, before := range []string{"can be reached over ssh: ", "to the host via ssh: "} {
		if _, after, found := strings.Cut(last, before); found {
			return after
		}
	}
	return last
}

// lastLine is the last line with words in it.
func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

// facts are what a host reports about itself before anything is done to it.
type facts struct {
	kernel, os, cpuModel string
	cpus                 int
	memoryBytes          int64
	freeBytes            int64 // for the roles' folder
	passingBytes         int64 // free in passing
	root                 bool
	mount                bool // the roles' folder is a mount point
	python, ip           bool
	device               string
	mtu                  int // of the device, bytes; 0: unknown
	// deviceMbps is the speed that the device reports; 0: it reports none.
	deviceMbps int
}

// passing is the folder through which Ansible copies a file to a host. It is there
// on every host, and what Ansible makes below it is removed.
const passing = "/tmp"

// askFacts is a shell script, as nothing but a shell can be taken for granted
// yet. Its arguments are the roles' folder, the other end's address and the device,
// if the inventory names one.
const askFacts = `d=$1
while [ ! -d "$d" ]; do d=$(dirname "$d"); done
echo "kernel=$(uname -r)"
echo "uid=$(id -u)"
echo "python=$(command -v python3)"
echo "ip=$(command -v ip)"
echo "passing=$(df -Pk ` + passing + ` | awk 'END { print $4 }')"
echo "free=$(df -Pk "$d" | awk 'END { print $4 }')"
echo "mount=$(awk -v d="$(readlink -f "$1")" '$5 == d { print 1; exit }' /proc/self/mountinfo)"
echo "cpus=$(grep -c ^processor /proc/cpuinfo)"
echo "model=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)"
echo "memory=$(sed -n 's/^MemTotal: *\([0-9]*\) kB/\1/p' /proc/meminfo)"
echo "os=$(sed -n 's/^PRETTY_NAME="\(.*\)"/\1/p' /etc/os-release)"
dev=${3:-$(ip -o route get "$2" | sed -n 's/.* dev \([^ ]*\).*/\1/p')}
echo "device=$dev"
echo "mtu=$(ip -o link show dev "$dev" 2>/dev/null | sed -n 's/.* mtu \([0-9]*\).*/\1/p')"
echo "speed=$({ ethtool "$dev" || echo "Speed: $(cat "/sys/class/net/$dev/speed")Mb"; } 2>/dev/null | sed -n 's/.*Speed: \([0-9]*\)Mb.*/\1/p')"
`

// ask gathers the facts of a host.
func (h Host) ask(ctx context.Context, r *exec.Runner, peer string) (facts, error) {
	out, err := h.run(ctx, r, "sh", "-c", askFacts, "sh", h.Dir, peer, h.Device)
	var f facts
	if err != nil {
		return f, err
	}
	for line := range strings.Lines(out) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		f.take(key, value)
	}
	return f, nil
}
