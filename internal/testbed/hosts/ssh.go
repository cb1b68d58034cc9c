package hosts

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/exec"
)

// answerWithin bounds one short command on a host.
const answerWithin = 30 * time.Second

// HostError is what is wrong with one host, in one line with its cure.
type HostError struct {
	Host, Text, Cure string
	// Lost tells that the host does not answer, Taken that another command has it.
	Lost, Taken bool
}

func (e *HostError) Error() string {
	s := e.Host + ": " + e.Text
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
	if res.ExitCode == sshFailed || ctx.Err() != nil {
		return "", unreachable(h.Name, string(res.Stderr), err)
	}
	return string(res.Stdout), err
}

// sshFailed is the status of ssh where it did not get to run anything (ssh(1)).
const sshFailed = 255

// unreachable makes one clear error of what ssh or Ansible said.
func unreachable(host, said string, err error) error {
	e := &HostError{Host: host, Text: "cannot be reached: " + lastLine(said), Lost: true}
	if said == "" && err != nil {
		e.Text = "cannot be reached: " + err.Error()
	}
	for word, cure := range map[string]string{
		"Permission denied": "the key is not accepted there: name another in ansible_ssh_private_key_file, or add it to authorized_keys",
		"Host key verification failed": "its key is not in known_hosts, or not the one that is: compare it by another way, " +
			"then add it with ssh-keyscan " + host,
		"HOST IDENTIFICATION HAS CHANGED": "it answers with another key than before: find out why before anything else",
		"Connection refused":              "nothing listens there: start sshd, or mend ansible_host and ansible_port",
		"Could not resolve":               "the name is not known: mend ansible_host",
		"No route to host":                "mend ansible_host, or the network between",
		"timed out":                       "it does not answer: mend ansible_host, or the network between",
	} {
		if strings.Contains(said, word) {
			e.Cure = cure
		}
	}
	return e
}

// lastLine is the last line with words in it.
func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

// facts are what a host says of itself before anything is done to it.
type facts struct {
	kernel, os, cpuModel string
	cpus                 int
	memoryBytes          int64
	freeBytes            int64
	root                 bool
	python               bool
	device               string
	mtu                  int // of the device, bytes; 0: not told
	// deviceMbps is the speed that the device tells; 0: it tells none.
	deviceMbps int
}

// askFacts is a shell script, as nothing but a shell can be taken for granted
// yet. Its arguments are the roles' folder, the other end's address and the device,
// if the inventory names one.
const askFacts = `d=$1
while [ ! -d "$d" ]; do d=$(dirname "$d"); done
echo "kernel=$(uname -r)"
echo "uid=$(id -u)"
echo "python=$(command -v python3)"
echo "free=$(df -Pk "$d" | awk 'END { print $4 }')"
echo "cpus=$(grep -c ^processor /proc/cpuinfo)"
echo "model=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)"
echo "memory=$(sed -n 's/^MemTotal: *\([0-9]*\) kB/\1/p' /proc/meminfo)"
echo "os=$(sed -n 's/^PRETTY_NAME="\(.*\)"/\1/p' /etc/os-release)"
dev=${3:-$(ip -o route get "$2" | sed -n 's/.* dev \([^ ]*\).*/\1/p')}
echo "device=$dev"
echo "mtu=$(ip -o link show dev "$dev" 2>/dev/null | sed -n 's/.* mtu \([0-9]*\).*/\1/p')"
echo "speed=$(ethtool "$dev" 2>/dev/null | sed -n 's/.*Speed: \([0-9]*\)Mb.*/\1/p')"
`

// ask gathers the facts of a host.
func (h Host) ask(ctx context.Context, r *exec.Runner, peer string) (facts, error) {
	out, err := h.run(ctx, r, "sh", "-c", askFacts, "sh", h.Dir, peer, h.Device)
	var f facts
	if err != nil {
		var known *HostError
		if !errors.As(err, &known) {
			err = &HostError{Host: h.Name, Text: "what it says of itself: " + err.Error()}
		}
		return f, err
	}
	for line := range strings.Lines(out) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		f.take(key, value)
	}
	return f, nil
}
