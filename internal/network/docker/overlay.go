package docker

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/dataplane"
	"github.com/cnibench/cnibench/internal/result"
)

//go:embed overlay.conflist
var overlayConflist string

// What libnetwork's overlay driver has: the first network identifier after the
// ingress network's, and 50 bytes less than the link's MTU.
const (
	dockerVNI      = 4097
	dockerOverhead = 50
	dockerVXLAN    = "vxlan0"
	dockerSwitch   = "br0"
)

// Overlay is a network of docker network create --driver overlay.
func Overlay() network.Network {
	n := network.Network{
		Kind:          result.KindOwnPlugin,
		Name:          "docker/overlay",
		Summary:       "Docker's overlay: on each node a bridge and VXLAN in a namespace of their own, one subnet for all nodes",
		Model:         "Docker Engine 27 (moby libnetwork/drivers/overlay, resolver_unix.go; containers by this program's plugin cnibench-docker-overlay)",
		LeavesOut:     "the second device to docker_gwbridge and its rules, encryption, services by ipvs, gossip (entries are set), the embedded DNS server (its rules in containers exist)",
		NoServices:    "Docker has none of Kubernetes' services",
		NoHostPaths:   "a container of an overlay has a node's side by its second device alone, docker_gwbridge, which is left out",
		Encapsulation: "vxlan",
		Overhead:      dockerOverhead,
		Needs:         []netns.Feature{netns.Veth(), netns.Bridge(), netns.VXLAN(), dataplane.IPTablesTool(), netns.NFTables(), netns.Conntrack()},
		Plugins:       []string{"host-local"},
		PodsAdded: func(_ context.Context, self network.Node, nodes []network.Node, pods []network.Pod) error {
			return peers(self, nodes, pods)
		},
	}
	n.SetUp = func(ctx context.Context, self network.Node, _ []network.Node) error {
		if err := sandboxUp(self, n.PodMTUOn(self)); err != nil {
			return fmt.Errorf("overlay of %s: %w", self.Name, err)
		}
		// The daemon's rules are for docker0, but with them the node tracks the
		// tunnel's packets too.
		return dataplane.Restore(ctx, self, filter(), nat(bridgeDefault().Masked()))
	}
	n.Conflist = func(self network.Node, nodes []network.Node) ([]byte, error) {
		text := strings.Replace(overlayConflist, "SANDBOX", dockerSandbox(self).Path, 1)
		return network.Template(text, n)(self, nodes)
	}
	return n
}

// dockerSandbox is the namespace of the network on one node. Its name begins
// with the node's, so it goes with the lab.
func dockerSandbox(self network.Node) netns.NS { return netns.Named(self.NS.Name + "-overlay") }

// sandboxUp makes the namespace with the bridge and the tunnel in it. The
// tunnel is made in the node's namespace and moved, so that its packets leave
// by the node.
func sandboxUp(self network.Node, mtu int) error {
	sandbox, err := netns.New(dockerSandbox(self).Name)
	if err != nil {
		return err
	}
	if err := netns.AddBridge(sandbox, dockerSwitch, mtu); err != nil {
		return err
	}
	outside, err := netns.Handle(self.NS)
	if err != nil {
		return err
	}
	defer outside.Close()
	la := netlink.NewLinkAttrs()
	la.Name, la.MTU = dockerVXLAN, mtu
	vxlan := &netlink.Vxlan{
		LinkAttrs: la, VxlanId: dockerVNI, Port: dataplane.VXLANPort, Learning: true, Proxy: true, L2miss: true, L3miss: true,
	}
	if err := outside.LinkAdd(vxlan); err != nil {
		return fmt.Errorf("%s: %w", dockerVXLAN, err)
	}
	into, err := os.Open(sandbox.Path)
	if err != nil {
		return err
	}
	defer into.Close()
	if err := outside.LinkSetNsFd(vxlan, int(into.Fd())); err != nil {
		return fmt.Errorf("%s into %s: %w", dockerVXLAN, sandbox.Name, err)
	}
	inside, err := netns.Handle(sandbox)
	if err != nil {
		return err
	}
	defer inside.Close()
	return join(inside, dockerVXLAN)
}

// join puts a device of the sandbox on its bridge.
func join(h *netlink.Handle, name string) error {
	bridge, err := netns.Link(h, dockerSwitch)
	if err != nil {
		return err
	}
	dev, err := netns.Link(h, name)
	if err != nil {
		return err
	}
	if err := h.LinkSetMasterByIndex(dev, bridge.Attrs().Index); err != nil {
		return fmt.Errorf("%s on %s: %w", name, dockerSwitch, err)
	}
	if err := h.LinkSetUp(dev); err != nil {
		return fmt.Errorf("%s: up: %w", name, err)
	}
	return nil
}

// mac is the address that Docker makes of a container's own.
func mac(a netip.Addr) net.HardwareAddr {
	b := a.As4()
	return net.HardwareAddr{0x02, 0x42, b[0], b[1], b[2], b[3]}
}

// peers sets what peerdb.go sets for each container of another node: its
// hardware address, which the tunnel answers for, and the node that has it.
func peers(self network.Node, nodes []network.Node, pods []network.Pod) error {
	h, dev, err := netns.Port{NS: dockerSandbox(self), Device: dockerVXLAN}.Open()
	if err != nil {
		return err
	}
	defer h.Close()
	node := map[int]network.Node{}
	for _, n := range nodes {
		node[n.Index] = n
	}
	for _, p := range pods {
		if p.Node == self.Index {
			continue
		}
		at, ok := node[p.Node]
		if !ok {
			return errors.New("a pod is on a node that does not exist")
		}
		neighbour := netlink.Neigh{
			LinkIndex: dev.Attrs().Index, State: netlink.NUD_PERMANENT, IP: p.Address.AsSlice(), HardwareAddr: mac(p.Address),
		}
		forward := netlink.Neigh{
			LinkIndex: dev.Attrs().Index, State: netlink.NUD_PERMANENT, Family: unix.AF_BRIDGE, Flags: netlink.NTF_SELF,
			IP: at.Address.Addr().AsSlice(), HardwareAddr: mac(p.Address),
		}
		if err := errors.Join(h.NeighSet(&neighbour), h.NeighSet(&forward)); err != nil {
			return fmt.Errorf("entry for %s: %w", p.Address, err)
		}
	}
	return nil
}
