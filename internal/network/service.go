package network

import (
	"context"
	"io"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/result"
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

// ProtocolNumber is IPPROTO_UDP for "udp", else IPPROTO_TCP.
func (s Service) ProtocolNumber() uint16 {
	if s.Protocol == "udp" {
		return unix.IPPROTO_UDP
	}
	return unix.IPPROTO_TCP
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
	// Datapath says which program carries its traffic on this machine, with its version. nil
	// where it is the kernel.
	Datapath func(ctx context.Context) (string, error)
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
	// AtSockets carries services out for the programs in a cgroup, of the node self.
	// What it gives is closed when the lab goes.
	AtSockets func(cgroup *os.File, self Node, nodes []Node, services []Service) (ServiceUpdater, error)
	// UserSpaceLoses are the datagrams to services, in fragments, that do not arrive where the
	// network's packets are switched in user space.
	UserSpaceLoses Fragments
	// Refuses says why it cannot carry a cell's traffic on a network; "" where it can. May be nil.
	Refuses func(n Network, c result.Cell) string
	// Passed gives how many packets to a NodePort of a node, from other nodes, its programs at
	// the node's device have led to a backend, and how many answers they have changed. It is an
	// error where the device does not run them as it should. nil where there are none.
	Passed func(self Node) (requests, answers uint64, err error)
	// Requests is how many requests to NodePorts the program has taken that carries them in user
	// space on a node. nil where none does: services are then rules for packets, which pass the
	// node's, or programs at sockets.
	Requests func(ctx context.Context, self Node) (uint64, error)
	// Place moves that program to some CPUs; to all that this process may use where there are
	// none. nil where there is no program.
	Place func(self Node, cpus []int) error
	// Update does on one node what it does when the endpoints of one service have changed:
	// services are all of them, as they are now, and changed is the index of that one. It is
	// nil where AtSockets is not: what that gives is a ServiceUpdater.
	Update func(ctx context.Context, self Node, services []Service, changed int) error
}

// ServiceUpdater is what AtSockets gives.
type ServiceUpdater interface {
	io.Closer
	// UpdateService makes the endpoints of a service those that it has now.
	UpdateService(s Service) error
}
