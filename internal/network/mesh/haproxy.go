package mesh

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/dataplane"
)

const (
	// portOut and portIn are Istio's for what a pod opens and for what comes for it.
	portOut, portIn = 15001, 15006
	// proxyUser is Istio's user, whose connections are not led to the proxy again.
	proxyUser = 1337
	// table has the rules.
	table = "cnb-mesh"
	// nodeProxy is the name of a node's own proxy.
	nodeProxy = "node"
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

func dir(self network.Node) string { return filepath.Join(self.DataDir, "mesh") }

// proxy is the one of a pod, or nodeProxy.
func proxy(self network.Node, name string) dataplane.HAProxy {
	return dataplane.HAProxy{Dir: dir(self), Name: name}
}

// startProxy starts a proxy in a namespace, and returns when it takes connections.
func startProxy(ctx context.Context, self network.Node, ns netns.NS, name string) error {
	return proxy(self, name).Start(ctx, ns, fmt.Sprintf(config, proxyUser, portOut, portIn))
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
