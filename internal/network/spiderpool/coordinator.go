package spiderpool

import (
	"crypto/sha1"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	current "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/cni/pkg/version"
	"github.com/vishvananda/netlink"

	"github.com/cnibench/cnibench/internal/netns"
	"github.com/cnibench/cnibench/internal/network"
	"github.com/cnibench/cnibench/internal/network/plugin"
)

// Plugins are the CNI plugins of this program that the networks of this folder name.
func Plugins() []plugin.Plugin {
	return []plugin.Plugin{
		{Name: "cnibench-sriov", Funcs: skel.CNIFuncs{Add: sriovAdd, Del: sriovDel, Check: plugin.Check}},
		{Name: "cnibench-coordinator", Funcs: skel.CNIFuncs{Add: coordinatorAdd, Del: coordinatorDel, Check: plugin.Check}},
	}
}

// coordinatorTable is the routing table of a node for its own pods
// (Spiderpool's hostRuleTable), and what the pod's second device is called.
const (
	coordinatorTable  = 500
	coordinatorDevice = "veth0"
	coordinatorMTU    = 1500
)

// coordinatorConf is the configuration of cnibench-coordinator.
type coordinatorConf struct {
	types.NetConf
	// HostAddress is the node's own.
	HostAddress netip.Addr `json:"hostAddress"`
	// ServiceCIDR is what the pod reaches by its node.
	ServiceCIDR netip.Prefix `json:"serviceCIDR"`
}

// coordinatorAdd comes after a plugin that puts the pod on the wire, and does
// what Spiderpool v1.0's cmd/coordinator does in mode underlay (setupVeth,
// setupNeighborhood, setupHostRoutes, setupHijackRoutes): a second pair of devices by which the
// pod and its own node reach each other, with static neighbours.
func coordinatorAdd(args *skel.CmdArgs) error {
	conf, address, err := coordinatorRead(args)
	if err != nil {
		return err
	}
	la := netlink.NewLinkAttrs()
	la.Name, la.MTU = coordinatorHostDevice(args.ContainerID), coordinatorMTU
	if err := plugin.PairInto(netlink.LinkAdd, args, la, coordinatorDevice, nil); err != nil {
		return err
	}
	host, err := netlink.LinkByName(la.Name)
	if err != nil {
		return fmt.Errorf("device %s: %w", la.Name, err)
	}
	var mac net.HardwareAddr
	err = netns.Do(plugin.NS(args), func() error {
		dev, err := netlink.LinkByName(coordinatorDevice)
		if err != nil {
			return fmt.Errorf("device %s: %w", coordinatorDevice, err)
		}
		mac = dev.Attrs().HardwareAddr
		if err := coordinatorSide(dev, conf.HostAddress, host.Attrs().HardwareAddr, 0); err != nil {
			return err
		}
		services := &netlink.Route{LinkIndex: dev.Attrs().Index, Dst: network.IPNet(conf.ServiceCIDR), Gw: conf.HostAddress.AsSlice()}
		if err := netlink.RouteAdd(services); err != nil {
			return fmt.Errorf("route to services: %w", err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := coordinatorSide(host, address, mac, coordinatorTable); err != nil {
		return err
	}
	if err := netlink.RuleAdd(coordinatorRule(address)); err != nil {
		return fmt.Errorf("rule to %s: %w", address, err)
	}
	return types.PrintResult(conf.PrevResult, conf.CNIVersion)
}

// coordinatorSide sets up one end: a route and a neighbour for what is at the
// other.
func coordinatorSide(dev netlink.Link, other netip.Addr, mac net.HardwareAddr, table int) error {
	if err := netlink.LinkSetUp(dev); err != nil {
		return fmt.Errorf("device %s: up: %w", dev.Attrs().Name, err)
	}
	index := dev.Attrs().Index
	err := netlink.NeighSet(&netlink.Neigh{LinkIndex: index, State: netlink.NUD_PERMANENT, IP: other.AsSlice(), HardwareAddr: mac})
	if err != nil {
		return fmt.Errorf("neighbour %s: %w", other, err)
	}
	err = netlink.RouteAdd(&netlink.Route{LinkIndex: index, Scope: netlink.SCOPE_LINK, Dst: network.IPNet(network.Single(other)), Table: table})
	if err != nil {
		return fmt.Errorf("route to %s: %w", other, err)
	}
	return nil
}

func coordinatorRule(pod netip.Addr) *netlink.Rule {
	r := netlink.NewRule()
	r.Table, r.Dst, r.Family = coordinatorTable, network.IPNet(network.Single(pod)), netlink.FAMILY_V4
	return r
}

func coordinatorHostDevice(containerID string) string {
	return fmt.Sprintf("veth%x", sha1.Sum([]byte(containerID)))[:15]
}

// coordinatorRead gives the pod's address as the plugin before gave it.
func coordinatorRead(args *skel.CmdArgs) (coordinatorConf, netip.Addr, error) {
	var conf coordinatorConf
	if err := json.Unmarshal(args.StdinData, &conf); err != nil {
		return conf, netip.Addr{}, fmt.Errorf("configuration: %w", err)
	}
	if err := version.ParsePrevResult(&conf.NetConf); err != nil {
		return conf, netip.Addr{}, err
	}
	if !conf.HostAddress.Is4() {
		return conf, netip.Addr{}, errors.New(`configuration: "hostAddress" is missing`)
	}
	if !conf.ServiceCIDR.IsValid() {
		return conf, netip.Addr{}, errors.New(`configuration: "serviceCIDR" is missing`)
	}
	if conf.PrevResult == nil {
		return conf, netip.Addr{}, errors.New("there is no result of a plugin before: this one comes second")
	}
	result, err := current.NewResultFromResult(conf.PrevResult)
	if err != nil {
		return conf, netip.Addr{}, fmt.Errorf("result of the plugin before: %w", err)
	}
	if len(result.IPs) == 0 {
		return conf, netip.Addr{}, errors.New("the plugin before gave no address")
	}
	address, ok := netip.AddrFromSlice(result.IPs[0].Address.IP.To4())
	if !ok {
		return conf, netip.Addr{}, fmt.Errorf("address %s is not IPv4", result.IPs[0].Address.IP)
	}
	return conf, address, nil
}

// coordinatorDel takes the node's rule away; the devices' going takes the rest.
func coordinatorDel(args *skel.CmdArgs) error {
	err := plugin.DelDevice(args, coordinatorDevice)
	_, address, readErr := coordinatorRead(args)
	if readErr != nil { // a pod that was never added has no result
		return err
	}
	ruleErr := netlink.RuleDel(coordinatorRule(address))
	if errors.Is(ruleErr, os.ErrNotExist) {
		ruleErr = nil
	}
	return errors.Join(err, ruleErr)
}
