package cilium

import (
	"crypto/sha1"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	current "github.com/containernetworking/cni/pkg/types/100"
	"github.com/vishvananda/netlink"

	"github.com/cnibench/cnibench/bpf"
	"github.com/cnibench/cnibench/internal/network/dataplane"
	"github.com/cnibench/cnibench/internal/network/plugin"
)

// Plugins are the CNI plugins of this program that the networks of this folder name.
func Plugins() []plugin.Plugin {
	return []plugin.Plugin{
		{Name: "cnibench-cilium", Funcs: skel.CNIFuncs{Add: add, Del: del, Check: plugin.Check}},
	}
}

// ciliumConf is the configuration of cnibench-cilium without the pod's part.
type ciliumConf struct {
	Device string `json:"device"` // the node's, whose program has the node's maps
	Tunnel string `json:"tunnel"`
	Policy bool   `json:"policy"`
	Netkit bool   `json:"netkit"`
}

func loadCiliumConf(args *skel.CmdArgs) (ciliumConf, error) {
	var conf ciliumConf
	if err := json.Unmarshal(args.StdinData, &conf); err != nil {
		return conf, fmt.Errorf("configuration: %w", err)
	}
	if conf.Device == "" {
		return conf, errors.New(`configuration: "device" is missing`)
	}
	return conf, nil
}

// hostDevice is the host's side of a pod's veth or netkit, named as Cilium names it.
func hostDevice(containerID string) string {
	return fmt.Sprintf("lxc%x", sha1.Sum([]byte(containerID)))[:15]
}

// add does what cilium-cni and the agent do for a pod: a veth or netkit, a /32 and
// a default route by the node's router address, and the pod's own program.
func add(args *skel.CmdArgs) (err error) {
	conf, err := loadCiliumConf(args)
	if err != nil {
		return err
	}
	pod, result, err := plugin.IPAMGet(args, !conf.Policy)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, plugin.IPAMDel(pod, args))
		}
	}()
	for _, ip := range result.IPs {
		if ip.Gateway == nil {
			return fmt.Errorf("IPAM plugin %s gave no gateway", pod.IPAM.Type)
		}
		ip.Address.Mask, ip.Interface = plugin.AloneMask(ip.Address.IP), current.Int(1)
	}
	host, err := conf.pair(args, pod.MTU)
	if err != nil {
		return err
	}
	mac, err := plugin.AloneSide(args, result.IPs, func(ip *current.IPConfig) net.IP { return ip.Gateway })
	if err != nil {
		return err
	}
	if err := ciliumEndpoint(conf, host, mac, result.IPs); err != nil {
		return err
	}
	result.Interfaces = []*current.Interface{
		{Name: host.Attrs().Name, Mac: host.Attrs().HardwareAddr.String()}, {Name: args.IfName, Mac: mac.String(), Sandbox: args.Netns},
	}
	result.Routes = nil
	return types.PrintResult(result, pod.CNIVersion)
}

// ciliumEndpoint makes the pod known to the node's programs and attaches its
// own, which is loaded for this pod alone: its addresses are constants in it.
func ciliumEndpoint(conf ciliumConf, host netlink.Link, mac net.HardwareAddr, ips []*current.IPConfig) error {
	address, _ := netip.AddrFromSlice(ips[0].Address.IP.To4())
	maps, err := ciliumMaps(conf.Device)
	if err != nil {
		return err
	}
	defer maps.Close()
	id := uint32(host.Attrs().Index) // one to one on a node
	constants, err := ciliumConstants(conf.Device, conf.Tunnel, conf.Policy)
	if err != nil {
		return err
	}
	constants[bpf.CiliumVarEndpointAddress] = dataplane.EBPFAddress(address)
	constants[bpf.CiliumVarEndpointId] = id
	constants[bpf.CiliumVarEndpointIdentity] = uint32(identityPods)
	var address6 [16]byte
	if len(ips) > 1 {
		copy(address6[:], ips[1].Address.IP.To16())
		constants[bpf.CiliumVarEndpointAddress6] = address6
		constants[bpf.CiliumVarWithIpv6] = true
	}
	spec, err := bpf.LoadCilium()
	if err != nil {
		return err
	}
	if err := asLargeAs(maps, spec); err != nil {
		return err
	}
	coll, err := dataplane.LoadEBPF(spec, constants, maps, bpf.CiliumProgCnbFromContainer)
	if err != nil {
		return err
	}
	defer coll.Close()
	if conf.Policy {
		if err := permit(maps, id); err != nil {
			return err
		}
	}
	if err := conf.attach(host, coll.Programs[bpf.CiliumProgCnbFromContainer]); err != nil {
		return err
	}
	endpoints, err := maps.Need(bpf.CiliumMapCnbEndpoints)
	if err != nil {
		return err
	}
	endpoint := bpf.CiliumEndpoint{
		Ifindex: id, Id: id, Identity: identityPods, Mac: macBytes(mac), NodeMac: macBytes(host.Attrs().HardwareAddr),
	}
	if err := endpoints.Put(dataplane.EBPFAddress(address), endpoint); err != nil || len(ips) == 1 {
		return err
	}
	if endpoints, err = maps.Need(bpf.CiliumMapCnbEndpoints6); err != nil {
		return err
	}
	return endpoints.Put(address6, endpoint)
}

// asLargeAs gives the maps of a program the sizes of the node's. One that the node
// has not is an error: the pod would have an empty one of its own.
func asLargeAs(node dataplane.EBPFMaps, spec *ebpf.CollectionSpec) error {
	for name := range spec.Maps {
		if !strings.HasPrefix(name, dataplane.EBPFPrefix) { // constants
			continue
		}
		m, err := node.Need(name)
		if err != nil {
			return err
		}
		spec.Maps[name].MaxEntries = m.MaxEntries()
	}
	return nil
}

// ciliumMaps are the node's: none of its programs names all of them.
func ciliumMaps(device string) (dataplane.EBPFMaps, error) {
	all, err := dataplane.MapsAt(device, dataplane.Ingress())
	if err != nil {
		return nil, err
	}
	more, err := dataplane.MapsAt(ciliumHost, dataplane.Egress())
	if err != nil {
		all.Close()
		return nil, err
	}
	for name, m := range more {
		if all[name] == nil {
			all[name] = m
			continue
		}
		_ = m.Close() // a file descriptor alone
	}
	return all, nil
}

// permit writes the entries of the policy that allows.
func permit(maps dataplane.EBPFMaps, id uint32) error {
	policy, err := maps.Need(bpf.CiliumMapCnbPolicy)
	if err != nil {
		return err
	}
	for _, key := range ciliumPolicy(id) {
		if err := policy.Put(key, bpf.CiliumPolicyEntry{}); err != nil {
			return fmt.Errorf("policy: %w", err)
		}
	}
	return nil
}

// del is no error for a pod that does not exist, or was added in part.
func del(args *skel.CmdArgs) error {
	conf, err := loadCiliumConf(args)
	if err != nil {
		return err
	}
	host, err := netlink.LinkByName(hostDevice(args.ContainerID))
	var gone netlink.LinkNotFoundError
	switch {
	case err == nil:
		err = errors.Join(forget(conf, uint32(host.Attrs().Index)), netlink.LinkDel(host))
	case errors.As(err, &gone):
		err = nil
	}
	return errors.Join(err, plugin.Del(args))
}

// forget takes the pod out of the node's maps.
func forget(conf ciliumConf, id uint32) error {
	maps, err := ciliumMaps(conf.Device)
	if errors.Is(err, dataplane.ErrNoEBPF) {
		return nil
	}
	if err != nil {
		return err
	}
	defer maps.Close()
	if conf.Policy {
		policy, err := maps.Need(bpf.CiliumMapCnbPolicy)
		if err != nil {
			return err
		}
		for _, key := range ciliumPolicy(id) {
			if err := policy.Delete(key); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
				return fmt.Errorf("policy: %w", err)
			}
		}
	}
	var address uint32
	var address6 [16]byte
	return errors.Join(
		forgetEndpoint(maps, bpf.CiliumMapCnbEndpoints, &address, id),
		forgetEndpoint(maps, bpf.CiliumMapCnbEndpoints6, &address6, id))
}

// forgetEndpoint takes a pod out of a map of endpoints; address has the type of
// its keys.
func forgetEndpoint(maps dataplane.EBPFMaps, name string, address any, id uint32) error {
	endpoints, err := maps.Need(name)
	if err != nil {
		return err
	}
	var ep bpf.CiliumEndpoint
	all := endpoints.Iterate()
	for all.Next(address, &ep) {
		if ep.Ifindex == id {
			if err := endpoints.Delete(address); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
				return fmt.Errorf("endpoint: %w", err)
			}
		}
	}
	return nil // an interrupted walk is of a map that goes with its node
}
