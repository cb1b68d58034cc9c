package network

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"os"

	"github.com/cnibench/cnibench/internal/netns"
)

// Service is one port of a service, as a service proxy learns of it.
type Service struct {
	Name     string // namespace/name, "default/echo"
	PortName string // "" where the service has one port alone
	Protocol string // "tcp" or "udp"
	Address  netip.AddrPort
	NodePort uint16 // 0: none
	// Endpoints are what it leads to, each as likely as the others.
	Endpoints []netip.AddrPort
}

// String is the service's port in kube-proxy's words: "default/echo:p0".
func (s Service) String() string {
	if s.PortName == "" {
		return s.Name
	}
	return s.Name + ":" + s.PortName
}

// ServiceRange is what services' addresses are of, kubeadm's default.
func ServiceRange() netip.Prefix { return netip.MustParsePrefix("10.96.0.0/12") }

// ServiceProxy is one way to carry services out on nodes: by rules that pods'
// packets pass on their node, or at the pods' sockets.
type ServiceProxy struct {
	// Name is what campaigns call it: "iptables".
	Name    string
	Summary string
	// Model cites what it was modelled on; LeavesOut says what it does without.
	Model, LeavesOut string
	// Needs are the features without which it is unsupported.
	Needs []netns.Feature
	// Family begins the names of the networks that have it of their own, "antrea/";
	// "" is one for all.
	Family string
	// Start does on one node what it does before it knows of any service; it runs
	// before the network's SetUp, as a kube-proxy is there before pods are. May be
	// nil.
	Start func(ctx context.Context, self Node) error
	// Sync makes these the services of one node. It is nil where AtSockets is not.
	Sync func(ctx context.Context, self Node, services []Service) error
	// AtSockets carries services out for the programs in a cgroup, of one node.
	// What it gives is closed when the lab goes.
	AtSockets func(cgroup *os.File, nodes []Node, services []Service) (io.Closer, error)
}

// ServiceProxies is every service proxy, in the order in which help shows them.
func ServiceProxies() []ServiceProxy {
	return []ServiceProxy{iptablesProxy(), nftablesProxy(), ipvsProxy(), ebpfProxy(), antreaProxy()}
}

// FindServiceProxy looks a service proxy up by name; the error lists the known
// names.
func FindServiceProxy(name string) (ServiceProxy, error) {
	return named("service proxy", name, ServiceProxies(), func(p ServiceProxy) string { return p.Name })
}

// outside matches, in a rule of a program, what kube-proxy masquerades on its
// way to a service's address: sources outside --cluster-cidr, or with
// --masquerade-all every one. match has a %s for the range.
func outside(self Node, match string) string {
	if self.MasqueradeAll {
		return ""
	}
	return fmt.Sprintf(match, Pods())
}

// kubeProxyLeavesOut is what all of kube-proxy's modes do without here.
const kubeProxyLeavesOut = "kube-proxy itself (one full sync, none after), session affinity, load balancers, external IPs, " +
	"local traffic policies, services without endpoints, IPv6"

// kubeMark is kube-proxy's mark of packets whose source is to be replaced
// (--iptables-masquerade-bit=14).
const kubeMark = "0x4000"
