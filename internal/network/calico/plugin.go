package calico

import (
	"crypto/sha1"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	current "github.com/containernetworking/cni/pkg/types/100"
	"github.com/vishvananda/netlink"

	"github.com/cnibench/cnibench/internal/network/plugin"
)

// Plugins are the CNI plugins of this program that the networks of this folder name.
func Plugins() []plugin.Plugin {
	return []plugin.Plugin{
		{Name: "cnibench-calico", Funcs: skel.CNIFuncs{Add: add, Del: plugin.Del, Check: plugin.Check}},
		{Name: "cnibench-calico-ebpf", Funcs: skel.CNIFuncs{Add: ebpfAdd, Del: ebpfDel, Check: plugin.Check}},
	}
}

// gateway is what every pod's default route points at; nobody has it,
// the host's side answers for it by proxy ARP. For IPv6 it is the host's side's
// own, which the kernel makes of its hardware address.
func gateway(ip net.IP) net.IP {
	if ip.To4() == nil {
		return net.ParseIP("fe80::ecee:eeff:feee:eeee")
	}
	return net.IPv4(169, 254, 1, 1).To4()
}

// hostDevice is the host's side of a pod's veth, named as Calico names
// it: "cali" and the head of a hash.
func hostDevice(containerID string) string {
	return fmt.Sprintf("cali%x", sha1.Sum([]byte(containerID)))[:15]
}

// add does to a pod what DoNetworking of Calico v3's
// cni-plugin/pkg/dataplane/linux/dataplane_linux.go does; addresses come from the IPAM plugin of the configuration.
func add(args *skel.CmdArgs) (err error) {
	conf, result, err := plugin.IPAMGet(args, true)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, plugin.IPAMDel(conf, args))
		}
	}()
	for _, ip := range result.IPs {
		ip.Address.Mask, ip.Gateway, ip.Interface = plugin.AloneMask(ip.Address.IP), nil, current.Int(1)
	}

	host := hostDevice(args.ContainerID)
	mac, err := veth(conf, args, host)
	if err != nil {
		return err
	}
	_, err = plugin.AloneSide(args, result.IPs, func(ip *current.IPConfig) net.IP { return gateway(ip.Address.IP) })
	if err != nil {
		return err
	}
	if err := hostSide(host, result.IPs); err != nil {
		return err
	}
	result.Interfaces = []*current.Interface{
		{Name: host, Mac: mac.String()}, {Name: args.IfName, Sandbox: args.Netns},
	}
	result.Routes = nil
	return types.PrintResult(result, conf.CNIVersion)
}

// veth makes the pair, the pod's end in the pod. The host's end has the
// one hardware address that all of Calico's have.
func veth(conf plugin.Conf, args *skel.CmdArgs, host string) (net.HardwareAddr, error) {
	if old, err := netlink.LinkByName(host); err == nil {
		if err := netlink.LinkDel(old); err != nil {
			return nil, fmt.Errorf("old device %s: %w", host, err)
		}
	}
	la := netlink.NewLinkAttrs()
	la.Name, la.MTU = host, conf.MTU
	la.HardwareAddr = net.HardwareAddr{0xee, 0xee, 0xee, 0xee, 0xee, 0xee}
	if err := plugin.PairInto(netlink.LinkAdd, args, la, args.IfName, nil); err != nil {
		return nil, err
	}
	return la.HardwareAddr, nil
}

// hostSide sets what configureSysctls and SetupRoutes set. The plugin
// runs in the node's namespace, so /proc/sys/net is the node's.
func hostSide(host string, ips []*current.IPConfig) error {
	settings := map[string]string{
		"ipv4/conf/" + host + "/route_localnet": "1",
		"ipv4/neigh/" + host + "/proxy_delay":   "0",
		"ipv4/conf/" + host + "/proxy_arp":      "1",
		"ipv4/conf/" + host + "/forwarding":     "1",
	}
	if len(ips) > 1 {
		settings["ipv6/conf/"+host+"/disable_ipv6"] = "0"
		settings["ipv6/conf/"+host+"/proxy_ndp"] = "1"
		settings["ipv6/conf/"+host+"/forwarding"] = "1"
	}
	for path, value := range settings {
		if err := os.WriteFile("/proc/sys/net/"+path, []byte(value), 0o644); err != nil {
			return err
		}
	}
	dev, err := netlink.LinkByName(host)
	if err != nil {
		return fmt.Errorf("device %s: %w", host, err)
	}
	if err := netlink.LinkSetUp(dev); err != nil {
		return fmt.Errorf("device %s: up: %w", host, err)
	}
	for _, ip := range ips {
		route := &netlink.Route{LinkIndex: dev.Attrs().Index, Scope: netlink.SCOPE_LINK, Dst: &ip.Address}
		if err := netlink.RouteAdd(route); err != nil {
			return fmt.Errorf("route to the pod: %w", err)
		}
	}
	return nil
}
