// Package podman has Podman's networks, which netavark makes.
package podman

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	current "github.com/containernetworking/cni/pkg/types/100"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/dataplane"
	"github.com/cnibench/cnibench/internal/network/plugin"
	"github.com/cnibench/cnibench/internal/result"
)

//go:embed podman.conflist
var conflist string

const noServices = "Podman has none of Kubernetes' services"

// Bridge is Podman's default network: what podman run gives a container.
func Bridge() network.Network {
	n := byDriver("bridge", "podman0")
	n.Summary = "Podman's default network on one node: netavark's bridge podman0, forward and masquerade rules"
	n.NoInterHost = "Podman's bridge is on one machine, and other machines know no route to its containers"
	n.Needs = append([]netns.Feature{netns.Veth(), netns.Bridge()}, n.Needs...)
	n.Wants = []netns.Feature{netns.BridgeNetfilter()}
	return n
}

// MACVLAN is a network of podman network create --driver macvlan --opt
// parent=eth0, with one subnet for all nodes and a range for each.
func MACVLAN() network.Network {
	n := byDriver("macvlan", "")
	n.Summary = "Podman's driver macvlan by netavark: pods directly on the wire, one subnet for all nodes"
	n.NoHostPaths = "a node cannot reach its macvlan pods: the kernel passes nothing between a device and the " +
		"macvlan devices on it"
	n.NoEncryption = network.OnTheWire
	n.Needs = append([]netns.Feature{netns.MACVLAN()}, n.Needs...)
	return n
}

// byDriver is a network of netavark with one of its drivers, on the node's device where
// no other is named. Podman itself gives out addresses before it calls netavark;
// host-local does that here.
func byDriver(driver, device string) network.Network {
	n := network.Network{
		Kind:       result.KindReal,
		Name:       "podman/" + driver,
		NoServices: noServices,
		// netavark asks iptables for its version whatever the driver.
		Needs:   []netns.Feature{netavarkTool(), dataplane.IPTablesTool(), netns.NFTables(), netns.Conntrack()},
		Plugins: []string{"host-local"},
		Datapath: func(ctx context.Context) (string, error) {
			path, err := netavarkPath()
			if err != nil {
				return "", err
			}
			r := exec.NewRunner()
			defer r.Close()
			got, err := r.Run(ctx, exec.Cmd{Argv: []string{path, "--version"}})
			return strings.TrimSpace(string(got.Stdout)), err
		},
	}
	n.Conflist = func(self network.Node, nodes []network.Node) ([]byte, error) {
		subnet, gateway, on := self.PodCIDR, self.PodCIDR.Addr().Next(), device
		if on == "" {
			subnet, gateway, on = network.Pods(), network.Pods().Addr().Next(), self.Device
		}
		text := strings.NewReplacer("NETWORK", driver, "INTERFACE", on, "SUBNET", subnet.String(), "GATEWAY", gateway.String()).Replace(conflist)
		return network.Template(text, n)(self, nodes)
	}
	return n
}

// addPod is the ADD of both plugins. It gets an address for the pod, has attach make the device
// with it, whose hardware address and prefix attach gives, and prints the result. Where
// something fails, the address is given back.
func addPod(args *skel.CmdArgs, cniVersion string, attach func(netip.Prefix) (mac string, made netip.Prefix, err error)) (err error) {
	ipam, result, err := plugin.IPAMAdd(args)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, plugin.IPAMDel(ipam, args))
		}
	}()
	ip := result.IPs[0]
	address, ok := netip.AddrFromSlice(ip.Address.IP.To4())
	if !ok {
		return fmt.Errorf("address %s", ip.Address.IP)
	}
	bits, _ := ip.Address.Mask.Size()
	mac, made, err := attach(netip.PrefixFrom(address, bits))
	if err != nil {
		return err
	}
	ip.Address, ip.Interface = *network.IPNet(made), current.Int(0)
	result.Interfaces = []*current.Interface{{Name: args.IfName, Sandbox: args.Netns, Mac: mac}}
	return types.PrintResult(result, cniVersion)
}

// netavarkTool is the Debian package, as a feature of the machine.
func netavarkTool() netns.Feature {
	return netns.Feature{Name: "netavark", Doc: "Podman's networks", Cure: "apt-get install netavark", Probe: func() error {
		_, err := netavarkPath()
		return err
	}}
}

// netavarkPath finds netavark where Podman looks for it (helper_binaries_dir of
// containers.conf(5)), or in PATH.
func netavarkPath() (string, error) {
	return netavarkIn("/usr/local/libexec/podman", "/usr/local/lib/podman", "/usr/libexec/podman", "/usr/lib/podman")
}

func netavarkIn(dirs ...string) (string, error) {
	for _, dir := range dirs {
		path := filepath.Join(dir, "netavark")
		if fi, err := os.Stat(path); err == nil && fi.Mode().IsRegular() {
			return path, nil
		}
	}
	path, err := exec.LookPath("netavark")
	if err != nil {
		return "", errors.New("netavark is not installed: apt-get install netavark")
	}
	return path, nil
}

// netavarkError is what netavark says on stdout when it fails.
type netavarkError struct {
	Error string `json:"error"`
}

func (e netavarkError) wrap(verb string, err error) error {
	if e.Error == "" {
		return fmt.Errorf("netavark %s: %w", verb, err)
	}
	return fmt.Errorf("netavark %s: %s", verb, e.Error)
}
