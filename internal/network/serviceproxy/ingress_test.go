package serviceproxy

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/result"
)

// What no HTTP to a NodePort is, and where a node reaches no pod, is refused with the reason.
func TestIngressRefuses(t *testing.T) {
	web := result.Cell{Workload: "http", Path: result.PathPodToNodePort, Services: 1}
	for want, change := range map[string]func(n *network.Network, c *result.Cell){
		"":                      func(*network.Network, *result.Cell) {},
		"HTTP alone":            func(_ *network.Network, c *result.Cell) { c.Workload = "tcp_rr" },
		"a path to a node-port": func(_ *network.Network, c *result.Cell) { c.Path = result.PathPodToClusterIP },
		"services: [1]":         func(_ *network.Network, c *result.Cell) { c.Services = 2 },
		"is not encrypted":      func(_ *network.Network, c *result.Cell) { c.Encryption = result.EncryptionWireGuard },
		"it cannot reach a pod": func(n *network.Network, _ *result.Cell) { n.NoHostPaths = "it cannot reach a pod" },
	} {
		n, c := network.Network{}, web
		change(&n, &c)
		if why := ingressRefuses(n, c); (why == "") != (want == "") || !strings.Contains(why, want) {
			t.Errorf("%q, want %q", why, want)
		}
	}
}

// A frontend for each port by TCP, at the node's address alone; datagrams have none.
func TestIngressConfig(t *testing.T) {
	self := network.Node{Address: netip.MustParsePrefix("198.18.0.2/16"), DataDir: "/run/lab/node2"}
	pod := []netip.AddrPort{netip.MustParseAddrPort("10.244.2.2:30080")}
	got := ingressConfig(self, []network.Service{
		{Name: "default/measured", Protocol: "tcp", NodePort: 30080, Endpoints: pod},
		{Name: "default/measured", Protocol: "udp", NodePort: 30081, Endpoints: pod},
		{Name: "default/idle-1", Protocol: "tcp", Endpoints: pod},
	})
	_, ports, _ := strings.Cut(got, "frontend ")
	const want = `port-30080
    bind 198.18.0.2:30080
    default_backend pods-30080
backend pods-30080
    balance roundrobin
    option forwardfor
    no option abortonclose
    server SRV_1 10.244.2.2:30080
`
	if ports != want || !strings.Contains(got, "    stats socket unix@ingress.sock mode 600 level user\n") {
		t.Errorf("%s", got)
	}
}
