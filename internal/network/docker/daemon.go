package docker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
)

const (
	dockerPIDFile = "pid"
	dockerLog     = "dockerd.log"
)

// dockerDir is the folder of a node's dockerd.
func dockerDir(self network.Node) string { return filepath.Join(self.DataDir, "docker") }

// tools is Docker Engine, as a feature of the machine.
func tools() netns.Feature {
	return netns.Feature{
		Name: "dockerd", Doc: "Docker's real networks", Cure: "apt-get install docker.io", Probe: func() error {
			for program, from := range map[string]string{"dockerd": "docker.io", "containerd": "containerd", "runc": "runc"} {
				if _, err := exec.LookPath(program); err != nil {
					return fmt.Errorf("%s is not installed: apt-get install %s", program, from)
				}
			}
			return nil
		},
	}
}

// dockerVersion says what carries the packets.
func dockerVersion(ctx context.Context) (string, error) {
	r := exec.NewRunner()
	defer r.Close()
	got, err := r.Run(ctx, exec.Cmd{Argv: []string{"dockerd", "--version"}})
	if err != nil {
		return "", err
	}
	// "Docker version 20.10.24+dfsg1, build 5d6db84"
	said, _, _ := strings.Cut(strings.TrimSpace(string(got.Stdout)), ",")
	version, ok := strings.CutPrefix(said, "Docker version ")
	if !ok {
		return "", fmt.Errorf("dockerd --version said %q: no version in it", said)
	}
	return "Docker Engine " + version, nil
}

// startDocker starts a node's dockerd, and its containerd with it, and does not wait.
// Both are in the node's network namespace and in a mount namespace of their own, with
// data, sockets and state in memory: all of it goes with the lab, which kills what is
// in its namespaces. They outlive this process where the lab does.
func startDocker(self network.Node, bridge netip.Prefix) error {
	dir := dockerDir(self)
	if err := os.MkdirAll(filepath.Join(dir, "tmp"), 0o755); err != nil {
		return err
	}
	if err := linkPrograms(dir); err != nil {
		return err
	}
	// The machine's own /etc/docker/daemon.json is another Docker's.
	config := filepath.Join(dir, "daemon.json")
	if err := os.WriteFile(config, []byte("{}\n"), 0o644); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(dir, dockerLog))
	if err != nil {
		return err
	}
	defer log.Close()
	r := exec.NewRunner()
	defer r.Close()
	p, err := r.Launch(exec.Cmd{
		Argv: append([]string{"unshare", "--mount", "--propagation", "private", filepath.Join(dir, dockerHolder), dir},
			dockerdArgs(self, config, bridge)...),
		NetNS: self.NS.Path, CleanEnv: true,
		// By container it takes itself for a guest that loads no AppArmor profile into
		// the machine's kernel.
		Env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "container=cnibench"},
	}, log)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, dockerPIDFile), []byte(strconv.Itoa(p.PID)+"\n"), 0o644)
}

// dockerdArgs is dockerd's command line. What is not named is as Docker's users have
// it: iptables, masquerading, the user-space proxy of published ports.
func dockerdArgs(self network.Node, config string, bridge netip.Prefix) []string {
	return []string{
		"dockerd", "--config-file", config, "--log-level", "warn",
		"--data-root", "/run/docker-data", "--exec-root", "/run/docker", "--pidfile", "/run/docker.pid", "--host", "unix://" + dockerSocket,
		"--storage-driver", "vfs", "--exec-opt", "native.cgroupdriver=cgroupfs", "--cgroup-parent", "/" + self.NS.Name + "-docker",
		"--oom-score-adjust", "0", "--add-runtime", dockerRuntime + "=" + filepath.Join(dockerDir(self), dockerRuntime),
		"--bip", bridge.String(), "--mtu", strconv.Itoa(self.MTU),
	}
}

// patience bounds the wait for all of a lab's dockerds; one alone takes a second
// or two.
const patience = 60 * time.Second

// awaitDocker waits until the dockerd of each node answers, gives it the pods' image
// and does what else is to be done there.
func awaitDocker(ctx context.Context, nodes []network.Node, then func(ctx context.Context, self network.Node, d *client) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("dockerd is not ready after %s", patience))
	defer cancel()
	g, ctx := errgroup.WithContext(ctx)
	for _, n := range nodes {
		g.Go(func() error {
			err := readyDocker(ctx, n, then)
			if err != nil {
				return explainDocker(n, err)
			}
			return nil
		})
	}
	return g.Wait()
}

func readyDocker(ctx context.Context, self network.Node, then func(ctx context.Context, self network.Node, d *client) error) error {
	d, err := openDocker(dockerDir(self))
	if err != nil {
		return err
	}
	for {
		err := d.do(ctx, http.MethodGet, "/_ping", nil, nil)
		if err == nil {
			break
		}
		if _, gone := os.Readlink(filepath.Join("/proc", dockerPID(self), "ns/net")); gone != nil {
			return errors.New("dockerd ended")
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-time.After(20 * time.Millisecond):
		}
	}
	var tar bytes.Buffer
	if err := writePauseImage(&tar, dockerDir(self)); err != nil {
		return err
	}
	if err := d.load(ctx, &tar); err != nil {
		return err
	}
	if then == nil {
		return nil
	}
	return then(ctx, self, d)
}

// dockerPID is the process of a node's dockerd; "" where there is none.
func dockerPID(self network.Node) string {
	text, err := os.ReadFile(filepath.Join(dockerDir(self), dockerPIDFile))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// explainDocker adds the end of dockerd's log to an error.
func explainDocker(self network.Node, err error) error {
	said, readErr := os.ReadFile(filepath.Join(dockerDir(self), dockerLog))
	if readErr != nil {
		return errors.Join(fmt.Errorf("%s: %w", self.Name, err), readErr)
	}
	lines := strings.Split(strings.TrimSpace(string(said)), "\n")
	return fmt.Errorf("%s: %w (dockerd said: %s)", self.Name, err, strings.Join(lines[max(0, len(lines)-3):], "; "))
}
