// Package plugin is what the CNI plugins that this program is itself have in common: the
// addresses of a pod, its devices, and how they are removed.
package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"

	"github.com/containernetworking/cni/pkg/invoke"
	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	current "github.com/containernetworking/cni/pkg/types/100"
	"github.com/vishvananda/netlink"

	"github.com/cnibench/cnibench/internal/netns"
)

// Plugin is a CNI plugin that this program provides itself.
type Plugin struct {
	Name  string
	Funcs skel.CNIFuncs
	// Runs names the program that the plugin leaves the pod's network to, as a container
	// engine would; "" where the plugin makes the pod's devices itself.
	Runs string
}

// Program is something that this program is when it is started by that name, and is no
// CNI plugin.
type Program struct {
	Name string
	// Run gets all arguments, the name first. It returns only on an error.
	Run func(args []string) error
}

// Conf is the configuration of plugins that make a pod's device.
type Conf struct {
	types.NetConf
	MTU int `json:"mtu"`
}

// IPAMAdd reads the configuration and gets the pod's one IPv4 address of its
// IPAM plugin. Where a later step fails the caller gives it back by IPAMDel.
func IPAMAdd(args *skel.CmdArgs) (Conf, *current.Result, error) { return IPAMGet(args, false) }

// IPAMGet is IPAMAdd, and where dual it may get one of IPv6 as well.
func IPAMGet(args *skel.CmdArgs, dual bool) (Conf, *current.Result, error) {
	var conf Conf
	if err := json.Unmarshal(args.StdinData, &conf); err != nil {
		return conf, nil, fmt.Errorf("configuration: %w", err)
	}
	if conf.IPAM.Type == "" {
		return conf, nil, errors.New(`configuration: "ipam" is missing`)
	}
	got, err := invoke.DelegateAdd(context.Background(), conf.IPAM.Type, args.StdinData, nil)
	if err != nil {
		return conf, nil, err
	}
	result, err := current.NewResultFromResult(got)
	if err == nil && !oneOfEach(result.IPs, dual) {
		err = fmt.Errorf("IPAM plugin %s gave %d addresses: this plugin takes one IPv4 address, and one of IPv6 where it can (%v)",
			conf.IPAM.Type, len(result.IPs), dual)
	}
	if err != nil {
		return conf, nil, errors.Join(err, IPAMDel(conf, args))
	}
	return conf, result, nil
}

// oneOfEach accepts an IPv4 address, alone or with one of IPv6 after it.
func oneOfEach(ips []*current.IPConfig, dual bool) bool {
	if len(ips) == 0 || ips[0].Address.IP.To4() == nil {
		return false
	}
	return len(ips) == 1 || dual && len(ips) == 2 && ips[1].Address.IP.To4() == nil
}

// IPAMDel gives the pod's addresses back to its IPAM plugin.
func IPAMDel(conf Conf, args *skel.CmdArgs) error {
	return invoke.DelegateDel(context.Background(), conf.IPAM.Type, args.StdinData, nil)
}

// AloneMask is the mask of an address that is the only one of its subnet.
func AloneMask(ip net.IP) net.IPMask {
	bits := 128
	if ip.To4() != nil {
		bits = 32
	}
	return net.CIDRMask(bits, bits)
}

// Veth makes a pair with one end in the pod, of that hardware address where
// one is given, and gives the other, which is up and here.
func Veth(args *skel.CmdArgs, host string, mtu int, mac net.HardwareAddr) (netlink.Link, error) {
	la := netlink.NewLinkAttrs()
	la.Name, la.MTU = host, mtu
	if err := PairInto(netlink.LinkAdd, args, la, args.IfName, mac); err != nil {
		return nil, err
	}
	dev, err := netlink.LinkByName(host)
	if err != nil {
		return nil, fmt.Errorf("device %s: %w", host, err)
	}
	if err := netlink.LinkSetUp(dev); err != nil {
		return nil, fmt.Errorf("device %s: up: %w", host, err)
	}
	return dev, nil
}

// PairInto makes a veth pair: one end with the attributes la, where add makes devices, the
// other in the pod, of that hardware address where one is given.
func PairInto(add func(netlink.Link) error, args *skel.CmdArgs, la netlink.LinkAttrs, inPod string, mac net.HardwareAddr) error {
	return netns.Port{NS: NS(args), Device: inPod}.Pair(add, la, mac)
}

// OnDevice sets the pod's device up, does what is to be done to it in the
// pod's namespace, and gives its hardware address.
func OnDevice(args *skel.CmdArgs, do func(dev netlink.Link) error) (net.HardwareAddr, error) {
	var mac net.HardwareAddr
	err := netns.Do(NS(args), func() error {
		dev, err := netlink.LinkByName(args.IfName)
		if err != nil {
			return fmt.Errorf("device %s: %w", args.IfName, err)
		}
		mac = dev.Attrs().HardwareAddr
		if err := netlink.LinkSetUp(dev); err != nil {
			return fmt.Errorf("device %s: up: %w", args.IfName, err)
		}
		return do(dev)
	})
	return mac, err
}

// SubnetSide gives the pod's end an address of a subnet and a default route
// by a gateway in it.
func SubnetSide(args *skel.CmdArgs, addr *net.IPNet, gateway net.IP) (net.HardwareAddr, error) {
	return OnDevice(args, func(dev netlink.Link) error {
		if err := netlink.AddrAdd(dev, &netlink.Addr{IPNet: addr}); err != nil {
			return fmt.Errorf("address %s: %w", addr, err)
		}
		if err := netlink.RouteAdd(&netlink.Route{LinkIndex: dev.Attrs().Index, Gw: gateway}); err != nil {
			return fmt.Errorf("default route: %w", err)
		}
		return nil
	})
}

// AloneSide gives the pod's end its addresses, each alone in its subnet, and
// its routes by the gateway of each.
func AloneSide(args *skel.CmdArgs, ips []*current.IPConfig, gateway func(*current.IPConfig) net.IP) (net.HardwareAddr, error) {
	return OnDevice(args, func(dev netlink.Link) error {
		for _, ip := range ips {
			if err := podAddress(dev, &ip.Address, gateway(ip)); err != nil {
				return err
			}
		}
		return nil
	})
}

// podAddress gives a pod's device an address that is alone in its subnet, and
// its family's routes by a gateway that is not in it.
func podAddress(dev netlink.Link, addr *net.IPNet, gateway net.IP) error {
	index := dev.Attrs().Index
	toGateway := &net.IPNet{IP: gateway, Mask: addr.Mask}
	if err := netlink.AddrAdd(dev, &netlink.Addr{IPNet: addr}); err != nil {
		return fmt.Errorf("address %s: %w", addr, err)
	}
	if err := netlink.RouteAdd(&netlink.Route{LinkIndex: index, Scope: netlink.SCOPE_LINK, Dst: toGateway}); err != nil {
		return fmt.Errorf("route to the gateway: %w", err)
	}
	if err := netlink.RouteAdd(&netlink.Route{LinkIndex: index, Gw: gateway}); err != nil {
		return fmt.Errorf("default route: %w", err)
	}
	return nil
}

// IPAMFree is IPAMDel for a plugin that has not read the configuration of its IPAM plugin.
func IPAMFree(args *skel.CmdArgs) error {
	var conf Conf
	if err := json.Unmarshal(args.StdinData, &conf); err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	return IPAMDel(conf, args)
}

// Del gives the address back and takes the pod's device away. It is no
// error for a pod that does not exist, or was added in part.
func Del(args *skel.CmdArgs) error {
	if err := IPAMFree(args); err != nil {
		return err
	}
	return DelDevice(args, args.IfName)
}

// DelDevice takes a device of a pod away, where both exist.
func DelDevice(args *skel.CmdArgs, name string) error {
	if args.Netns == "" {
		return nil
	}
	err := netns.Do(NS(args), func() error {
		dev, err := netlink.LinkByName(name)
		var gone netlink.LinkNotFoundError
		if errors.As(err, &gone) {
			return nil
		}
		if err != nil {
			return err
		}
		return netlink.LinkDel(dev)
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Check looks for the pod's device.
func Check(args *skel.CmdArgs) error {
	return netns.Do(NS(args), func() error {
		if _, err := netlink.LinkByName(args.IfName); err != nil {
			return fmt.Errorf("device %s: %w", args.IfName, err)
		}
		return nil
	})
}

// NS is the namespace of the pod that a plugin is called for.
func NS(args *skel.CmdArgs) netns.NS { return netns.NS{Name: args.ContainerID, Path: args.Netns} }
