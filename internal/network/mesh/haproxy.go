package mesh

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/dataplane"
)

const (
	haproxy = "haproxy"
	// portOut and portIn are Istio's for what a pod opens and for what comes for it.
	portOut, portIn = 15001, 15006
	// proxyUser is Istio's user, whose connections are not led to the proxy again.
	proxyUser = 1337
	// table has the rules.
	table = "cnb-mesh"
	// nodeProxy is the name of a node's own proxy.
	nodeProxy = "node"
	pidSuffix = ".pid"
)

// config is what a proxy does: it connects to where a connection was going before it was
// redirected. A server at 0.0.0.0 without a port is that address and port.
const config = `global
    nbthread 2
    uid %[1]d
    gid %[1]d
defaults
    mode tcp
    timeout connect 5s
    timeout client 1h
    timeout server 1h
listen out
    bind 0.0.0.0:%[2]d
    server original 0.0.0.0
listen in
    bind 0.0.0.0:%[3]d
    server original 0.0.0.0
`

// haproxyTool is the Debian package, as a feature of the machine.
func haproxyTool() netns.Feature {
	return netns.Feature{Name: haproxy, Doc: "proxies of a service mesh", Cure: "apt-get install haproxy", Probe: func() error {
		if _, err := exec.LookPath(haproxy); err != nil {
			return fmt.Errorf("%s is not installed: apt-get install haproxy", haproxy)
		}
		return nil
	}}
}

// haproxyVersion says what carries TCP.
func haproxyVersion(ctx context.Context) (string, error) {
	r := exec.NewRunner()
	defer r.Close()
	got, err := r.Run(ctx, exec.Cmd{Argv: []string{haproxy, "-v"}})
	if err != nil {
		return "", err
	}
	return parseVersion(string(got.Stdout))
}

// parseVersion reads "HAProxy version 2.6.12-1+deb12u4 2026/01/02 - https://haproxy.org/".
func parseVersion(said string) (string, error) {
	fields := strings.Fields(said)
	if len(fields) < 3 || fields[0] != "HAProxy" || fields[1] != "version" {
		return "", fmt.Errorf("haproxy -v printed %q: no version in it", strings.TrimSpace(said))
	}
	return "HAProxy " + fields[2], nil
}

func dir(self network.Node) string { return filepath.Join(self.DataDir, "mesh") }

func pidFile(self network.Node, name string) string { return filepath.Join(dir(self), name+pidSuffix) }

func configFile(self network.Node, name string) string {
	return filepath.Join(dir(self), name+".cfg")
}

// startProxy starts a proxy in a namespace, and returns when it takes connections. It outlives
// this process where the lab does; whoever takes the lab down kills what is in its namespaces.
func startProxy(ctx context.Context, self network.Node, ns netns.NS, name string) error {
	if err := os.MkdirAll(dir(self), 0o755); err != nil {
		return err
	}
	text := fmt.Sprintf(config, proxyUser, portOut, portIn)
	if err := os.WriteFile(configFile(self, name), []byte(text), 0o644); err != nil {
		return err
	}
	r := exec.NewRunner()
	defer r.Close()
	// With -D its first process ends once all ports are open.
	_, err := r.Run(ctx, exec.Cmd{
		Argv:  []string{haproxy, "-D", "-f", configFile(self, name), "-p", pidFile(self, name)},
		NetNS: ns.Path,
	})
	if err != nil {
		return fmt.Errorf("proxy in %s: %w", ns.Name, err)
	}
	return nil
}

// endProxy ends the proxy of a pod that is gone.
func endProxy(self network.Node, name string) error {
	text, err := os.ReadFile(pidFile(self, name))
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		pid, err := strconv.Atoi(strings.TrimSpace(line))
		if err != nil {
			return fmt.Errorf("%s: %w", pidFile(self, name), err)
		}
		// Its number may be another program's by now.
		argv, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
		if strings.Contains(string(argv), configFile(self, name)) {
			_ = unix.Kill(pid, unix.SIGKILL) // it may have ended since
		}
	}
	return os.Remove(pidFile(self, name))
}

// redirect loads rules in the place of those that a namespace has.
func redirect(ctx context.Context, ns netns.NS, rules []string) error {
	script := fmt.Sprintf("add table ip %[1]s\ndelete table ip %[1]s\nadd table ip %[1]s\n%s\n", table, strings.Join(rules, "\n"))
	r := exec.NewRunner()
	defer r.Close()
	_, err := r.Run(ctx, exec.Cmd{Argv: []string{dataplane.NFT, "-f", "-"}, NetNS: ns.Path, Stdin: strings.NewReader(script)})
	if err != nil {
		return fmt.Errorf("%s: %w", ns.Name, err)
	}
	return nil
}

// redirected is how many connections the rules of a namespace led to its proxy: rules of NAT
// see the first packet of each.
func redirected(ctx context.Context, ns netns.NS) (uint64, error) {
	r := exec.NewRunner()
	defer r.Close()
	got, err := r.Run(ctx, exec.Cmd{Argv: []string{dataplane.NFT, "list", "table", "ip", table}, NetNS: ns.Path})
	if err != nil {
		return 0, fmt.Errorf("%s: %w", ns.Name, err)
	}
	return parseCounters(string(got.Stdout))
}

// parseCounters adds up the packets of the rules that redirect.
func parseCounters(listing string) (uint64, error) {
	rules := regexp.MustCompile(`counter packets (\d+) bytes \d+ redirect to`).FindAllStringSubmatch(listing, -1)
	if len(rules) == 0 {
		return 0, fmt.Errorf("table %s has no rule that redirects", table)
	}
	var sum uint64
	for _, rule := range rules {
		n, err := strconv.ParseUint(rule[1], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("table %s: %w", table, err)
		}
		sum += n
	}
	return sum, nil
}
