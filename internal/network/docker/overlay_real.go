package docker

import (
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

	"github.com/vishvananda/netlink"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
)

// swarmPort is that of a Swarm's managers.
const swarmPort = 2377

// OverlayReal is a network of docker network create --driver overlay
// --attachable, in a Swarm of all nodes over the lab's link.
func OverlayReal() network.Network {
	const own = "overlay0"
	n := engine("docker/overlay-real", own)
	n.Summary = "Docker Engine's own overlay: a Swarm of all nodes, VXLAN between them, one subnet for all nodes"
	n.NoHostPaths = "a node reaches a container of an overlay only by its second device, on docker_gwbridge"
	n.Encapsulation, n.Overhead = "vxlan", dockerOverhead
	n.Needs = append(n.Needs, netns.VXLAN())
	n.SetUp = func(ctx context.Context, self network.Node, nodes []network.Node) error {
		if err := startDocker(self, bridgeDefault()); err != nil || self.Index < len(nodes) {
			return err
		}
		if err := awaitDocker(ctx, nodes, nil); err != nil {
			return err
		}
		return swarm(ctx, nodes, dockerNetwork{
			Name: own, Driver: "overlay", CheckDuplicate: true, Attachable: true,
			// The link's: Docker takes the tunnel's overhead from it.
			Options: map[string]string{"com.docker.network.driver.mtu": strconv.Itoa(self.MTU)},
			IPAM:    dockerIPAM{Config: []dockerSubnet{{Subnet: network.Pods().String(), Gateway: network.Pods().Addr().Next().String()}}},
		})
	}
	n.PodsAdded = awaitPeers
	return n
}

// swarmNode is what POST /swarm/init and /swarm/join take: where the node is on the
// lab's link. The last two are of a node that joins.
type swarmNode struct {
	ListenAddr, AdvertiseAddr, DataPathAddr string
	RemoteAddrs                             []string `json:",omitempty"`
	JoinToken                               string   `json:",omitempty"`
}

// swarm makes a Swarm whose manager is the first node, and a network in it.
func swarm(ctx context.Context, nodes []network.Node, overlay dockerNetwork) error {
	at := func(n network.Node) swarmNode {
		a := n.Address.Addr()
		return swarmNode{ListenAddr: netip.AddrPortFrom(a, swarmPort).String(), AdvertiseAddr: a.String(), DataPathAddr: a.String()}
	}
	first := at(nodes[0])
	manager, err := openDocker(dockerDir(nodes[0]))
	if err != nil {
		return err
	}
	if err := manager.do(ctx, http.MethodPost, "/swarm/init", first, nil); err != nil {
		return explainDocker(nodes[0], err)
	}
	var made struct{ JoinTokens struct{ Worker string } }
	if err := manager.do(ctx, http.MethodGet, "/swarm", nil, &made); err != nil {
		return explainDocker(nodes[0], err)
	}
	for _, n := range nodes[1:] {
		worker, err := openDocker(dockerDir(n))
		if err != nil {
			return err
		}
		joins := at(n)
		joins.RemoteAddrs, joins.JoinToken = []string{first.ListenAddr}, made.JoinTokens.Worker
		if err := worker.do(ctx, http.MethodPost, "/swarm/join", joins, nil); err != nil {
			return explainDocker(n, err)
		}
	}
	if err := manager.do(ctx, http.MethodPost, "/networks/create", overlay, nil); err != nil {
		return explainDocker(nodes[0], err)
	}
	return nil
}

// peersPatience bounds the wait for a Swarm's gossip.
const peersPatience = 30 * time.Second

// awaitPeers waits until the node's overlay knows the pods of the other nodes, of
// which the Swarm's nodes inform each other.
func awaitPeers(ctx context.Context, self network.Node, _ []network.Node, pods []network.Pod) error {
	ctx, cancel := context.WithTimeoutCause(ctx, peersPatience, errors.New("the Swarm's gossip did not reach the node in time"))
	defer cancel()
	for {
		// An overlay that is being made has a file before it has a namespace.
		missing, err := missingPeers(self, pods)
		if err == nil && missing == "" {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("pod %q of another node: %w", missing, context.Cause(ctx)), err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// missingPeers names a pod of another node that the node's overlay does not know; ""
// where it knows all. A node without pods has no overlay.
func missingPeers(self network.Node, pods []network.Pod) (string, error) {
	here := false
	for _, p := range pods {
		here = here || p.Node == self.Index
	}
	if !here {
		return "", nil
	}
	known, err := overlayPeers(self)
	if err != nil {
		return "", err
	}
	for _, p := range pods {
		if p.Node != self.Index && !known[p.Address] {
			return p.Address.String(), nil
		}
	}
	return "", nil
}

// overlayPeers are the neighbours that Docker set at the tunnels of a node's overlays.
// Each overlay is a namespace of dockerd's, whose file begins with 1-.
func overlayPeers(self network.Node) (map[netip.Addr]bool, error) {
	dir := filepath.Join("/proc", dockerPID(self), "root/run/docker/netns")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("overlays of %s: %w", self.Name, err)
	}
	known := map[netip.Addr]bool{}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "1-") {
			continue
		}
		if err := addPeers(netns.NS{Name: e.Name(), Path: filepath.Join(dir, e.Name())}, known); err != nil {
			return nil, fmt.Errorf("overlay %s of %s: %w", e.Name(), self.Name, err)
		}
	}
	return known, nil
}

func addPeers(ns netns.NS, known map[netip.Addr]bool) error {
	h, err := netns.Handle(ns)
	if err != nil {
		return err
	}
	defer h.Close()
	links, err := h.LinkList()
	if err != nil {
		return err
	}
	for _, l := range links {
		if l.Type() != "vxlan" {
			continue
		}
		neighbours, err := h.NeighList(l.Attrs().Index, netlink.FAMILY_V4)
		if err != nil {
			return err
		}
		for _, n := range neighbours {
			if a, ok := netip.AddrFromSlice(n.IP.To4()); ok && n.State&netlink.NUD_PERMANENT != 0 {
				known[a] = true
			}
		}
	}
	return nil
}
